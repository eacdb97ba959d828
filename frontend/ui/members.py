"""Members of a group: what each is doing, and how fast it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.ui.rows import Member, Millis
from frontend.ui.states import State
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries

ACTIVE = State("active", "Active", "good", "It sends heartbeats in time.")
LATE = State("late", "Late", "warn", "It misses heartbeats: it loses its partitions when its session ends.")
OVERDUE = State("overdue", "Overdue", "bad", "Its session has expired; it is removed at the next check.")


def member_state(member: Member, group_state: str, now: Millis, *, is_late: bool = False) -> State:
    """What a member of a classic group is doing."""
    if member.session_deadline is not None and member.session_deadline <= now:
        return OVERDUE
    if is_late:
        return LATE
    if group_state == "PreparingRebalance":
        if member.awaiting_join:
            return State("joined", "Joined", "busy", "It has joined and waits for the others.")
        return State("not-joined", "Not joined yet", "warn", "The rebalance waits for it to join again.")
    if group_state == "CompletingRebalance":
        if member.awaiting_sync:
            return State("syncing", "Syncing", "busy", "It waits for the leader's assignment.")
        return State("joined", "Joined", "warn", "It has joined and has not asked for its assignment yet.")
    if member.pending_sync:
        return State("owes-sync", "Not synced yet", "warn", "It has not fetched its assignment yet.")
    return ACTIVE


AWAY_EPOCH = -2
"""The epoch of a static member that left temporarily."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What a member reports about itself, and its timers besides the session.

    `topic_names` ends after `frontend.ui.members.NAMES_PER_MEMBER` of its `topic_count` names. `matched`: how
    many topics its regular expression matches, None before it is resolved.
    """

    member_id: str
    rack_id: str | None
    topic_names: Sequence[str]
    topic_count: int
    regex: str
    matched: int | None
    assignor: str | None
    classic: bool
    rebalance_deadline: Millis | None
    rejoin_deadline: Millis | None


NAMES_PER_MEMBER = 12
"""Subscribed topic names read per member; the rest are counted."""

AWAY = State("away", "Away", "idle", "It left temporarily; its partitions are kept for it until its session ends.")
GIVING_UP = State("giving-up", "Giving up", "warn", "It was told to give up partitions and has not confirmed that yet.")
WAITING = State(
    "waiting", "Waiting", "busy", "It has reached its epoch and waits for partitions that others still have."
)
BEHIND = State("behind", "Behind", "busy", "It learns of its new partitions with its next heartbeat.")
FENCED = State("fenced", "Unknown", "bad", "This version does not know the state; the member is told to join again.")
_BY_NUMBER = {1: GIVING_UP, 2: WAITING}


def consumer_member_state(member: Member, target_epoch: int, now: int, *, is_late: bool = False) -> State:
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


Q = queries("frontend")

WINDOW_MS = 300_000
MINUTE_MS = 60_000
LEAST_MS = 15_000
"""A member that began to commit a shorter while ago has no rate yet."""
MOST_PARTITIONS = 100
"""A member that owns more is not rated in a table: each partition costs a look into the journal."""
MOST_LINES = 300
"""Lines of the journal that are searched, on each partition, for the first commit of its owner within the window."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a member committed on the partitions that it owns. `since` (ms): its first commit within the window.

    `records`: from there to the committed offsets. None: it committed nothing.
    """

    member_id: str
    records: int | None
    since: Millis | None


def per_minute(progress: Progress, now: Millis) -> int | None:
    """Records that a member reads in a minute; None if it has just begun."""
    if progress.since is None or progress.records is None:
        return 0
    span = now - progress.since
    return None if span < LEAST_MS else round(progress.records * MINUTE_MS / span)


async def member_rates(
    db: Database,
    connection: Connection,
    group: Mapping[str, Any],
    member_ids: Sequence[str],
    now: Millis,
    most: int = MOST_PARTITIONS,
) -> dict[str, int]:
    """Records per minute by member id: of members that own partitions, at most `most`, and have not just begun.

    `group`: its key (`pk`), `group_id`, and the parameters of the viewer. A partition counts for its present owner,
    from the owner's first commit on it.
    """
    asked = {
        **group, "member_ids": list(member_ids), "since": now - WINDOW_MS, "now": now, "most": most,
        "lines": MOST_LINES,
    }  # fmt: skip
    found = await db.records(connection, Progress, Q.member_progress, asked)
    rates = ((one.member_id, per_minute(one, now)) for one in found)
    return {member_id: rate for member_id, rate in rates if rate is not None}
