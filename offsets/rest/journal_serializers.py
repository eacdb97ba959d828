"""Request and response of the journal's endpoint."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from kcoord.http.types import INT32_MAX
from kcoord.rest.fields import Choice, Instant, Int32, NextCursor, PageQuery, Text
from offsets.core.types import ChangeKind

KINDS = [kind.value for kind in ChangeKind]


class JournalQuery(PageQuery):
    """Parameters of the history of a group's offsets."""

    topic = Text(required=False, max_length=249, help_text="Only this topic.")
    partition = serializers.IntegerField(
        required=False, min_value=0, max_value=INT32_MAX, help_text="Only this partition of `topic`."
    )
    kind = serializers.ListField(
        child=Choice(KINDS), required=False, max_length=len(KINDS), help_text="One of these kinds. Repeatable."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields, plus two that cannot be declared as attributes: `from` is a Python keyword."""
        return {
            **super().get_fields(),
            "from": Instant(required=False, help_text="Only changes at or after this instant."),
            "to": Instant(required=False, help_text="Only changes before this instant."),
        }


class JournalLineView(serializers.Serializer[Any]):
    """A change of the committed offset of a partition."""

    id = serializers.IntegerField(help_text="Grows with each line of a group.")
    at = Instant()
    kind = serializers.ChoiceField(
        KINDS,
        help_text="commit, txn_commit: by a consumer; reset: by a plan or as start offset; restore: by undoing a "
        "plan; import: from a file; delete, expire, group_delete, topic_delete: the offset was removed; items_begin, "
        "items_done, items_dead: items of a share group, which `metadata` names as ranges of offsets.",
    )
    topic = serializers.CharField()
    partition = Int32(min_value=0)
    committed_offset = serializers.IntegerField(
        allow_null=True, help_text="The next offset to read; null: the offset was removed, or the group has none."
    )
    committed_leader_epoch = Int32(help_text="-1: unknown.")
    metadata = serializers.CharField(allow_blank=True)
    member_id = serializers.CharField(allow_blank=True, help_text="Empty: not by a member.")
    generation_id = Int32(help_text="Generation or member epoch of the commit; -1: none.")
    client_id = serializers.CharField(allow_blank=True)
    principal = serializers.CharField(
        allow_blank=True, help_text="Name of the token or account; empty: the service itself."
    )
    transactional_id = serializers.CharField(allow_null=True)
    plan_id = serializers.CharField(allow_null=True, help_text="The plan that was applied or undone.")
    expires_at = Instant(allow_null=True, help_text="Set if the commit had a retention time.")


class JournalPage(serializers.Serializer[Any]):
    """A page of the history, newest first."""

    group_id = serializers.CharField()
    commits = JournalLineView(many=True)
    next_cursor = NextCursor()
