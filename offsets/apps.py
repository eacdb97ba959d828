"""Django application, and the check of settings that only offsets can validate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from kcoord.checks import TAG
from kcoord.secret_tables import SecretTablesError
from kcoord.setting_table import RECEIVERS_FILE
from offsets.alerts.receivers import read_receivers


def receivers_can_be_told(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """`kcoord.E005`: the file of receivers cannot be read, or one of them makes no sense."""
    try:
        read_receivers(settings.KCOORD.str(RECEIVERS_FILE))
    except SecretTablesError as error:
        return [Error(str(error), hint="docs/alerts.md says what the file contains.", id="kcoord.E005")]
    return []


class OffsetsConfig(AppConfig):
    """Offsets."""

    name = "offsets"
    label = "offsets"
    verbose_name = "Offsets"

    def ready(self) -> None:
        """When any process deletes a group or a topic, its offsets are deleted with a line of the journal each.

        Receivers of alerts are checked together with the settings.
        """
        from django.db.models.signals import post_migrate

        from groups.nodes.store import on_gap
        from groups.store.locked import before_deletion, on_share_change
        from groups.topics import on_topic_deletion, on_watermarks
        from offsets.commit_function import tell_settings
        from offsets.commits.retention import deleted_topics
        from offsets.commits.store import journal_deletion
        from offsets.share import hooks

        register(receivers_can_be_told, TAG)
        before_deletion(journal_deletion)
        before_deletion(hooks.forget_group)
        on_share_change(hooks.follow_members)
        on_gap(hooks.extend_locks)
        on_watermarks(hooks.follow_end)
        on_topic_deletion(hooks.forget_topic)
        on_topic_deletion(deleted_topics.note, deleted_topics.follow_up)
        post_migrate.connect(tell_settings, sender=self)
