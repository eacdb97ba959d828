"""Django application."""

from django.apps import AppConfig


class GroupsConfig(AppConfig):
    """Groups."""

    name = "groups"
    label = "groups"
    verbose_name = "Groups"

    def ready(self) -> None:
        """Assignors are checked together with the settings."""
        from groups import checks  # noqa: F401
