"""What a group is doing and what it waits for, in a sentence. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.pages.group.map import names
from frontend.pages.group.reads import ConsumerPart, GroupPage, Handover
from frontend.ui.events import why
from frontend.ui.members import AWAY_EPOCH
from frontend.ui.rows import GroupHeader, Member, Millis, Names
from frontend.ui.states import state
from frontend.ui.wording import Due, joined, member_name, plural, ranges
from groups.core.model.events import EventKind


def explain(page: GroupPage) -> str:
    """One sentence: what the group is doing and what it waits for. For consumer groups: `explain_consumer`."""
    header, counts = page.header, page.counts
    if page.members_hidden:
        return state(header.state).meaning
    if header.type == "share" and not header.is_held(page.now):
        return _share(header, counts.members)
    match header.state:
        case "Empty" if header.is_held(page.now):
            kept = plural(page.totals.committed, "committed offset")
            return f"No members, and none can join while the group is held. {kept} kept."
        case "PreparingRebalance":
            return _preparing(page)
        case "CompletingRebalance":
            leader = member_name(header.leader_id, names(page)) if header.leader_id else "the leader"
            return (
                f"{plural(counts.members, 'member')} joined generation {header.generation_id:,}; the coordinator waits "
                f"for {leader} to assign the partitions."
            )
        case "Stable":
            who = "One member works" if counts.members == 1 else f"{counts.members:,} members work"
            return (
                f"{who} on generation {header.generation_id:,}. A member that sends no heartbeat until its session "
                "ends loses its partitions to the others."
            )
        case "Empty" if counts.pending_ids:
            return f"No members yet; {plural(counts.pending_ids, 'member id')} given out and about to join."
        case "Empty" if page.totals.committed:
            return f"No members. {plural(page.totals.committed, 'committed offset')} kept for the next member."
        case other:
            return state(other).meaning


def _share(header: GroupHeader, members: int) -> str:
    if not members:
        return "No members. A share group has no committed offsets, and stays until it is deleted."
    who = "One member works" if members == 1 else f"{members:,} members share the work"
    return (
        f"{who} at group epoch {header.generation_id:,}. A partition may have several members; one that sends no "
        "heartbeat until its session ends is removed."
    )


def _preparing(page: GroupPage) -> str:
    header, counts = page.header, page.counts
    if header.join_delay_ms is not None:
        return (
            f"The group was empty. {plural(counts.members, 'member')} joined; the coordinator waits for more "
            "before it assigns partitions."
        )
    late, known = [member.member_id for member in page.members if not member.awaiting_join], names(page)
    missing = [member_name(member_id, known) for member_id in late[:MISSING_NAMED]]
    others = counts.members - counts.joined - len(missing)
    named = ", ".join(missing) + (f" and {others:,} more" if others > 0 and missing else "")
    return (
        f"A rebalance has begun. {counts.joined:,} of {plural(counts.members, 'member')} joined again; the coordinator "
        f"waits for {named or 'the others'} to join."
    )


def wait_ends(page: GroupPage) -> Millis | None:
    """The instant until which the group waits as `explain` says; None if it does not wait, or the instant is past.

    The same deadlines are among those of `next_timer`, and pages write both with `when`.
    """
    waits = {"PreparingRebalance": page.header.join_deadline, "CompletingRebalance": page.header.sync_deadline}
    deadline = waits.get(page.header.state)
    return deadline if deadline is not None and deadline > page.now else None


MISSING_NAMED = 3
"""The maximum number of members named that a rebalance waits for."""

LATE_MS = 5_000
"""A timer overdue by more is late: no process handles the group, so the service's timers are not running."""


@dataclass(frozen=True, slots=True)
class NextTimer:
    """The next event that happens automatically; `late` when it should have happened long ago."""

    at: Millis
    what: Due
    late: bool


