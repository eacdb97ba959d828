"""The parts of the page that only consumer groups have, ready for their templates. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.consumer.rows import AWAY_EPOCH, ConsumerPart, Detail, Handover
from frontend.consumer.states import member_state
from frontend.group.rows import Load
from frontend.queries import GroupPage
from frontend.rows import Member, Millis
from frontend.states import State
from frontend.wording import plural, ranges

RANGES_SHOWN = 8
REMOVED = "or is removed"


@dataclass(frozen=True, slots=True)
class Share:
    """Partitions of a topic listed with a member: `0–4, 7`; `whole` if the list is truncated.

    `what`: "" for those it owns, else what happens to them. `tone` as for states.
    """

    topic: str
    text: str
    whole: str
    what: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member in the table. `colour` None: it has none in the picture. `behind`: the epoch it has not yet reached.

    `more_owned`: the number of its partitions in topics that are not named.
    """

    member: Member
    detail: Detail
    state: State
    colour: int | None
    behind: int | None
    away: bool
    shares: tuple[Share, ...]
    unknown: tuple[str, ...]
    known: tuple[str, ...]
    more_names: int
    matched: str
    more_owned: int
    load: Load | None = None


@dataclass(frozen=True, slots=True)
class HandoverLine:
    """Partitions being handed over: where they are, in the `tone` of states, and what is awaited until when.

    `overdue`: what is said instead of `wait` once `at` is past; "": that instant is no deadline.
    """

    move: Handover
    share: Share
    holder_colour: int | None
    heir_colour: int | None
    tone: str
    stand: str
    wait: str
    at: Millis | None
    overdue: str = ""


def consumer(
    page: GroupPage, part: ConsumerPart, chosen: Mapping[str, int], assignors: Sequence[str]
) -> dict[str, Any]:
    """The context that only the page of a consumer group has. `assignors`: their names, the default first."""
    assignor, why = _assignor(part.votes, assignors)
    return {
        "part": part,
        "target_lag": page.header.generation_id - page.header.assignment_epoch if page.counts.members else 0,
        "assignor": assignor,
        "assignor_why": why,
        "members": [_member(page, part, member, chosen) for member in page.members],
        "handovers": [_handover(move, chosen) for move in part.handovers],
        "more_handovers": part.handover_lines - len(part.handovers),
    }


def _assignor(votes: Mapping[str, int], assignors: Sequence[str]) -> tuple[str, str]:
    """The assignor that would be chosen now, by the core's rule: most votes; on a tie or without votes, the first."""
    winner = max(assignors, key=lambda name: votes.get(name, 0))
    count = votes.get(winner, 0)
    return winner, f"{plural(count, 'member')} {'asks' if count == 1 else 'ask'} for it" if count else "the default"


def _member(page: GroupPage, part: ConsumerPart, member: Member, chosen: Mapping[str, int]) -> MemberLine:
    detail = part.details[member.member_id]
    target_epoch = page.header.assignment_epoch
    away = member.member_epoch == AWAY_EPOCH
    return MemberLine(
        member=member,
        detail=detail,
        state=member_state(member, target_epoch, page.now, is_late=member.member_id in page.late),
        colour=chosen.get(member.member_id),
        behind=None if away or member.member_epoch == target_epoch else target_epoch,
        away=away,
        shares=(*_owned(page, part, member), *_gains(part, member)),
        unknown=tuple(name for name in detail.topic_names if name in part.unknown_topics),
        known=tuple(name for name in detail.topic_names if name not in part.unknown_topics),
        more_names=detail.topic_count - len(detail.topic_names),
        more_owned=not_named(page, member),
        load=page.member_table.loads.get(member.member_id),
        matched="not resolved yet" if detail.matched is None else f"matches {plural(detail.matched, 'topic')}",
    )


def not_named(page: GroupPage, member: Member) -> int:
    """How many partitions of a member belong to topics that the page does not name beside it."""
    named = sum(len(owned.partitions) for owned in page.owned if owned.member_id == member.member_id)
    return max(member.owned - named, 0)


def _owned(page: GroupPage, part: ConsumerPart, member: Member) -> list[Share]:
    losses = {
        difference.topic: frozenset(difference.partitions)
        for difference in part.differences
        if difference.member_id == member.member_id and not difference.gains
    }
    shares = []
    for owned in page.owned:
        if owned.member_id != member.member_id:
            continue
        if owned.pending:
            shares.append(share(owned.topic, owned.partitions, "must give up", "warn"))
            continue
        lost = losses.get(owned.topic, frozenset())
        kept = tuple(partition for partition in owned.partitions if partition not in lost)
        if kept:
            shares.append(share(owned.topic, kept))
        if lost:
            shares.append(share(owned.topic, sorted(lost), "will give up", "warn"))
    return shares


def _gains(part: ConsumerPart, member: Member) -> list[Share]:
    return [
        share(difference.topic, difference.partitions, "is to get", "busy")
        for difference in part.differences
        if difference.member_id == member.member_id and difference.gains
    ]


def share(topic: str, partitions: Sequence[int], what: str = "", tone: str = "") -> Share:
    """Partitions of a topic in a line, the first ranges of them."""
    return Share(topic, ranges(partitions, RANGES_SHOWN), ranges(partitions), what, tone)


def _handover(move: Handover, chosen: Mapping[str, int]) -> HandoverLine:
    tone, stand, wait, at = _wait(move)
    return HandoverLine(
        move=move,
        share=share(move.topic, move.partitions),
        holder_colour=chosen.get(move.holder or ""),
        heir_colour=chosen.get(move.heir or ""),
        tone=tone,
        stand=stand,
        wait=wait,
        at=at,
        overdue="should have been removed" if wait == REMOVED else "",
    )


def _wait(move: Handover) -> tuple[str, str, str, Millis | None]:
    """Tone, where the partitions are, what is awaited, and the related instant."""
    if move.holder is None:
        if move.heir_is_away:
            return "idle", "Free", "kept for a member that left temporarily", None
        return "good", "Free", "taken with its next heartbeat; last heartbeat", move.heir_heartbeat_at
    if move.holder_is_away:
        return "idle", "Holder away", "kept until it returns or its session ends", move.holder_session
    if not move.told:
        return "busy", "Not told yet", "learns of it with its next heartbeat; last heartbeat", move.holder_heartbeat_at
    if move.deadline is None:
        return "warn", "Must give up", "when it joins again", None
    return "warn", "Must give up", REMOVED, move.deadline
