"""`manage.py up`: the same as `make up`, without managing the virtual environment."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand

from kcoord.config import BASE_DIR


class Command(BaseCommand):
    help = "Start Postgres (unless KCOORD_DATABASE_URL names one), server, Celery worker and beat; Ctrl-C stops them."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process by the supervisor, so that no part of Django stays in memory.

        It runs in the project's directory, as its services do: the module is found, and relative paths mean the same.
        """
        os.chdir(BASE_DIR)
        path = os.pathsep.join(filter(None, [str(BASE_DIR), os.environ.get("PYTHONPATH", "")]))
        environ = {**os.environ, "PYTHONPATH": path}
        os.execve(sys.executable, [sys.executable, "-m", "kcoord.stack"], environ)  # noqa: S606 - our own module
