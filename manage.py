#!/usr/bin/env python
"""Django's command line, with kcoord's version."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    if sys.argv[1:] == ["version"] or "--version" in sys.argv[1:3]:
        from kcoord import __version__

        print(f"kcoord {__version__}")  # noqa: T201
        sys.exit()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
