"""`python -m tests.docs`: write the generated parts of the documentation again."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")

import django

from tests.docs import diagrams, differences, index, permissions, settings
from tests.docs.pages import ROOT


def main() -> None:
    """Write what changed, and say which files."""
    django.setup()
    for generated in (diagrams, index, differences, permissions, settings):
        text = generated.render()
        if not generated.PATH.is_file() or generated.PATH.read_text(encoding="utf-8") != text:
            generated.PATH.write_text(text, encoding="utf-8")
            print(f"wrote {generated.PATH.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
