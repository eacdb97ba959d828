"""Django application of the kernel: access, settings, timers."""

from django.apps import AppConfig


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

        rows.connect()
        sessions.connect()
