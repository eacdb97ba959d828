"""The verdicts on the group of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from frontend.names import names_of
from frontend.partitions import names
from frontend.queries import COMPARED, MOST_CELLS, GroupPage
from frontend.rows import GroupHeader
from frontend.verdicts.presenters import NAMED
from frontend.viewer import Viewer
from groups.core.model.verdicts import VerdictKind
from kcoord.process.runtime import Runtime
from offsets.core.verdicts import STUCK_STATES, Verdict
from offsets.verdicts.checks import Check, VerdictChecks


async def judged(runtime: Runtime, viewer: Viewer, page: GroupPage) -> tuple[GroupPage, Sequence[Verdict]]:
    """The page with the members that miss heartbeats and their names, and the verdicts on its group, the worst first.

    They are as of the page, and a group is stuck since the instant at which the page says that its state began; those
    on the offsets of a large group are as last stored. Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    checks = (Check.MEMBERS,) if page.totals.partitions > COMPARED else tuple(Check)
    service = runtime.get(VerdictChecks)
    async with runtime.db.snapshot() as connection:
        verdicts = await service.of_group(connection, page.header.pk, page.now, checks, named=MOST_CELLS)
        known = names(page)
        said = [one for verdict in verdicts if verdict.kind is VerdictKind.LATE for one in verdict.names[:NAMED]]
        asked = [member_id for member_id in said if member_id not in known]
        found = await names_of(runtime.db, connection, viewer, page.header.group_id, asked)
        page = replace(page, names={**page.names, **found})
    verdicts = [verdict for verdict in verdicts if not verdict.topic or viewer.sees_topic(verdict.topic)]
    verdicts = as_shown(page.header, verdicts)
    if page.members_hidden:
        return page, [replace(one, names=()) if one.kind is VerdictKind.LATE else one for one in verdicts]
    stalled = [verdict for verdict in verdicts if verdict.kind is VerdictKind.STALLED]
    page = replace(
        page,
        stalled=frozenset(_partitions(verdicts, VerdictKind.STALLED)),
        stalled_in_all=sum(one.number for one in stalled),
    )
    if all(verdict.kind is not VerdictKind.LATE for verdict in verdicts):
        return page, verdicts  # while sessions do not count, nobody is late
    silent = (
        member.member_id
        for member in page.members
        if member.session_deadline is not None
        and member.last_heartbeat_at is not None
        and service.is_late(member.last_heartbeat_at, member.session_deadline, page.now)
    )
    return replace(page, late=frozenset(silent)), verdicts


def as_shown(header: GroupHeader, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, with the instants of a stuck group from its header.

    They were read a moment after it. The page shows both, and must not have two different waits for one thing.
    """
    due_at = header.join_deadline if header.join_deadline is not None else header.sync_deadline
    return [
        replace(verdict, since=header.state_since, due_at=due_at) if verdict.kind is VerdictKind.STUCK else verdict
        for verdict in verdicts
        if verdict.kind is not VerdictKind.STUCK or header.state in STUCK_STATES
    ]


def _partitions(verdicts: Sequence[Verdict], kind: VerdictKind) -> Iterator[tuple[str, int]]:
    for verdict in verdicts:
        if verdict.kind is kind:
            yield from ((verdict.topic, int(name)) for name in verdict.names)
