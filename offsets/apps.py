"""Django application."""

from django.apps import AppConfig


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
        from offsets import checks  # noqa: F401
        from offsets.commit_function import tell_settings
        from offsets.commits.retention import deleted_topics
        from offsets.commits.store import journal_deletion
        from offsets.share import hooks

        before_deletion(journal_deletion)
        before_deletion(hooks.forget_group)
        on_share_change(hooks.follow_members)
        on_gap(hooks.extend_locks)
        on_watermarks(hooks.follow_end)
        on_topic_deletion(hooks.forget_topic)
        on_topic_deletion(deleted_topics.note, deleted_topics.follow_up)
        post_migrate.connect(tell_settings, sender=self)
