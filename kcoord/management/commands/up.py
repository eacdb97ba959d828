"""`manage.py up`: the same as `make up`, without managing the virtual environment."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Start Postgres (unless KCOORD_DATABASE_URL names one), server, Celery worker and beat; Ctrl-C stops them."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process by the supervisor, so that no part of Django stays in memory."""
        os.execv(sys.executable, [sys.executable, "-m", "kcoord.stack"])  # noqa: S606 - our own module
