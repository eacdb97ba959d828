"""Fixes the committed offsets that reconcile proved wrong: each becomes what its last line in the journal says.

A change is journalled like any other, under the group's lock, and recorded in the group's events. It is made only if
the offset is still what the run saw, nothing was committed or removed since, and no transaction is open there: its
commit would lose to a line newer than its write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import structlog

from groups.core.model.commands import ResetOffsets, Tick
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord.access.audit.recording import Act
from kcoord.access.rights import Operation, Principal
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.commits.store import OffsetStore
from offsets.core.types import ChangeKind, Millis, OffsetRecord, Provenance, TopicPartition
from offsets.journal.events import offsets_event

log = structlog.get_logger(__name__)

Q = queries("offsets")

REPAIRABLE = frozenset({"missing_in_view", "surplus_in_view", "other_offset", "other_metadata"})
"""Kinds of findings for which the journal proves that the view is wrong."""

MENDED = "repaired"


@dataclass(frozen=True, slots=True)
class Mend:
    """One offset to set, or to remove where `offset` is None. Instants in ms.

    `seen_record_offset` and `seen_offset`: what the run saw committed, None where nothing was; `line_id` and `line_at`:
    the line of the journal that says what is right.
    """

    kind: str
    group_id: str
    topic: str
    partition: int
    seen_record_offset: int | None
    seen_offset: int | None
    line_id: int
    line_at: Millis
    offset: int | None
    leader_epoch: int
    metadata: str
    expire_timestamp: Millis | None

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    def shown(self) -> dict[str, Any]:
        """For a plan that people review."""
        return {
            "group": self.group_id,
            "topic": self.topic,
            "partition": self.partition,
            "action": "remove" if self.offset is None else "set",
            "from": self.seen_offset,
            "to": self.offset,
            "journal_id": self.line_id,
        }


@dataclass(frozen=True, slots=True)
class Mended:
    """The result of a `Mend`: `MENDED`, or why it was left alone."""

    mend: Mend
    outcome: str


@dataclass(frozen=True, slots=True)
class _Stand:
    """What is committed on a partition now. `pending`: a transaction is open on it; `newer`: changed since the run."""

    topic: str
    partition: int
    record_offset: int | None
    committed_offset: int | None
    exists: bool
    pending: bool
    newer: bool


def planned(findings: Iterable[Mapping[str, Any]]) -> list[Mend]:
    """What would be fixed for these findings, as `manage.py reconcile --format json` prints them; by group."""
    found = [_mend(one) for one in findings if one["kind"] in REPAIRABLE]
    return sorted(found, key=lambda mend: (mend.group_id, *mend.key))


def _mend(finding: Mapping[str, Any]) -> Mend:
    evidence = finding["evidence"]
    line = evidence["line"]
    return Mend(
        finding["kind"],
        finding["group"],
        finding["topic"],
        finding["partition"],
        evidence.get("record_offset"),
        finding["found"],
        line["id"],
        line["at"],
        line["committed_offset"],
        line["leader_epoch"],
        line["metadata"],
        line["expire_timestamp"],
    )


MOST_RECORDED = 100
"""Of how many partitions the audit has the offsets; the journal has all."""


class RepairService:
    """Fixes committed offsets, for one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(OffsetStore)

    async def repair(self, mends: Sequence[Mend], run_id: str, principal: Principal) -> list[Mended]:
        """Fix group by group, each in one transaction; returns the result of each. `run_id`: for the events.

        A missing group is created if it is to have an offset. Raises ProtocolError GROUP_AUTHORIZATION_FAILED
        before anything is written, COORDINATOR_NOT_AVAILABLE.
        """
        for group_id in {mend.group_id for mend in mends}:
            principal.require_group(Operation.ALTER_OFFSETS, group_id)
        done: list[Mended] = []
        for group_id, of_group in groupby(mends, key=lambda mend: mend.group_id):
            done += await self._repair_group(group_id, list(of_group), run_id, principal.name)
        return done

    async def _repair_group(self, group_id: str, mends: list[Mend], run_id: str, principal: str) -> list[Mended]:
        work = partial(self._write, mends, run_id, principal)
        outcome: Any = await self._groups.execute(Tick(group_id), work)
        if not isinstance(outcome, list) and any(mend.offset is not None for mend in mends):
            outcome = await self._groups.execute(ResetOffsets(group_id, create=True), work)
        if isinstance(outcome, Done):
            raise ProtocolError(outcome.error, outcome.detail)
        if not isinstance(outcome, list):
            return [Mended(mend, "the group was deleted") for mend in mends]
        log.info("offsets_repaired", group_id=group_id, run=run_id, principal=principal, offsets=len(mends))
        return outcome

    async def _write(self, mends: list[Mend], run_id: str, principal: str, locked: LockedGroup) -> list[Mended]:
        stands = await self._stands(mends, locked)
        done = [Mended(mend, stands[mend.key]) for mend in mends]
        right = [one.mend for one in done if one.outcome == MENDED]
        records = [_record(mend) for mend in right if mend.offset is not None]
        gone = [mend.key for mend in right if mend.offset is None]
        before = {"offsets": await self._store.committed_within(locked, [m.key for m in right][:MOST_RECORDED])}
        await self._store.write(locked, records, Provenance(ChangeKind.RESTORE, principal=principal))
        await self._store.remove(locked, gone, Provenance(ChangeKind.DELETE, principal=principal))
        told = partial(offsets_event, principal=principal, reason=f"repair of reconcile {run_id}")
        if records:
            keys = [(record.topic, record.partition) for record in records]
            locked.events.append(told(EventKind.OFFSETS_RESTORED, locked.group, keys))
        was = await self._store.committed_within(locked, [mend.key for mend in right][:MOST_RECORDED])
        after = {"run": run_id, "set": len(records), "removed": len(gone), "offsets": was}
        if right:
            act = Act("offsets.repair", "group", locked.group_id, before, after, principal=principal)
            locked.acts.append(act)
        if gone:
            locked.events.append(told(EventKind.OFFSETS_DELETED, locked.group, gone))
        return done

    async def _stands(self, mends: list[Mend], locked: LockedGroup) -> dict[TopicPartition, str]:
        """`MENDED` if it can be fixed, else why not."""
        parameters = {
            "group": locked.pk,
            "group_id": locked.group_id,
            "topic": [mend.topic for mend in mends],
            "partition": [mend.partition for mend in mends],
            "line_id": [mend.line_id for mend in mends],
            "line_at": [mend.line_at for mend in mends],
        }
        found = await self._db.records(locked.connection, _Stand, Q.repair_stands, parameters)
        now = {(stand.topic, stand.partition): stand for stand in found}
        return {mend.key: _judged(mend, now[mend.key]) for mend in mends}


def _judged(mend: Mend, now: _Stand) -> str:
    if now.newer or (now.record_offset, now.committed_offset) != (mend.seen_record_offset, mend.seen_offset):
        return "committed or removed since the run: run reconcile again"
    if now.pending:
        return "a transaction is open on it: run reconcile again after it has ended"
    if mend.offset is not None and not now.exists:
        return "no such partition"
    return MENDED


def _record(mend: Mend) -> OffsetRecord:
    assert mend.offset is not None
    return OffsetRecord(
        *mend.key,
        offset=mend.offset,
        leader_epoch=mend.leader_epoch,
        metadata=mend.metadata,
        expire_timestamp=mend.expire_timestamp,
        commit_timestamp=mend.line_at,
    )
