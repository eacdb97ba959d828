"""Django application of the kernel: access, settings, timers."""

from typing import Any

from django.apps import AppConfig
from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.signals import pre_migrate

from kcoord.database import unreleased


def refuse_unreleased(using: str, **kwargs: Any) -> None:
    """Before `manage.py migrate`: Django would find nothing to apply in a database from before the first release."""
    if unreleased.is_schema_of(MigrationRecorder(connections[using]).applied_migrations()):
        raise CommandError(unreleased.REFUSAL)


class KcoordConfig(AppConfig):
    """Registers the system checks and the Celery application."""

    name = "kcoord"
    label = "kcoord"
    verbose_name = "Access"

    def ready(self) -> None:
        """Settings are checked by `manage.py check` and before every start; accounts and sessions are audited."""
        from kcoord import checks  # noqa: F401
        from kcoord.audit import rows, sessions
        from kcoord.celery import app  # noqa: F401

        pre_migrate.connect(refuse_unreleased, sender=self)
        rows.connect()
        sessions.connect()
