"""Verdicts as text: what is wrong, since when, what happens next, and what to do. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from frontend.ui.rows import Millis, Names
from frontend.ui.states import State, state
from frontend.ui.wording import Due, elided, joined, member_name, plural, span
from groups.core.model.types import VerdictKind
from offsets.verdicts import Summary

KINDS: Mapping[VerdictKind, State] = {
    VerdictKind.UNCOVERED: State("uncovered", "Uncovered", "bad", "Nobody owns some partitions of a topic it reads."),
    VerdictKind.UNATTENDED: State(
        "unattended", "Unattended", "bad", "Items are to be worked on, and it has no members."
    ),
    VerdictKind.STALLED: State(
        "stalled", "Stalled", "bad", "Owners of partitions make no progress although there are records to read."
    ),
    VerdictKind.UNSETTLED: State("unsettled", "Unsettled", "bad", "Members keep items without settling them."),
    VerdictKind.STUCK: State("stuck", "Stuck", "bad", "A rebalance does not end."),
    VerdictKind.LATE: State("late", "Late", "warn", "Members miss heartbeats and are about to be removed."),
    VerdictKind.EXPIRING: State("expiring", "Expiring", "warn", "Committed offsets are about to be removed."),
    VerdictKind.DEAD_LETTERS: State("dead-letters", "Dead letters", "warn", "Items were given up."),
    VerdictKind.FLAPPING: State("flapping", "Flapping", "warn", "It rebalances again and again."),
    VerdictKind.DISPUTED: State(
        "disputed", "Disputed", "warn", "Logs are reported to end earlier than before, which does not count."
    ),
    VerdictKind.STALE: State(
        "stale", "Stale", "idle", "No new watermarks are reported: lag is at least what is shown."
    ),
}
"""What each kind is called, and what it means; a test checks that none is missing."""

LOWER_END_REMEDY = (
    "If the log was truncated, report that it was; if the topic was deleted and created, do that here too; otherwise "
    "correct who reports another log."
)

PLACES: Mapping[VerdictKind, str] = {
    VerdictKind.UNCOVERED: "?#partitions-title",
    VerdictKind.UNATTENDED: "?#share-partitions-title",
    VerdictKind.STALLED: "?tab=offsets&sort=lag#offsets-title",
    VerdictKind.UNSETTLED: "/items?state=acquired",
    VerdictKind.DEAD_LETTERS: "/dead-letters",
    VerdictKind.STUCK: "?tab=members#members-title",
    VerdictKind.LATE: "?tab=members&sort=heartbeat#members-title",
    VerdictKind.EXPIRING: "?tab=offsets&sort=committed#offsets-title",
    VerdictKind.FLAPPING: "?#events-title",
    VerdictKind.DISPUTED: "?#lag-title",
    VerdictKind.STALE: "?#lag-title",
}
"""Where on the page of a group to look, relative to its URL."""

NOBODY: Names = {}
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
    where: str
    next: Due | None = None
    due_at: Millis | None = None
    lasts: bool = True


def lines(
    verdicts: Iterable[Summary],
    group_state: str,
    *,
    window_ms: Millis,
    explained: bool = False,
    names: Names = NOBODY,
    held: bool = False,
) -> list[VerdictLine]:
    """The verdicts on one group in their order.

    `group_state`: the protocol's name of its state. `window_ms`: in which time rebalances are counted.
    `explained`: the page says beside them why the group is in it. `names`: those of members that the page knows.
    `held`: an operator keeps members out of the group at the moment.
    """
    in_state = state(group_state)
    found = [_line(verdict, in_state, names, window_ms, explained=explained) for verdict in verdicts]
    return [_of_held(line) for line in found] if held else found


def _of_held(line: VerdictLine) -> VerdictLine:
    """A verdict on a group that nobody can join now: offsets do not expire, and nobody who reads is missing."""
    goes_on = line.next is not None and line.state is not KINDS[VerdictKind.EXPIRING]
    said = replace(line, advice=f"The group is held. {WHILE_HELD.get(line.state.name, line.advice)}")
    return said if goes_on else replace(said, next=None, due_at=None)


WHILE_HELD: Mapping[str, str] = {
    "expiring": "No offset expires before the hold ends. Pin them if nobody will join after it.",
    "flapping": "The rebalances were before the hold.",
}
"""Advice by kind that is another one while members cannot join."""


def _line(verdict: Summary, group_state: State, names: Names, window_ms: Millis, *, explained: bool) -> VerdictLine:
    text, advice = _words(verdict, group_state, names, window_ms)
    if verdict.kind is VerdictKind.STUCK and not explained:
        text += f" {group_state.meaning}"
    return VerdictLine(
        KINDS[verdict.kind],
        verdict.since,
        text,
        advice,
        PLACES[verdict.kind],
        NEXT.get(verdict.kind) if verdict.due_at is not None else None,
        verdict.due_at,
        verdict.kind is not VerdictKind.EXPIRING,
    )


NEXT: Mapping[VerdictKind, Due] = {
    VerdictKind.STUCK: Due(
        "Members that have not joined or synced are removed",
        "Members that have not joined or synced should have been removed",
    ),
    VerdictKind.LATE: Due("The first loses its partitions", "The first should have lost its partitions"),
    VerdictKind.EXPIRING: Due("The first expires", "The first should have expired"),
}
"""What happens by itself when a verdict is due; the instant follows."""


def _words(verdict: Summary, group_state: State, names: Names, window_ms: Millis) -> tuple[str, str]:
    """What is wrong, and what to do."""
    number, one = verdict.number, verdict.number == 1
    match verdict.kind:
        case VerdictKind.UNCOVERED:
            return f"{_partitions(verdict)} {'has' if one else 'have'} no owner.", (
                "Look at what the members subscribe to. A classic group assigns new partitions when its members join "
                "again: restart one of them."
            )
        case VerdictKind.STALLED:
            waiting = f"{plural(verdict.lag or 0, 'record')} {'waits' if verdict.lag == 1 else 'wait'}"
            return f"{_partitions(verdict)} {'makes' if one else 'make'} no progress while {waiting}.", (
                "The owner sends heartbeats but commits nothing new: look in its log for an error, a record that it "
                "cannot process, or a call that hangs. Removing the member gives its partitions to others."
            )
        case VerdictKind.UNATTENDED:
            items = plural(verdict.lag or 0, "item")
            return (
                f"{items} of {_topics(verdict)} {'waits' if verdict.lag == 1 else 'wait'}, and nobody works on them.",
                ("Start a worker. If nobody is to work on them any more, delete the group."),
            )
        case VerdictKind.UNSETTLED:
            kept = f"{plural(number, 'item')} of {_topics(verdict)}"
            return f"{kept} {'is' if one else 'are'} kept by {_keepers(verdict, names)} and not settled.", (
                "See whether the worker hangs. Releasing the items gives them to others, and they may be done twice."
            )
        case VerdictKind.DEAD_LETTERS:
            return f"{plural(number, 'item')} of {_topics(verdict)} {'was' if one else 'were'} given up.", (
                "Read the errors. Replay the items once what failed is mended, or discard them."
            )
        case VerdictKind.STUCK:
            return f"“{group_state.label}” does not end.", (
                "See which members it waits for, and look at these workers or remove them."
            )
        case VerdictKind.LATE:
            return f"{_members(verdict, names)}.", (
                "See whether the worker hangs, is overloaded, or has lost its network."
            )
        case VerdictKind.EXPIRING:
            return f"{plural(number, 'committed offset')} of {_topics(verdict)} will be removed.", (
                "Nobody reads these topics in this group any more. Pin the offsets if somebody will come back."
            )
        case VerdictKind.FLAPPING:
            return f"{plural(number, 'rebalance')} within {span(window_ms)}.", (
                "The events say who came, left or timed out. Common causes are workers that crash, and processing that "
                "takes longer than the session."
            )
        case VerdictKind.DISPUTED:
            return f"An earlier end is reported of {_partitions(verdict, plain=True)}, which does not count.", (
                f"The page of the topic says who reports it. {LOWER_END_REMEDY}"
            )
        case VerdictKind.STALE:
            return f"No new watermarks are reported of {_partitions(verdict, plain=True)}.", (
                "The logs may have grown since: lag is at least what is shown. Check what reports the watermarks: the "
                "producers, or a probe."
            )


def _members(verdict: Summary, names: Names) -> str:
    """`a@h (a-1) sends no heartbeats`, `4 members send no heartbeats: a@h (a-1), b@h (b-1) and 2 more`."""
    known = [member_name(member_id, names) for member_id in verdict.names]
    if verdict.number == 1:
        return f"{known[0] if known else '1 member'} sends no heartbeats"
    said = f"{plural(verdict.number, 'member')} send no heartbeats"
    shown = known if verdict.number == len(known) <= NAMED else known[: NAMED - 1]
    more = verdict.number - len(shown)
    if not shown:
        return said
    return f"{said}: {joined([*shown, f'{more:,} more'] if more else shown, NAMED)}"


def _keepers(verdict: Summary, names: Names) -> str:
    return joined([member_name(member_id, names) for member_id in verdict.names], NAMED)


def _partitions(verdict: Summary, *, plain: bool = False) -> str:
    """`Partition 3 of orders`, `12 partitions of orders and refunds`; `plain`: within a sentence."""
    named = verdict.topic_count == 1 and verdict.number <= min(len(verdict.names), NAMED)
    if not named:
        return f"{plural(verdict.number, 'partition')} of {_topics(verdict)}"
    word = "partition" if verdict.number == 1 else "partitions"
    return f"{word if plain else word.capitalize()} {joined(verdict.names, NAMED)} of {_topics(verdict)}"


def _topics(verdict: Summary) -> str:
    names = [elided(topic) for topic in verdict.topics[:NAMED]]
    if verdict.topic_count > len(names):
        names = [*names[: NAMED - 1], f"{verdict.topic_count - NAMED + 1:,} more topics"]
    return joined(names, NAMED)


VERDICTS: Mapping[str, State] = {kind.value: state for kind, state in KINDS.items()}
"""What a rule can watch for, the worst first."""


def verdict_state(kind: str) -> State:
    """A kind of verdict as pages show it; another service may know more of them."""
    return VERDICTS.get(kind) or State(kind, kind, "warn", "This version does not know the verdict.")
