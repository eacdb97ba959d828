"""What the page of a group is made of. The group itself has to be read; what fails beside it blanks only itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import psycopg
import structlog

from frontend import queries
from frontend.items.presenters import ShareLook
from frontend.queries import GroupPage, Limits
from frontend.rows import Coordinator
from frontend.verdicts.queries import judged
from frontend.viewer import Viewer
from groups.core.coordinator import partition_of
from groups.engine.decision_context import DecisionContexts
from groups.labels import GroupLabels, Labelled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.core.retention import RetentionRule
from offsets.core.verdicts import Verdict
from offsets.retention.sweep import RetentionService
from offsets.runs.findings import FindingReads, GroupFindings
from offsets.share.operators import ItemOperators

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
    found = await queries.group_page(runtime.db, viewer, group_id, limits)
    if found is None:
        return None
    parts = _Parts(group_id)
    assignors: Sequence[str] = ()
    if found.consumer is not None:
        assignors = await parts.read("assignors", lambda: _assignors(runtime, group_id), assignors)
    rule = await parts.read("when offsets expire", lambda: runtime.get(RetentionService).rule(group_id), None)
    findings = await parts.read(
        "findings of reconcile",
        lambda: runtime.get(FindingReads).of_group(group_id, seen_by=viewer.seen_by),
        None,
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