MEMBER_TIMERS = {
    "session": ("session of {member} ends", "session of {member} should have ended"),
    "rebalance": (
        "{member} is removed if it has not given up its partitions",
        "{member} should have been removed: it has not given up its partitions",
    ),
    "join": (
        "{member} is removed if it has not joined again",
        "{member} should have been removed: it has not joined again",
    ),
    "sync": ("{member} is removed if it has not synced", "{member} should have been removed: it has not synced"),
}


def next_timer(page: GroupPage) -> NextTimer | None:
    """The earliest deadline of the group, as text; None if it has none. The deadlines are those of the core."""
    header = page.header
    timers: list[tuple[Millis, str, str]] = []
    if header.join_deadline is not None and header.join_delay_ms is not None:
        timers.append((header.join_deadline, "the first rebalance begins", "the first rebalance should have begun"))
    elif header.join_deadline is not None:
        timers.append((header.join_deadline, *_removal("members that have not joined")))
    if header.sync_deadline is not None:
        timers.append((header.sync_deadline, *_removal("members that have not synced")))
    if page.earliest_timer is not None:
        member = member_name(page.earliest_timer.member_id, names(page))
        coming, overdue = (words.format(member=member) for words in MEMBER_TIMERS[page.earliest_timer.kind])
        timers.append((page.earliest_timer.deadline, coming, overdue))
    if header.held_until is not None and header.is_held(page.now):
        timers.append((header.held_until, "the hold ends and members can join", "the hold should have ended"))
    if page.counts.pending_deadline is not None:
        unused = "an unused member id is forgotten", "an unused member id should have been forgotten"
        timers.append((page.counts.pending_deadline, *unused))
    if not timers:
        return None
    at, coming, overdue = min(timers)
    return NextTimer(at, Due(coming, overdue), late=at < page.now - LATE_MS)


def _removal(who: str) -> tuple[str, str]:
    return f"{who} are removed", f"{who} should have been removed"


NAMED = 3
"""The maximum number of members named in a sentence."""
RANGES_NAMED = 4


def explain_consumer(page: GroupPage, part: ConsumerPart) -> str | None:
    """One sentence: what a consumer group is doing and what it waits for. None: the same as for any other group."""
    header = page.header
    match header.state:
        case "Assigning":
            return f"Epoch {header.generation_id:,}{_because(page)} has no target yet: {_computation(page, part)}."
        case "Reconciling":
            are = "is not at its" if part.counts.unsettled == 1 else "are not at their"
            return (
                f"{part.counts.unsettled:,} of {plural(page.counts.members, 'member')} {are} target of epoch"
                f" {header.assignment_epoch:,} yet: {_holding_up(page, part)}."
            )
        case "Stable":
            has = "The only member has its" if page.counts.members == 1 else "All members have their"
            return (
                f"{has} target assignment of epoch {header.generation_id:,}. A member that sends no heartbeat until its"
                " session ends loses its partitions to the others."
            )
        case _:
            return None


def _because(page: GroupPage) -> str:
    """Why the epoch began, if that is still among the page's events."""
    for event in page.events:
        if event.kind == EventKind.GROUP_EPOCH_BUMPED.value and event.generation_id == page.header.generation_id:
            return f" ({why(event)})"
    return ""


def _computation(page: GroupPage, part: ConsumerPart) -> str:
    work, keep = part.computation, f"members keep epoch {page.header.assignment_epoch:,}"
    if page.header.assignment_epoch == 0:
        keep = "no member has partitions yet"
    if work.started_at is None or work.deadline is None:
        return f"it is computed with the next heartbeat; until then {keep}"
    if work.failed:
        return f"the assignor failed and will be tried again; until then {keep}"
    return f"the assignor is computing it; until then {keep}"


def consumer_wait_ends(page: GroupPage, part: ConsumerPart) -> Millis | None:
    """The instant until which the group waits as `explain` says; None if it is past, or the group waits for none.

    How long it has waited, pages say once: by the instant since which the group is in its state.
    """
    work = part.computation
    if page.header.state != "Assigning" or not work.failed or work.deadline is None or work.deadline <= page.now:
        return None
    return work.deadline


