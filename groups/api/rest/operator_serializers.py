"""Requests and responses of the hold and kick endpoints."""

from __future__ import annotations

from typing import Annotated

from kcoord.control.rest.answers import Answer, Instant, Natural32, doc
from kcoord.control.rest.fields import Number, StrictSerializer, Text

MAX_REASON = 1_000


class Reason(Text):
    """Why an operator does something."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            allow_blank=True,
            default="",
            max_length=MAX_REASON,
            help_text="Why; recorded in the events of the group.",
        )


class NewHold(StrictSerializer):
    """How long members may not join, and why."""

    duration_ms = Number(min_value=1, help_text="At most 3600000 (an hour).")
    reason = Reason()


class HoldView(Answer):
    """A hold: no member may join before it ends."""

    until: Annotated[Instant, doc("When the hold ends by itself.")]
    by: Annotated[str, doc("Name of the token or account.")]
    reason: str


class HeldGroup(Answer):
    """The result of holding a group."""

    group_id: str
    hold: HoldView
    removed_members: Annotated[Natural32, doc("Number of members that were removed.")]


class Kick(StrictSerializer):
    """Why a member is removed."""

    reason = Reason()
