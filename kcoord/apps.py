"""Django application of the kernel: access, settings, timers."""

from typing import Any

from django.apps import AppConfig
from django.core.management import CommandError
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.models.signals import pre_migrate

from kcoord.database.lineage import not_migratable


class KcoordConfig(AppConfig):
    """Registers the system checks and the Celery application."""

    name = "kcoord"
    label = "kcoord"
    verbose_name = "Access"

    def ready(self) -> None:
        """Settings are checked by `manage.py check` and before every start; accounts and sessions are audited."""
        from kcoord import checks  # noqa: F401
        from kcoord.access.audit import requests, rows
        from kcoord.celery import app  # noqa: F401

        pre_migrate.connect(_refuse_foreign_database, sender=self)
        rows.connect()
        requests.connect()


def _refuse_foreign_database(using: str, **kwargs: Any) -> None:
    """Before `manage.py migrate` changes anything. Raises CommandError."""
    loader = MigrationLoader(connections[using])
    if problem := not_migratable(loader.applied_migrations, loader.disk_migrations):
        raise CommandError(problem)