def _holding_up(page: GroupPage, part: ConsumerPart) -> str:
    """Who has to act next; what takes longest comes first."""
    known = names(page)
    told = [move for move in part.handovers if move.told]
    if told:
        return _told(told, known) + _others(part.counts.giving_up, told)
    kept = [move for move in part.handovers if move.holder is not None and move.holder_is_away]
    untold = [move for move in part.handovers if move.holder is not None and not move.holder_is_away]
    if untold:
        holder = member_name(untold[0].holder or "", known)
        return f"{holder} learns with its next heartbeat that it must give up {what(untold)}{_for(untold, known)}"
    if kept:
        away = member_name(kept[0].holder or "", known)
        return f"{away} left temporarily and keeps {what(kept)} until it returns or its session ends"
    free = [move for move in part.handovers if move.holder is None and not move.heir_is_away]
    if free:
        heir = member_name(free[0].heir or "", known)
        return f"{what(free)} {_are(free)} free for {heir} to take with its next heartbeat"
    return _no_handover(page, part)


def _told(told: Sequence[Handover], known: Names) -> str:
    heirs = _heirs(told, known)
    waits = f", which {joined(heirs, NAMED)} {'waits' if len(heirs) == 1 else 'wait'} for" if heirs else ""
    return f"{member_name(told[0].holder or '', known)} still has to give up {what(told)}{waits}"


def _for(moves: Sequence[Handover], known: Names) -> str:
    heirs = _heirs(moves, known)
    return f" for {joined(heirs, NAMED)}" if heirs else ""


def _heirs(moves: Sequence[Handover], known: Names) -> list[str]:
    """Who should have what the first of the holders has."""
    mine = [move.heir for move in moves if move.holder == moves[0].holder and move.heir]
    return [member_name(heir, known) for heir in dict.fromkeys(mine)]


def _others(giving_up: int, told: Sequence[Handover]) -> str:
    more = max(giving_up, len({move.holder for move in told})) - 1
    if more <= 0:
        return ""
    return f"; {plural(more, 'other')} {'has' if more == 1 else 'have'} to give up partitions too"


def what(moves: Sequence[Handover]) -> str:
    """The partitions that the first holder gives up or, if they have no holder, the first heir takes: `orders 3–5`."""
    by_topic: dict[str, list[int]] = {}
    for move in _alike(moves):
        by_topic.setdefault(move.topic, []).extend(move.partitions)
    return joined([f"{topic} {ranges(sorted(numbers), RANGES_NAMED)}" for topic, numbers in by_topic.items()], NAMED)


def _alike(moves: Sequence[Handover]) -> list[Handover]:
    first = moves[0]
    return [move for move in moves if move.holder == first.holder and (first.holder or move.heir == first.heir)]


def _are(moves: Sequence[Handover]) -> str:
    return "is" if sum(len(move.partitions) for move in _alike(moves)) == 1 else "are"


def _no_handover(page: GroupPage, part: ConsumerPart) -> str:
    """Nothing changes hands, but a member is away."""
    counts = part.counts
    if counts.away == counts.unsettled:
        away = [member.member_id for member in page.members if member.member_epoch == AWAY_EPOCH]
        who = _named(away, counts.away, names(page))
        if counts.away == 1:
            return f"{who} left temporarily; its partitions are kept until it returns or its session ends"
        return f"{who} left temporarily; their partitions are kept until they return or their sessions end"
    late = [member.member_id for member in page.members if _late(member, page.header.assignment_epoch)]
    number = counts.unsettled - counts.away
    return f"{_named(late, number, names(page))} {'learns' if number == 1 else 'learn'} of it with the next heartbeat"


def _late(member: Member, epoch: int) -> bool:
    return member.member_epoch != AWAY_EPOCH and (member.member_epoch != epoch or member.consumer_state != 0)


def _named(member_ids: Sequence[str], number: int, known: Names) -> str:
    """The members by name, if the page has them all."""
    if len(member_ids) != number:
        return plural(number, "member")
    return joined([member_name(member_id, known) for member_id in member_ids], NAMED)
