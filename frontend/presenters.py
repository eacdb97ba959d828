"""The page of a group, ready for its template: rows of the read model as text, colours and ranges. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.consumer import states as consumer_states
from frontend.consumer.presenters import Share, consumer, not_named, share
from frontend.group.rows import Load
from frontend.nodes.presenters import coordinator
from frontend.partitions import COLOURS, legend, names, page_colours, strips, written_colours
from frontend.queries import GroupPage
from frontend.rows import Coordinator, Member, Millis, OwnedPartitions, PartitionOffset
from frontend.states import State, explain, generation_word, member_state, next_timer, state, wait_ends
from frontend.timeline import folded
from frontend.wording import plural
from groups.core.coordinator import partition_of
from offsets.core.retention import Fate, Kept, RetentionRule, StoredOffset
from offsets.core.samples import NOT_KNOWN, TimeLag


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member in the table. `colour` None: it owns nothing. `more_owned`: partitions in topics that are not named."""

    member: Member
    state: State
    colour: int | None
    leads: bool
    shares: tuple[Share, ...]
    more_owned: int
    load: Load | None = None


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
    context = consumer(page, part, chosen, assignors) if part else {"members": _members(page, chosen)}
    return context | {
        "now": page.now,
        "group": header,
        "held": held,
        "state": state(header.state, held=held),
        "generation_word": generation_word(header),
        "explanation": (part and not held and consumer_states.explain(page, part)) or explain(page),
        "counts": counts,
        "coordinator": coordinator(
            owner, partition_of(header.group_id, coordinator_partitions), coordinator_partitions, page.now
        ),
        "wait_ends": consumer_states.wait_ends(page, part) if part else wait_ends(page),
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


def _members(page: GroupPage, chosen: Mapping[str, int]) -> list[MemberLine]:
    owned: dict[str, list[OwnedPartitions]] = {}
    for part in page.owned:
        owned.setdefault(part.member_id, []).append(part)
    return [
        MemberLine(
            member=member,
            state=member_state(member, page.header.state, page.now, is_late=member.member_id in page.late),
            colour=chosen.get(member.member_id),
            leads=member.member_id == page.header.leader_id,
            shares=tuple(share(part.topic, part.partitions) for part in owned.get(member.member_id, ())),
            more_owned=not_named(page, member),
            load=page.member_table.loads.get(member.member_id),
        )
        for member in page.members
    ]


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
