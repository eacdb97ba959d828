"""What a consumer group and its members are doing, as text."""

from __future__ import annotations

from collections.abc import Sequence

from frontend.consumer.rows import AWAY_EPOCH, ConsumerPart, Handover
from frontend.partitions import names
from frontend.queries import GroupPage
from frontend.rows import Member, Millis, Names
from frontend.states import ACTIVE, LATE, OVERDUE, State
from frontend.timeline import why
from frontend.wording import joined, member_name, plural, ranges
from groups.core.model.events import EventKind

NAMED = 3
"""The maximum number of members named in a sentence."""
RANGES_NAMED = 4

AWAY = State("away", "Away", "idle", "It left temporarily; its partitions are kept for it until its session ends.")
GIVING_UP = State("giving-up", "Giving up", "warn", "It was told to give up partitions and has not confirmed that yet.")
WAITING = State(
    "waiting", "Waiting", "busy", "It has reached its epoch and waits for partitions that others still have."
)
BEHIND = State("behind", "Behind", "busy", "It learns of its new partitions with its next heartbeat.")
FENCED = State("fenced", "Unknown", "bad", "This version does not know the state; the member is told to join again.")
_BY_NUMBER = {1: GIVING_UP, 2: WAITING}


def member_state(member: Member, target_epoch: int, now: int, *, is_late: bool = False) -> State:
    """What a member of a consumer group is doing. `target_epoch`: the epoch of the group's target."""
    if member.session_deadline is not None and member.session_deadline <= now:
        return OVERDUE
    if member.member_epoch == AWAY_EPOCH:
        return AWAY
    if is_late:
        return LATE
    if member.consumer_state != 0:
        return _BY_NUMBER.get(member.consumer_state or 0, FENCED)
    return ACTIVE if member.member_epoch == target_epoch else BEHIND


def explain(page: GroupPage, part: ConsumerPart) -> str | None:
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


def wait_ends(page: GroupPage, part: ConsumerPart) -> Millis | None:
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
