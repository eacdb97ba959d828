"""Request and response of the journal's endpoint."""

from __future__ import annotations

from typing import Annotated, Any

from rest_framework import serializers

from kcoord.http.types import INT32_MAX
from kcoord.rest.answers import Answer, Instant, Int32, Natural32, NextCursor, doc, one_of
from kcoord.rest.fields import Choice, InstantInput, PageQuery, Text
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
            "from": InstantInput(required=False, help_text="Only changes at or after this instant."),
            "to": InstantInput(required=False, help_text="Only changes before this instant."),
        }


class JournalLineView(Answer):
    """A change of the committed offset of a partition."""

    id: Annotated[int, doc("Grows with each line of a group.")]
    at: Instant
    kind: Annotated[
        str,
        one_of(
            KINDS,
            "commit, txn_commit: by a consumer; reset: by a plan or as start offset; restore: by undoing a plan; "
            "import: from a file; delete, expire, group_delete, topic_delete: the offset was removed; items_begin, "
            "items_done, items_dead: items of a share group, which `metadata` names as ranges of offsets.",
        ),
    ]
    topic: str
    partition: Natural32
    committed_offset: Annotated[
        int | None, doc("The next offset to read; null: the offset was removed, or the group has none.")
    ]
    committed_leader_epoch: Annotated[Int32, doc("-1: unknown.")]
    metadata: str
    member_id: Annotated[str, doc("Empty: not by a member.")]
    generation_id: Annotated[Int32, doc("Generation or member epoch of the commit; -1: none.")]
    client_id: str
    principal: Annotated[str, doc("Name of the token or account; empty: the service itself.")]
    transactional_id: str | None
    plan_id: Annotated[str | None, doc("The plan that was applied or undone.")]
    expires_at: Annotated[Instant | None, doc("Set if the commit had a retention time.")]


class JournalPage(Answer):
    """A page of the history, newest first."""

    group_id: str
    commits: list[JournalLineView]
    next_cursor: NextCursor
