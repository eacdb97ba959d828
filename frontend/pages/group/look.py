"""What the page of a group is made of. The group itself has to be read; what fails beside it blanks only itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import psycopg
import structlog

from frontend.pages.group import reads as queries
from frontend.pages.group.map import names
from frontend.pages.group.reads import COMPARED, MOST_CELLS, Coordinator, GroupPage, Limits, group_page
from frontend.ui.reads import names_of
from frontend.ui.rows import GroupHeader
from frontend.ui.verdicts import NAMED
from frontend.ui.viewer import Viewer
from groups.configs import DecisionContexts
from groups.core.model.group import partition_of
from groups.core.model.types import VerdictKind
from groups.labels import GroupLabels, Labelled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.commits.retention.sweep import RetentionService
from offsets.core.retention import RetentionRule
from offsets.core.verdicts import STUCK_STATES, Verdict
from offsets.runs.findings import FindingReads, GroupFindings
from offsets.share.operators import ItemOperators, ShareOffset
from offsets.verdicts import Check, VerdictChecks

PARTITIONS_SHOWN = 500


@dataclass(frozen=True, slots=True)
class ShareLook:
    """How far the partitions of a share group are, and since when its oldest lock lasts (ms)."""

    offsets: Sequence[ShareOffset] = field(default=())
    oldest_ms: int | None = None

    @property
    def figures(self) -> Mapping[str, int | None]:
        """What the group has to do. `ready`: items that a member would get now, retries included.

        `unknown`: partitions of which it is not known where they end, or not decided where they begin; they are in none
        of the sums. `lag` and `ready` None: there are no others. `oldest_ms`: since when the oldest lock lasts; None:
        nothing is acquired. `waits_ms`: how long the oldest item that is not finished has waited; None: not known.
        """
        known = [one for one in self.offsets if one.lag is not None]
        acquired, delayed = sum(one.acquired for one in known), sum(one.delayed for one in known)
        lag = sum(one.lag or 0 for one in known) if known or not self.offsets else None
        return {
            "lag": lag,
            "ready": None if lag is None else lag - acquired - delayed,
            "acquired": acquired,
            "retry": sum(one.retry for one in known),
            "delayed": delayed,
            "dead": sum(one.dead for one in self.offsets),
            "unknown": len(self.offsets) - len(known),
            "oldest_ms": self.oldest_ms,
            "waits_ms": self._waits_ms(known),
        }

    @staticmethod
    def _waits_ms(known: Sequence[ShareOffset]) -> int | None:
        waits = [one.time_lag_ms for one in known if one.time_lag_ms is not None]
        return max(waits, default=None) if len(waits) == len(known) else None

    def context(self, *, most: int) -> Mapping[str, object]:
        """For the group's page: figures, and the `most` partitions that are furthest behind, in their order."""
        behind = sorted(self.offsets, key=lambda one: -(one.lag or 0))[:most]
        shown = sorted(behind, key=lambda one: (one.topic, one.partition))
        return {"items": self.figures, "share_partitions": shown, "share_partitions_total": len(self.offsets)}


log = structlog.get_logger(__name__)

T = TypeVar("T")

SECONDS = 3.0
"""How long a part may take before the page does without it."""


@dataclass(frozen=True, slots=True)
class Look:
    """A group as its page needs it: rows, and what the coordinator knows about it.

    `share`: of a share group. `failed`: what could not be read, in words; these parts are empty.
    """

    page: GroupPage
    assignors: Sequence[str]
    rule: RetentionRule | None
    findings: GroupFindings | None
    coordinator: Coordinator | None
    verdicts: Sequence[Verdict]
    failed: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    share: ShareLook | None = None


class _Parts:
    """Reads parts, and notes which could not be read."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.failed: list[str] = []

    async def read(self, name: str, read: Callable[[], Awaitable[T]], otherwise: T) -> T:
        """What `read` finds, within SECONDS; `otherwise` if it fails as a database can make it fail."""
        try:
            async with asyncio.timeout(SECONDS):
                return await read()
        except (TimeoutError, ProtocolError, psycopg.Error) as error:
            log.warning("group_part_failed", group_id=self._group_id, part=name, exc_info=error)
            self.failed.append(name)
            return otherwise


async def look(runtime: Runtime, viewer: Viewer, group_id: str, limits: Limits) -> Look | None:
    """What the page of a group shows, None if there is no such group for the viewer.

    Raises Forbidden as `queries.group_page` does, ProtocolError COORDINATOR_NOT_AVAILABLE.
    """
    found = await group_page(runtime.db, viewer, group_id, limits)
    if found is None:
        return None
    parts = _Parts(group_id)
    assignors: Sequence[str] = ()
    if found.consumer is not None:
        assignors = await parts.read("assignors", lambda: _assignors(runtime, group_id), assignors)
    rule = await parts.read("when offsets expire", lambda: runtime.get(RetentionService).rule(group_id), None)
    findings = await parts.read(
        "findings of reconcile", lambda: runtime.get(FindingReads).of_group(group_id, seen_by=viewer.seen_by), None
    )
    partition = partition_of(group_id, runtime.config.int("offsets.topic.num.partitions"))
    owner = await parts.read("the coordinator", lambda: queries.coordinator(runtime.db, partition), None)
    unjudged: tuple[GroupPage, Sequence[Verdict]] = (found, ())
    page, verdicts = await parts.read("verdicts", lambda: judged(runtime, viewer, found), unjudged)
    labelled = await parts.read("labels", lambda: runtime.get(GroupLabels).describe(group_id), Labelled())
    share = None
    if found.header.type == "share":
        share = await parts.read("items", lambda: _share(runtime, viewer, group_id), None)
    return Look(page, assignors, rule, findings, owner, verdicts, tuple(parts.failed), labelled.labels, share)


async def _share(runtime: Runtime, viewer: Viewer, group_id: str) -> ShareLook:
    operators = runtime.get(ItemOperators)
    offsets = await operators.offsets(group_id, viewer.topics)
    return ShareLook(offsets, await operators.oldest(group_id, viewer.topics))


async def _assignors(runtime: Runtime, group_id: str) -> Sequence[str]:
    return tuple((await runtime.get(DecisionContexts).context_of(group_id)).assignors)


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
