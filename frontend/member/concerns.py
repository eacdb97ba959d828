"""The verdicts on a group that concern one of its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend import rows
from frontend.consumer.states import member_state as consumer_state
from frontend.member.reads import MemberPage
from frontend.rows import Millis
from frontend.states import State, member_state
from frontend.viewer import Viewer
from groups.core.model.verdicts import VerdictKind
from kcoord.process.runtime import Runtime
from kcoord.sql import queries
from offsets.core.verdicts import Verdict
from offsets.verdicts.checks import Check, VerdictChecks

Q = queries("frontend")

ANY = -1
"""Any partition of a topic, where a verdict does not name all of its partitions."""


@dataclass(frozen=True, slots=True)
class Concerns:
    """What a member is doing, and the verdicts that concern it, the worst first."""

    state: State
    verdicts: Sequence[Verdict] = ()


async def concerns(runtime: Runtime, viewer: Viewer, page: MemberPage) -> Concerns | None:
    """None: its group does not have the member. Raises ProtocolError COORDINATOR_NOT_AVAILABLE.

    Verdicts by members are as of the page, those by offsets as last stored.
    """
    header, present = page.header, page.present
    if header is None or present is None:
        return None
    member, service = present.described.member, runtime.get(VerdictChecks)
    async with runtime.db.snapshot() as connection:
        verdicts = await service.of_group(connection, header.pk, page.now, (Check.MEMBERS,))
        verdicts = [verdict for verdict in verdicts if not verdict.topic or viewer.sees_topic(verdict.topic)]
        asked = _named([verdict for verdict in verdicts if verdict.kind is VerdictKind.STALLED])
        parameters = {
            "pk": header.pk,
            "member_id": member.member_id,
            "topics": [topic for topic, _ in asked],
            "partitions": [partition for _, partition in asked],
        }
        owned = set(await runtime.db.column(connection, Q.topics_owned_of, parameters)) if asked else set()
    is_late = _is_late(service, verdicts, member, page.now)
    now = state_of(header, member, page.now, is_late=is_late)
    found = [_own(verdict, member) for verdict in verdicts if _concerns(verdict, now, owned, is_late=is_late)]
    return Concerns(now, found)


def state_of(header: rows.GroupHeader, member: rows.Member, now: Millis, *, is_late: bool) -> State:
    """What a member of a group of any type is doing."""
    if header.type != "classic":
        return consumer_state(member, header.assignment_epoch, now, is_late=is_late)
    return member_state(member, header.state, now, is_late=is_late)


def _is_late(service: VerdictChecks, verdicts: Sequence[Verdict], member: rows.Member, now: Millis) -> bool:
    if all(verdict.kind is not VerdictKind.LATE for verdict in verdicts):
        return False  # while sessions do not count, nobody is late
    armed, ends = member.last_heartbeat_at, member.session_deadline
    return armed is not None and ends is not None and service.is_late(armed, ends, now)


def _named(stalled: Sequence[Verdict]) -> list[tuple[str, int]]:
    """The partitions that verdicts name, by topic; a verdict on more than it names is on any of its topic."""
    return [
        (verdict.topic, partition)
        for verdict in stalled
        for partition in ([ANY] if verdict.number > len(verdict.names) else [int(name) for name in verdict.names])
    ]


def _concerns(verdict: Verdict, state: State, owned: set[str], *, is_late: bool) -> bool:
    match verdict.kind:
        case VerdictKind.LATE:
            return is_late
        case VerdictKind.STALLED:
            return verdict.topic in owned
        case VerdictKind.STUCK:
            return state.tone != "good"
        case _:
            return False


def _own(verdict: Verdict, member: rows.Member) -> Verdict:
    """LATE is about this member alone; the others are about the group."""
    if verdict.kind is not VerdictKind.LATE or member.last_heartbeat_at is None:
        return verdict
    return Verdict(
        VerdictKind.LATE,
        member.last_heartbeat_at,
        due_at=member.session_deadline,
        number=1,
        names=(member.member_id,),
    )
