"""Django application."""

from django.apps import AppConfig


class OffsetsConfig(AppConfig):
    """Offsets."""

    name = "offsets"
    label = "offsets"
    verbose_name = "Offsets"

    def ready(self) -> None:
        """Whoever deletes a group, in whatever process: its offsets go with a line of the journal each."""
        from groups.locked import before_deletion
        from offsets.store import journal_deletion

        before_deletion(journal_deletion)
