"""Requests and responses of the items, dead letters and offsets of share groups."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from kcoord.http.types import INT32_MAX
from kcoord.protocol.errors import Error
from kcoord.rest.fields import Choice, Instant, Int32, NextCursor, Number, Offset, PageQuery, StrictSerializer, Text

MOST_ENTRIES = 1_000
MOST_IDS = 10_000
MOST_RANGES = 10_000
LARGEST_OFFSET = 10**18 - 1

STATES = ["acquired", "retry", "delayed"]
CAUSES = ["rejected", "limit"]
ERROR_NAMES = [error.name for error in Error]


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


class ItemView(serializers.Serializer[Any]):
    """Items of a partition in the same state."""

    state = serializers.ChoiceField(
        STATES,
        help_text="acquired: a member has them; retry: to be delivered again; delayed: the same, not before `until`.",
    )
    topic = serializers.CharField()
    partition = Int32(min_value=0)
    offsets = serializers.ListField(
        child=serializers.ListField(child=Offset(), min_length=2, max_length=2),
        help_text="First and last offsets, both included.",
    )
    delivery_count = Int32(min_value=0, help_text="How often they were delivered.")
    member_id = serializers.CharField(allow_blank=True, help_text="Who has them, or had them last.")
    lock = serializers.IntegerField(allow_null=True, help_text="The lock of acquired items.")
    acquired_at = Instant(allow_null=True)
    until = Instant(help_text="When the lock is over, or from when on they are available again.")
    last_error = serializers.CharField(allow_null=True, help_text="What the last attempt that failed said.")


class ItemPage(serializers.Serializer[Any]):
    """A page of items: what members have, then what is to be delivered again."""

    group_id = serializers.CharField()
    items = ItemView(many=True)
    next_cursor = NextCursor()


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


class ReleasedItems(serializers.Serializer[Any]):
    """How many items were released."""

    released = Number(min_value=0)


class RejectedItems(serializers.Serializer[Any]):
    """How many items were rejected."""

    rejected = Number(min_value=0)


class DeadLetterQuery(PageQuery):
    """Parameters of the list of dead letters."""

    topic = Text(required=False, max_length=249, help_text="Only this topic.")
    cause = Choice(CAUSES, required=False, help_text="Only those with this cause.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields, plus two that cannot be declared as attributes: `from` is a Python keyword."""
        return {
            **super().get_fields(),
            "from": Instant(required=False, help_text="Only those given up at or after this instant."),
            "to": Instant(required=False, help_text="Only those given up before this instant."),
        }


class DeadLetterView(serializers.Serializer[Any]):
    """An item that was given up."""

    id = serializers.IntegerField()
    topic = serializers.CharField()
    partition = Int32(min_value=0)
    offset = Offset()
    delivery_count = Int32(min_value=1)
    cause = serializers.ChoiceField(CAUSES, help_text="rejected, or limit: delivered as often as allowed.")
    error = serializers.CharField(allow_null=True)
    member_id = serializers.CharField(allow_blank=True, help_text="Who had it last.")
    at = Instant()


class DeadLetterPage(serializers.Serializer[Any]):
    """A page of dead letters, oldest first."""

    group_id = serializers.CharField()
    dead_letters = DeadLetterView(many=True)
    next_cursor = NextCursor()


class DeadLettersToDiscard(StrictSerializer):
    """Dead letters by id; those that do not exist any more are ignored."""

    ids = serializers.ListField(child=Number(min_value=1), min_length=1, max_length=MOST_IDS)


class DeadLettersToReplay(DeadLettersToDiscard):
    """The same, and whether they count as never delivered."""

    reset_count = serializers.BooleanField(
        default=True, help_text="false: they are delivered as often as is left, once at least."
    )


class ReplayedDeadLetters(serializers.Serializer[Any]):
    """How many are delivered again."""

    replayed = Number(min_value=0)


class DiscardedDeadLetters(serializers.Serializer[Any]):
    """How many were removed."""

    discarded = Number(min_value=0)


class ShareOffsetView(serializers.Serializer[Any]):
    """How far the group is with a partition."""

    topic = serializers.CharField()
    topic_id = serializers.CharField()
    partition = Int32(min_value=0)
    start_offset = Offset(allow_null=True, help_text="The first offset that is not finished; null: not decided yet.")
    next_offset = Offset(allow_null=True, help_text="Offsets from here on were never given out.")
    end_offset = Offset(help_text="How far the partition goes, as far as is known.")
    lag = Number(
        allow_null=True, min_value=0, help_text="Items below the end that are not finished (KIP-1226); null: not known."
    )
    acquired = Number(min_value=0, help_text="Items that members have.")
    retry = Number(min_value=0, help_text="Items to be delivered again.")
    delayed = Number(min_value=0, help_text="The same, not yet.")
    dead = Number(min_value=0, help_text="Dead letters.")


class ShareOffsets(serializers.Serializer[Any]):
    """All partitions that the group has begun, by topic and number."""

    group_id = serializers.CharField()
    partitions = ShareOffsetView(many=True)
    lag = Number(allow_null=True, min_value=0, help_text="Of the partitions of which it is known; null: of none.")


class NewStart(StrictSerializer):
    """Where a partition begins again."""

    topic = Text(max_length=249)
    partition = Number(min_value=0, max_value=INT32_MAX)
    start_offset = Number(min_value=0, max_value=LARGEST_OFFSET)


class ShareOffsetsToAlter(StrictSerializer):
    """Partitions with their new starts. One that is named twice keeps its last."""

    partitions = serializers.ListField(child=NewStart(), min_length=1, max_length=MOST_IDS)


class AlteredStart(serializers.Serializer[Any]):
    """The result for one partition."""

    topic = serializers.CharField()
    partition = Int32(min_value=0)
    error_code = Int32()
    error = serializers.ChoiceField(
        ERROR_NAMES, help_text="NONE, UNKNOWN_TOPIC_OR_PARTITION or TOPIC_AUTHORIZATION_FAILED."
    )


class AlteredShareOffsets(serializers.Serializer[Any]):
    """A result for each partition."""

    partitions = AlteredStart(many=True)


class ForgottenQuery(StrictSerializer):
    """Topics that the group forgets."""

    topic = serializers.ListField(
        child=Text(max_length=249), min_length=1, max_length=MOST_ENTRIES, help_text="A topic. Repeatable."
    )


class ForgottenTopic(serializers.Serializer[Any]):
    """The result for one topic."""

    topic = serializers.CharField()
    error_code = Int32()
    error = serializers.ChoiceField(
        ERROR_NAMES, help_text="NONE, UNKNOWN_TOPIC_OR_PARTITION or TOPIC_AUTHORIZATION_FAILED."
    )


class ForgottenTopics(serializers.Serializer[Any]):
    """A result for each topic."""

    topics = ForgottenTopic(many=True)
