"""The page of a group, ready for its template: rows as text, colours and ranges. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontend.pages.group.explained import consumer_wait_ends, explain, explain_consumer, next_timer, wait_ends
from frontend.pages.group.map import COLOURS, legend, names, page_colours, strips, written_colours
from frontend.pages.group.reads import ConsumerPart, Coordinator, GroupPage, Handover
from frontend.pages.group.tables import Load
from frontend.ui.events import folded
from frontend.ui.members import AWAY_EPOCH, Detail, consumer_member_state, member_state
from frontend.ui.rows import Member, Millis, PartitionOffset
from frontend.ui.states import State, generation_word, state
from frontend.ui.wording import plural, ranges
from groups.core.model.group import partition_of
from offsets.core.retention import Fate, Kept, RetentionRule, StoredOffset
from offsets.core.samples import NOT_KNOWN, TimeLag


@dataclass(frozen=True, slots=True)
class GroupCoordinator:
    """Who coordinates a group. `name` "": no live node; `ever`: a node has owned its partition."""

    partition: int
    of: int
    name: str
    ever: bool
    loading: bool
    title: str

    @property
    def missing(self) -> bool:
        """The partition waits for an owner."""
        return self.ever and not self.name


def coordinator(row: Coordinator | None, partition: int, of: int, now: Millis) -> GroupCoordinator:
    """The coordinator of a group. `row` None: no node has ever owned its partition."""
    hashed = f"The group id hashes to coordinator partition {partition} of {of}"
    if row is None:
        return GroupCoordinator(partition, of, "", False, False, hashed)
    live = row.expires_at is not None and row.expires_at > now
    name = row.node_id or "" if live else ""
    owned = f", epoch {row.epoch}" + (f", owned by {name}{f' at {row.url}' if row.url else ''}" if name else "")
    return GroupCoordinator(partition, of, name, True, bool(name) and row.state == "LOADING", hashed + owned)


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
    """A member in the table. `colour` None: it has none in the picture. `more_owned`: partitions in topics not named.

    Of consumer groups: what it reports (`detail`), its names that are in the catalogue or not, and how many there are
    `more`; `behind`: the epoch it has not yet reached; `matched`: by its regular expression, in words.
    """

    member: Member
    state: State
    colour: int | None
    leads: bool
    shares: tuple[Share, ...]
    more_owned: int
    load: Load | None = None
    detail: Detail | None = None
    behind: int | None = None
    away: bool = False
    unknown: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    more_names: int = 0
    matched: str = ""


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
        "handovers": [_handover(move, chosen) for move in part.handovers],
        "more_handovers": part.handover_lines - len(part.handovers),
    }


def _assignor(votes: Mapping[str, int], assignors: Sequence[str]) -> tuple[str, str]:
    """The assignor that would be chosen now, by the core's rule: most votes; on a tie or without votes, the first."""
    winner = max(assignors, key=lambda name: votes.get(name, 0))
    count = votes.get(winner, 0)
    return winner, f"{plural(count, 'member')} {'asks' if count == 1 else 'ask'} for it" if count else "the default"


def member_line(page: GroupPage, member: Member, chosen: Mapping[str, int]) -> MemberLine:
    """A member in the table. `chosen`: colours by member id."""
    is_late = member.member_id in page.late
    line = MemberLine(
        member=member,
        state=member_state(member, page.header.state, page.now, is_late=is_late),
        colour=chosen.get(member.member_id),
        leads=member.member_id == page.header.leader_id,
        shares=_shares(page, member),
        more_owned=_not_named(page, member),
        load=page.member_table.loads.get(member.member_id),
    )
    if page.consumer is None:
        return line
    part, target_epoch = page.consumer, page.header.assignment_epoch
    detail, away = part.details[member.member_id], member.member_epoch == AWAY_EPOCH
    return replace(
        line,
        state=consumer_member_state(member, target_epoch, page.now, is_late=is_late),
        detail=detail,
        behind=None if away or member.member_epoch == target_epoch else target_epoch,
        away=away,
        unknown=tuple(name for name in detail.topic_names if name in part.unknown_topics),
        known=tuple(name for name in detail.topic_names if name not in part.unknown_topics),
        more_names=detail.topic_count - len(detail.topic_names),
        matched="not resolved yet" if detail.matched is None else f"matches {plural(detail.matched, 'topic')}",
    )


def _not_named(page: GroupPage, member: Member) -> int:
    """Partitions of topics that the page does not name beside the member."""
    named = sum(len(owned.partitions) for owned in page.owned if owned.member_id == member.member_id)
    return max(member.owned - named, 0)


