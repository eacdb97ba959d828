"""A group of any type: its coordinator partition, its deadlines, its sessions as rows have them, and a hold of it.

A group id belongs to one type at a time (consumer.md 1.1, share.md 4). This is the only place that knows when a group
must be looked at again, and what is overdue. Heartbeats that only extend a session do not count as changes of the group
(`version`), so the deadlines of a copy in memory may be earlier than those of the rows, never later.

A hold: an operator keeps members out of a group for a while, so that its offsets can be reset. A held group has no
members, and no member can join until the hold expires or an operator ends it.

Source: classic.md 6; consumer.md 8; offsets.md 9.1 (Kafka's `partitionFor` and `Utils.abs`, Java's `String.hashCode`);
http-api.md 4; architecture.md 4, "Fast lanes". Differs from Kafka: in Kafka only stopping every consumer makes a busy
group resettable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import chain
from typing import NamedTuple

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_group import TimerKind as ConsumerTimerKind
from groups.core.model.persistent import Timer
from groups.core.model.types import ClassicGroup, ClassicMember, Hold, Millis
from kcoord.protocol.errors import Error, ProtocolError

Group = ClassicGroup | EpochGroup


_SIGN = 0x8000_0000
_MASK = 0xFFFF_FFFF


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, in signed 32-bit arithmetic that wraps around."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & _MASK
    return (value ^ _SIGN) - _SIGN


def partition_of(group_id: str, partitions: int) -> int:
    """The coordinator partition, 0 to `partitions` - 1, of a group.

    Kafka's absolute value maps the smallest 32-bit number, which has no positive twin, to 0.
    """
    value = java_hash(group_id)
    return (0 if value == -_SIGN else abs(value)) % partitions


EARLY_MARGIN = 1 / 3
"""A stored wake-up is moved ahead when only this fraction of the time until the earliest deadline is left before it."""


class TimerKind(Enum):
    """The timers of a classic group, in the order in which timers of the same instant fire."""

    PENDING = "pending"
    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class Deadline:
    """A timer that is armed. `member_id` is "" for the timers of the group itself."""

    at: Millis
    kind: TimerKind
    member_id: str = ""


def wake_at(group: Group | None) -> Millis | None:
    """The earliest deadline of the group in milliseconds, None if it has none. Looking earlier is harmless."""
    if group is not None and group.hold is not None:
        return group.hold.until  # a held group has no members, so no timer is armed
    if isinstance(group, EpochGroup):
        first = group.timers.first()
        return first[0] if first is not None else None
    if group is None:
        return None
    return min(_instants(group), default=None)


def wake_at_extended(group: Group, sessions: Mapping[str, Millis]) -> Millis | None:
    """As `wake_at`, of a group of which sessions have been extended: `sessions` has their ends (ms) by member id.

    It looks at every member, but makes no other group, which would take ten times as long.
    """
    if group.hold is not None:
        return group.hold.until
    if isinstance(group, EpochGroup):
        armed = {member_id: timer.deadline for member_id, timer in group.timers.session.items()}
        others: Iterable[Millis] = (
            least.deadline
            for kind in ConsumerTimerKind
            if kind is not ConsumerTimerKind.SESSION and (least := group.timers.of(kind).least) is not None
        )
    else:
        armed = {
            member.member_id: member.session_deadline
            for member in group.members.values()
            if member.session_deadline is not None
        }
        others = _other_instants(group)
    latest = (max(deadline, sessions.get(member_id, deadline)) for member_id, deadline in armed.items())
    return min(chain(latest, others), default=None)


def wake_at_to_store(stored: Millis | None, due: Millis | None, now: Millis) -> Millis | None:
    """The wake-up time to keep on the row of a group in which only deadlines moved; all in milliseconds.

    `stored` is the stored value, `due` the earliest deadline. The column is indexed, so an update that leaves it alone
    can be a HOT update. A wake-up that comes too early costs a transaction that finds nothing due, and one that comes
    too late is forbidden. So an earlier `due` is stored at once, a later one when no more than EARLY_MARGIN of the time
    until then would be left: members that send heartbeats at least three times in their session move the wake-up ahead
    before it comes. A wake-up that finds nothing due stores `due` itself, so the next cannot come before that.
    """
    if stored is None or due is None or due <= stored:
        return due
    return due if stored - now <= (due - now) * EARLY_MARGIN else stored


def due(group: ClassicGroup | None, now: Millis, sessions_end: Millis) -> Deadline | None:
    """The earliest timer of a classic group with a deadline at or before `now`, None if nothing is overdue.

    `sessions_end`: the latest deadline of sessions that may expire, at most `now`.
    """
    at = wake_at(group)
    if group is None or at is None or at > now:
        return None
    if at > sessions_end:
        at = min((instant for instant in _other_instants(group) if instant <= now), default=None)
        if at is None:
            return None
    if group.pending_join.least == at:
        return Deadline(at, TimerKind.PENDING, group.pending_join.first_due())
    if at <= sessions_end and group.members.least == at:
        return Deadline(at, TimerKind.SESSION, group.members.first_due())
    joins = group.join_timer is not None and group.join_timer.deadline == at
    return Deadline(at, TimerKind.JOIN if joins else TimerKind.SYNC)


def _instants(group: ClassicGroup) -> Iterator[Millis]:
    if group.members.least is not None:
        yield group.members.least
    yield from _other_instants(group)


def _other_instants(group: ClassicGroup) -> Iterator[Millis]:
    """The deadlines of everything but sessions."""
    if group.pending_join.least is not None:
        yield group.pending_join.least
    if group.join_timer is not None:
        yield group.join_timer.deadline
    if group.sync_deadline is not None:
        yield group.sync_deadline


class Session(NamedTuple):
    """When a session ends, and when its member was last heard from (ms); None: it has no session."""

    deadline: Millis | None
    heard_at: Millis | None


def with_sessions(group: Group, stored: Mapping[str, Session]) -> Group:
    """The group with the sessions of `stored`, by member id; other members keep theirs."""
    if not isinstance(group, ClassicGroup):
        return _consumer(group, stored)
    return _classic(group, stored)


def _classic(group: ClassicGroup, stored: Mapping[str, Session]) -> ClassicGroup:
    def renewed(member: ClassicMember) -> ClassicMember:
        session = stored.get(member.member_id)
        if session is None or session == (member.session_deadline, member.last_heartbeat_at):
            return member
        return replace(member, session_deadline=session.deadline, last_heartbeat_at=session.heard_at)

    if all(renewed(member) is member for member in group.members.values()):
        return group
    return replace(group, members=group.members.each(renewed))


def _consumer(group: EpochGroup, stored: Mapping[str, Session]) -> EpochGroup:
    sessions = group.timers.session
    later = {}
    for member_id, session in stored.items():
        if session.deadline is None or session.heard_at is None or member_id not in group.members:
            continue
        timer = Timer(session.deadline, session.heard_at)
        if sessions.get(member_id) != timer:
            later[member_id] = timer
    if not later:
        return group
    return replace(group, timers=replace(group.timers, session=sessions.update(later)))


MOST_RETRY_AFTER_MS: Millis = 10_000
"""The longest wait that a refused caller is given: an operator may end the hold early."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = 253_402_300_799


