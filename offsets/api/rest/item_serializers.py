"""Requests and responses of the items, dead letters and offsets of share groups."""

from __future__ import annotations

from typing import Annotated, Any

from rest_framework import serializers

from kcoord.control.rest.answers import Answer, Int32, Natural, Natural32, NextCursor, doc, error_name
from kcoord.control.rest.fields import Choice, Number, PageQuery, PeriodQuery, StrictSerializer, Text
from kcoord.door.http.types import INT32_MAX
from offsets.share.operators import CAUSES, STATES, DeadLetterView, ItemView, ShareOffsetView

MOST_ENTRIES = 1_000
MOST_IDS = 10_000
MOST_RANGES = 10_000
LARGEST_OFFSET = 10**18 - 1


class Range(serializers.ListField):
    """The first and the last offset, both included."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=Number(min_value=0, max_value=LARGEST_OFFSET), min_length=2, max_length=2, **kwargs)

    def to_internal_value(self, data: Any) -> list[int]:
        """The two numbers. Raises ValidationError if the last is before the first."""
        found: list[int] = super().to_internal_value(data)
        if len(found) == 2 and found[0] > found[1]:  # another length is refused by the validators
            raise serializers.ValidationError(f"[{found[0]}, {found[1]}] ends before it begins")
        return found


class ItemQuery(PageQuery):
    """Parameters of the list of items."""

    state = Choice(STATES, required=False, help_text="Only items in this state.")
    member = Text(required=False, max_length=300, help_text="Only what this member has, or had last.")
    topic = Text(required=False, max_length=249, help_text="Only this topic.")


class ItemPage(Answer):
    """A page of items: what members have, then what is to be delivered again."""

    group_id: str
    items: list[ItemView]
    next_cursor: NextCursor


class ChosenItems(StrictSerializer):
    """Items of a partition."""

    topic = Text(max_length=249)
    partition = Number(min_value=0, max_value=INT32_MAX)
    offsets = serializers.ListField(child=Range(), min_length=1, max_length=MOST_RANGES)


class ItemsToOperate(StrictSerializer):
    """Items, no matter which member has them."""

    items = serializers.ListField(child=ChosenItems(), min_length=1, max_length=MOST_ENTRIES)
    error = Text(
        required=False,
        allow_null=True,
        default=None,
        max_length=2_000,
        help_text="What the next worker, or the dead letter, says; null: what the last attempt said.",
    )


class ReleasedItems(Answer):
    """How many items were released."""

    released: Natural


class RejectedItems(Answer):
    """How many items were rejected."""

    rejected: Natural


class DeadLetterQuery(PeriodQuery):
    """Parameters of the list of dead letters."""

    of = "those given up"
    topic = Text(required=False, max_length=249, help_text="Only this topic.")
    cause = Choice(CAUSES, required=False, help_text="Only those with this cause.")


class DeadLetterPage(Answer):
    """A page of dead letters, oldest first."""

    group_id: str
    dead_letters: list[DeadLetterView]
    next_cursor: NextCursor


class DeadLettersToDiscard(StrictSerializer):
    """Dead letters by id; those that do not exist any more are ignored."""

    ids = serializers.ListField(child=Number(min_value=1), min_length=1, max_length=MOST_IDS)


class DeadLettersToReplay(DeadLettersToDiscard):
    """The same, and whether they count as never delivered."""

    reset_count = serializers.BooleanField(
        default=True, help_text="false: they are delivered as often as is left, once at least."
    )


class ReplayedDeadLetters(Answer):
    """How many are delivered again."""

    replayed: Natural


class DiscardedDeadLetters(Answer):
    """How many were removed."""

    discarded: Natural


class ShareOffsets(Answer):
    """All partitions that the group has begun, by topic and number."""

    group_id: str
    partitions: list[ShareOffsetView]
    lag: Annotated[Natural | None, doc("Of the partitions of which it is known; null: of none.")]


class NewStart(StrictSerializer):
    """Where a partition begins again."""

    topic = Text(max_length=249)
    partition = Number(min_value=0, max_value=INT32_MAX)
    start_offset = Number(min_value=0, max_value=LARGEST_OFFSET)


class ShareOffsetsToAlter(StrictSerializer):
    """Partitions with their new starts. One that is named twice keeps its last."""

    partitions = serializers.ListField(child=NewStart(), min_length=1, max_length=MOST_IDS)


class AlteredStart(Answer):
    """The result for one partition."""

    topic: str
    partition: Natural32
    error_code: Int32
    error: Annotated[str, error_name("NONE, UNKNOWN_TOPIC_OR_PARTITION or TOPIC_AUTHORIZATION_FAILED.")]


class AlteredShareOffsets(Answer):
    """A result for each partition."""

    partitions: list[AlteredStart]


class ForgottenQuery(StrictSerializer):
    """Topics that the group forgets."""

    topic = serializers.ListField(
        child=Text(max_length=249), min_length=1, max_length=MOST_ENTRIES, help_text="A topic. Repeatable."
    )


class ForgottenTopic(Answer):
    """The result for one topic."""

    topic: str
    error_code: Int32
    error: Annotated[str, error_name("NONE, UNKNOWN_TOPIC_OR_PARTITION or TOPIC_AUTHORIZATION_FAILED.")]


class ForgottenTopics(Answer):
    """A result for each topic."""

    topics: list[ForgottenTopic]
