"""Verdicts as text: what is wrong, since when, what happens next, and what to do. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from frontend.rows import Millis
from frontend.states import State, state
from frontend.wording import joined, plural, short_id
from groups.core.model.verdicts import VerdictKind
from offsets.core.verdicts import Verdict, worst_first

KINDS: Mapping[VerdictKind, State] = {
    VerdictKind.UNCOVERED: State("uncovered", "Uncovered", "bad", "Nobody owns some partitions of a topic it reads."),
    VerdictKind.STALLED: State(
        "stalled", "Stalled", "bad", "Owners of partitions make no progress although there are records to read."
    ),
    VerdictKind.STUCK: State("stuck", "Stuck", "bad", "A rebalance does not end."),
    VerdictKind.LATE: State("late", "Late", "warn", "Members miss heartbeats and are about to be removed."),
    VerdictKind.EXPIRING: State("expiring", "Expiring", "warn", "Committed offsets are about to be removed."),
    VerdictKind.FLAPPING: State("flapping", "Flapping", "warn", "It rebalances again and again."),
    VerdictKind.STALE: State("stale", "Stale", "idle", "No watermarks are reported, so lag is not known."),
}
"""What each kind is called, and what it means; a test checks that none is missing."""

ANCHORS: Mapping[VerdictKind, str] = {
    VerdictKind.UNCOVERED: "partitions-title",
    VerdictKind.STALLED: "offsets-title",
    VerdictKind.STUCK: "members-title",
    VerdictKind.LATE: "members-title",
    VerdictKind.EXPIRING: "offsets-title",
    VerdictKind.FLAPPING: "events-title",
    VerdictKind.STALE: "lag-title",
}
"""Where on the page of a group to look."""

NAMED = 3
"""The maximum number of members, partitions and topics named in a sentence."""


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """A verdict as text, of all its topics together.

    `text` goes on after the label of `state`: what is wrong. `next`: what happens by itself, at `due_at` if that is
    known. `advice`: what to do. `lasts`: it began at `since`; offsets that expire have no such beginning.
    """

    state: State
    since: Millis
    text: str
    advice: str
    anchor: str
    next: str = ""
    due_at: Millis | None = None
    lasts: bool = True


def lines(verdicts: Iterable[Verdict], group_state: str) -> list[VerdictLine]:
    """The verdicts on one group, one line for each kind, the worst first. `group_state`: its state's protocol name."""
    return [_line(kind, list(found), group_state) for kind, found in groupby(worst_first(verdicts), lambda v: v.kind)]


def _line(kind: VerdictKind, found: Sequence[Verdict], group_state: str) -> VerdictLine:
    text, advice = _words(kind, found, group_state)
    due = [verdict.due_at for verdict in found if verdict.due_at is not None]
    return VerdictLine(
        KINDS[kind],
        min(verdict.since for verdict in found),
        text,
        advice,
        ANCHORS[kind],
        NEXT.get(kind, "") if due else "",
        min(due, default=None),
        kind is not VerdictKind.EXPIRING,
    )


NEXT: Mapping[VerdictKind, str] = {
    VerdictKind.STUCK: "Who is missing is removed",
    VerdictKind.LATE: "Removed",
    VerdictKind.EXPIRING: "The first is removed",
}
"""What happens by itself when a verdict is due; the instant follows."""


def _words(kind: VerdictKind, found: Sequence[Verdict], group_state: str) -> tuple[str, str]:
    first, number = found[0], sum(verdict.number for verdict in found)
    match kind:
        case VerdictKind.UNCOVERED:
            has = "has" if number == 1 else "have"
            return f"{_partitions(found)} {has} no owner.", (
                "See who the members are and what they subscribe to. A classic group assigns new partitions when its "
                "members join again: restart one of them."
            )
        case VerdictKind.STALLED:
            lag = sum(verdict.lag or 0 for verdict in found)
            verb = "makes" if number == 1 else "make"
            return f"{_partitions(found)} {verb} no progress, {plural(lag, 'record')} behind.", (
                "The owner sends heartbeats but does not commit: look at its log for an error, a record it cannot "
                "process, or a call that hangs. Removing the member gives its partitions to others."
            )
        case VerdictKind.STUCK:
            return f"{state(group_state).label} does not end. {state(group_state).meaning}", (
                "The page of the group names who is waited for. Look at that worker, or remove the member."
            )
        case VerdictKind.LATE:
            sends = "sends" if number == 1 else "send"
            return f"{_members(first, number)} {sends} no heartbeats.", (
                "Look whether the worker hangs, is overloaded or has lost its network."
            )
        case VerdictKind.EXPIRING:
            return f"{plural(number, 'committed offset')} of {_topics(found)} will expire.", (
                "Nobody reads these topics in this group any more. Pin the offsets if somebody will come back."
            )
        case VerdictKind.FLAPPING:
            return f"{plural(number, 'rebalance')} within a few minutes.", (
                "The events say who came, left or timed out. Frequent causes are workers that crash, and processing "
                "that takes longer than the session."
            )
        case VerdictKind.STALE:
            return f"No watermark has been reported of {_partitions(found)}.", (
                "Lag is not known meanwhile. Check what reports the watermarks: producers, or a probe."
            )


def _partitions(found: Sequence[Verdict]) -> str:
    number = sum(verdict.number for verdict in found)
    if len(found) > 1:
        return f"{plural(number, 'partition')} of {_topics(found)}"
    only = found[0]
    if number > len(only.names) or number > NAMED:
        return f"{plural(number, 'partition')} of {only.topic}"
    return f"{'Partition' if number == 1 else 'Partitions'} {joined(only.names, NAMED)} of {only.topic}"


def _topics(found: Sequence[Verdict]) -> str:
    return joined([verdict.topic for verdict in found], NAMED)


def _members(verdict: Verdict, number: int) -> str:
    if number == 1 and verdict.names:
        return short_id(verdict.names[0])
    return plural(number, "member")