def _shares(page: GroupPage, member: Member) -> tuple[Share, ...]:
    """What a member owns and, in a consumer group, what of it it loses and what it is to get."""
    differences = (
        [one for one in page.consumer.differences if one.member_id == member.member_id] if page.consumer else []
    )
    losses = {one.topic: frozenset(one.partitions) for one in differences if not one.gains}
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
    gains = (share(one.topic, one.partitions, "is to get", "busy") for one in differences if one.gains)
    return (*shares, *gains)


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


KEPT: Mapping[Kept, str] = {
    Kept.PINNED: "because it is pinned",
    Kept.REBALANCING: "while the group rebalances",
    Kept.MEMBERS: "while the group has members",
    Kept.SUBSCRIBED: "while the topic is read",
    Kept.PENDING: "while a transaction is open",
}
"""Why an offset does not expire. Every `Kept` has its text; a test checks that."""


@dataclass(frozen=True, slots=True)
class OffsetLine:
    """A partition in the table of offsets."""

    row: PartitionOffset
    colour: int | None
    first_of_topic: bool
    expires_at: Millis | None
    kept: str
    """Why it does not expire at present; "" if it does or nothing is committed."""
    pinned: bool
    time_lag: TimeLag = NOT_KNOWN


def group(
    page: GroupPage,
    coordinator_partitions: int,
    kept: Mapping[int, int],
    assignors: Sequence[str],
    rule: RetentionRule | None,
    owner: Coordinator | None = None,
) -> dict[str, Any]:
    """The context of the page.

    `coordinator_partitions` is the setting `offsets.topic.num.partitions`, `kept` the colours an open page uses,
    `assignors` the names of those the group can use, its default first, `rule` the retention rule for its offsets,
    `owner` that of its coordinator partition.
    """
    chosen = page_colours(page, kept)
    header, counts, totals = page.header, page.counts, page.totals
    held = header.is_held(page.now)
    drawn = strips(page, chosen)
    part = page.consumer
    context = consumer(page, part, chosen, assignors) if part else {}
    return context | {
        "members": [member_line(page, member, chosen) for member in page.members],
        "now": page.now,
        "group": header,
        "held": held,
        "state": state(header.state, held=held),
        "generation_word": generation_word(header),
        "explanation": (part and not held and explain_consumer(page, part)) or explain(page),
        "counts": counts,
        "coordinator": coordinator(
            owner, partition_of(header.group_id, coordinator_partitions), coordinator_partitions, page.now
        ),
        "wait_ends": consumer_wait_ends(page, part) if part else wait_ends(page),
        "next_timer": next_timer(page),
        "strips": drawn,
        "more_topics": page.more_topics,
        "hidden_cells": any(strip.hidden for strip in drawn),
        "owners": legend(page, chosen),
        "colours": written_colours(page, chosen),
        "many_owners": len(chosen) > COLOURS,
        "hidden_members": counts.members - len(page.members),
        "totals": totals,
        "offsets": _offsets(page, chosen, rule),
        "events": folded(page.events),
        "announcement": _announcement(page),
        "unowned_matters": header.state == "Stable",
        "names": names(page),
        "members_hidden": page.members_hidden,
    }


def _announcement(page: GroupPage) -> str:
    """What a screen reader announces when it changes; short, and the same as long as nothing important changes."""
    header = page.header
    members = plural(page.counts.members, "member")
    word, shown = generation_word(header).lower(), state(header.state, held=header.is_held(page.now))
    return f"{header.group_id} is {shown.label}, {word} {header.generation_id:,}, {members}"


def _offsets(page: GroupPage, chosen: Mapping[str, int], rule: RetentionRule | None) -> list[OffsetLine]:
    shown = []
    topic = None
    for row in page.offsets:
        fate = _fate(row, rule)
        kept = KEPT[fate.kept] if fate and fate.kept else ""
        expires_at = fate.expires_at if fate else None
        if expires_at is not None and page.header.is_held(page.now):
            kept, expires_at = "while the group is held", None
        pinned = rule is not None and row.topic in rule.pins
        colour, first = chosen.get(row.owner or ""), row.topic != topic
        time_lag = page.offset_table.time_lag(row.topic, row.partition)
        shown.append(OffsetLine(row, colour, first, expires_at, kept, pinned, time_lag))
        topic = row.topic
    return shown


def _fate(row: PartitionOffset, rule: RetentionRule | None) -> Fate | None:
    if rule is None or row.commit_timestamp is None:
        return None
    stored = StoredOffset(row.topic, row.partition, row.commit_timestamp, row.expire_timestamp, row.pending)
    return rule.fate(stored)