def require_open(group: Group, now: Millis) -> None:
    """Raise `ProtocolError` COORDINATOR_LOAD_IN_PROGRESS while the group is held, saying by whom and until when.

    Differs from Kafka: it has no holds. Of the errors that its clients know, this is the one to which they respond, for
    a join, a consumer heartbeat and a commit, by sending the same request again later, for as long as it takes.
    """
    if group.hold is not None:
        raise ProtocolError(
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            f"{_sentence(group.group_id, group.hold)}: no member can join until then. Send the same request "
            "again later",
            retry_after_ms=min(max(group.hold.until - now, 1), MOST_RETRY_AFTER_MS),
        )


def require_unheld_offsets(group: Group) -> None:
    """As `require_open`, for a commit without membership: it would overwrite what an operator is resetting."""
    if group.hold is not None:
        raise ProtocolError(
            Error.COORDINATOR_LOAD_IN_PROGRESS,
            f"{_sentence(group.group_id, group.hold)}: only operators can change its offsets until then. Retry "
            "after that if the commit is still right",
        )


def _sentence(group_id: str, hold: Hold) -> str:
    until = _EPOCH + timedelta(seconds=min(hold.until // 1000, _LAST_SECOND))
    reason = f" ({hold.reason})" if hold.reason else ""
    return f"group {group_id!r} is held by {hold.by!r} until {until:%Y-%m-%dT%H:%M:%SZ}{reason}"
