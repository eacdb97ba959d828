"""Request and response of the journal's endpoint."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from kcoord.http.types import INT32_MAX
from kcoord.rest.fields import Choice, Instant, NextCursor, PageQuery, Text
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
            "from": Instant(required=False, help_text="Nothing before this instant."),
            "to": Instant(required=False, help_text="Only what was before this instant."),
        }


class JournalLineView(serializers.Serializer[Any]):
    """A change of the committed offset of a partition."""

    id = serializers.IntegerField(help_text="Of two lines of a group the larger one was written later.")
    at = Instant()
    kind = serializers.ChoiceField(
        KINDS,
        help_text="commit and txn_commit: a consumer did it; reset: a plan or start offsets; restore: a plan was "
        "undone; import: a file; delete, expire, group_delete, topic_delete: the offset was removed.",
    )
    topic = serializers.CharField()
    partition = serializers.IntegerField(min_value=0)
    committed_offset = serializers.IntegerField(
        allow_null=True, help_text="The next offset to read; null: nothing was committed any more."
    )
    committed_leader_epoch = serializers.IntegerField(help_text="-1: not known.")
    metadata = serializers.CharField(allow_blank=True)
    member_id = serializers.CharField(allow_blank=True, help_text="Empty: no member did it.")
    generation_id = serializers.IntegerField(
        help_text="The generation, or member epoch, that the commit named; -1: none."
    )
    client_id = serializers.CharField(allow_blank=True)
    principal = serializers.CharField(
        allow_blank=True, help_text="Name of the token or account that asked; empty: the service itself."
    )
    transactional_id = serializers.CharField(allow_null=True)
    plan_id = serializers.CharField(allow_null=True, help_text="The plan that was applied or undone.")
    expires_at = Instant(allow_null=True, help_text="Where the commit named a retention time.")


class JournalPage(serializers.Serializer[Any]):
    """A page of the history, newest first."""

    group_id = serializers.CharField()
    commits = JournalLineView(many=True)
    next_cursor = NextCursor()
