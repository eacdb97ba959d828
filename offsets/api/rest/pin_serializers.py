"""Request and response of the pins endpoint."""

from __future__ import annotations

from kcoord.control.rest.answers import Answer, NextCursor
from kcoord.control.rest.fields import StrictSerializer, Text
from offsets.commits.retention.pins import PinView

MAX_REASON = 1_000


class NewPin(StrictSerializer):
    """What to keep, and why."""

    topic = Text(
        required=False,
        allow_null=True,
        default=None,
        max_length=249,
        help_text="null: all topics of the group, including future ones.",
    )
    reason = Text(
        required=False, allow_blank=True, default="", max_length=MAX_REASON, help_text="Why; shown with the pin."
    )


class PinnedQuery(StrictSerializer):
    """Selects a pin."""

    topic = Text(required=False, max_length=249, help_text="Without it: the pin of all topics.")


class PinPage(Answer):
    """A page of pins by topic, the pin of all topics first."""

    group_id: str
    pins: list[PinView]
    next_cursor: NextCursor
