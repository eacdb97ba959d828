"""One act on several groups: what it would do to each of them, or why it cannot be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontend.allowed import CHANGE_LABELS, DELETE_GROUP, HOLD, missing
from frontend.queries import GroupBrief
from frontend.shown import HIDDEN_TOPICS, UNKNOWN, Shown, shown
from frontend.states import State, state
from frontend.viewer import Viewer
from frontend.views.groups import group_url
from frontend.wording import plural

MOST_GROUPS = 100
"""In one review: what a person can be expected to read before confirming it."""


class Act(StrEnum):
    """What can be done to several groups at once."""

    HOLD = "hold"
    RELEASE = "release"
    LABELS = "labels"
    DELETE = "delete"


LABELS = {Act.HOLD: "Hold", Act.RELEASE: "End hold", Act.LABELS: "Label", Act.DELETE: "Delete"}
NEEDS = {Act.HOLD: HOLD, Act.RELEASE: HOLD, Act.LABELS: CHANGE_LABELS, Act.DELETE: DELETE_GROUP}


@dataclass(frozen=True, slots=True)
class Offer:
    """A button of the list. `missing`: why the account may not use it, "" if it may; `bad`: destructive."""

    name: str
    label: str
    missing: str
    bad: bool


@dataclass(frozen=True, slots=True)
class Review:
    """An act on one group before it is done. `brief` None: the group does not exist; `obstacle` "": it can be done."""

    group_id: str
    url: str
    brief: GroupBrief | None
    state: State | None
    effect: str = ""
    obstacle: str = ""
    lag: Shown[int] = UNKNOWN


def offered(viewer: Viewer) -> Sequence[Offer]:
    """The acts as a person sees them."""
    return [Offer(act.value, LABELS[act], missing(viewer, NEEDS[act]), bad=act is Act.DELETE) for act in Act]


def review(viewer: Viewer, act: Act, group_ids: Iterable[str], briefs: Mapping[str, GroupBrief]) -> list[Review]:
    """What the act would do to each group, in the given order, or what the person lacks for it."""
    return [_review(viewer, act, group_id, briefs.get(group_id)) for group_id in group_ids]


def _review(viewer: Viewer, act: Act, group_id: str, brief: GroupBrief | None) -> Review:
    url = group_url(group_id)
    if brief is None:
        return Review(group_id, url, None, None, obstacle="There is no such group; it may have been deleted.")
    lacking = missing(viewer, NEEDS[act], group_id)
    effect, obstacle = ("", lacking) if lacking else _OUTLOOKS[act](brief)
    hidden = None if viewer.topics.unlimited else HIDDEN_TOPICS
    if act is Act.DELETE and effect and hidden:
        effect += " Offsets on topics that you may not see are deleted, too."
    lag = shown(brief.lag, brief.lag_sampled_at, hidden=hidden)
    return Review(group_id, url, brief, state(brief.state, held=brief.held), effect, obstacle, lag)


def _hold(brief: GroupBrief) -> tuple[str, str]:
    leaving = f"Its {plural(brief.members, 'member')} will be removed" if brief.members else ""
    if brief.held:
        return (f"{leaving}, and its" if leaving else "Its") + " present hold is replaced.", ""
    return f"{leaving}, and none can join." if leaving else "No member can join.", ""


def _release(brief: GroupBrief) -> tuple[str, str]:
    return ("Members can join again.", "") if brief.held else ("", "It is not held.")


def _labels(brief: GroupBrief) -> tuple[str, str]:
    return "Gets the labels written below, and loses those with Remove ticked; its other labels stay.", ""


def _delete(brief: GroupBrief) -> tuple[str, str]:
    if brief.members:
        return "", f"It has {plural(brief.members, 'member')}: stop them, or hold the group first."
    if not brief.offsets:
        return "Deleted; it has no committed offsets.", ""
    offsets = plural(brief.offsets, "committed offset")
    return f"Deleted with {offsets} on {plural(brief.topics, 'topic')}.", ""


_OUTLOOKS = {Act.HOLD: _hold, Act.RELEASE: _release, Act.LABELS: _labels, Act.DELETE: _delete}
