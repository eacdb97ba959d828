"""Request and response of the pins endpoint."""

from __future__ import annotations

from typing import Annotated

from kcoord.rest.answers import Answer, Instant, NextCursor, doc
from kcoord.rest.fields import StrictSerializer, Text

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


class PinView(Answer):
    """A pin: these offsets do not expire."""

    topic: Annotated[str | None, doc("null: all topics of the group.")]
    pinned_at: Instant
    pinned_by: Annotated[str, doc("Name of the token or account.")]
    reason: str


class PinPage(Answer):
    """A page of pins by topic, the pin of all topics first."""

    group_id: str
    pins: list[PinView]
    next_cursor: NextCursor
