"""The jobs of `manage.py restore`, as `offsets.spark.command.run_job` runs them.

They are outside of `offsets.spark`: the state of the archive is computed there, and used here, by the services of this
process.
Source: docs/restore.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from kcoord.access.rights import Principal
from kcoord.door.http.types import rfc3339
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.core.plan_types import Line
from offsets.core.types import OffsetRecord
from offsets.journal.archived_offsets import ReadAhead
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader
from offsets.plans.table import plan_lines
from offsets.runs.refilling import RefillService
from offsets.runs.restoring import GroupRestore, RestoreOrder, RestoreService, non_empty
from offsets.spark.command import Installation, SparkStart
from offsets.spark.errors import JobError
from offsets.spark.postgres import exported_snapshot
from offsets.spark.runs import Outcome, Run

if TYPE_CHECKING:
    from offsets.spark.archive.states import GroupStates
    from offsets.spark.archive.table import ArchiveTable

TIMEOUT_SECONDS = 600.0
MOST_LISTED = 1_000
"""The most topics and refusals that the run's row stores."""

T = TypeVar("T")


@dataclass(slots=True)
class RestoreJob:
    """Creates plans for groups, and with `apply` applies them. `groups` None: all. `shown`: changing lines, by plan."""

    installation: Installation
    order: RestoreOrder
    groups: Sequence[str] | None
    apply: bool
    shown: dict[str, list[Line]] = field(default_factory=dict)

    def __call__(self, run: Run, start: SparkStart) -> Outcome:
        """Run it. Raises JobError; refusals of individual groups are findings."""
        asked(lambda runtime: runtime.get(RestoreService).check(self.order.at))
        names, states = self.groups, None
        if names is None:
            names, states = self._all(run, start)
        run.enter("plan")
        with _read_ahead(self.order.at, states):
            made = [self._planned(name) for name in _counted(run, names)]
        refused = [one for one in made if one.error is not None]
        planned = [one for one in made if one.changes]
        if self.apply:
            refused += self._with_members(planned)
            if not refused:
                run.enter("apply")
                made, refused = self._applied(run, made)
        return Outcome(rows=sum(one.changes for one in made), findings=len(refused), result=self._told(made, refused))

    def _all(self, run: Run, start: SparkStart) -> tuple[list[str], GroupStates | None]:
        """All groups, and what the archive says about them, if there is one."""
        from offsets.spark.archive.history import archived_below
        from offsets.spark.archive.table import has_table, open_table

        here = asked(lambda runtime: runtime.get(RestoreService).groups())
        if not self.installation.config.str("archive.path"):
            return sorted(here), None
        storage = self.installation.storage()
        if not has_table(storage) or not (table := open_table(storage)).files:
            return sorted(here), None
        run.enter("check")
        with exported_snapshot(self.installation.conninfo) as snapshot:
            archived_below(run, table, snapshot)  # refuses the archive of another installation
        table.check()
        states = _states(run, start, table, self.order.at)
        return sorted({*here, *states.groups}), states

    def _planned(self, name: str) -> GroupRestore:
        pick = self.groups is None
        made = asked(lambda runtime: runtime.get(RestoreService).plan(name, self.order, pick=pick))
        if made.plan is not None:
            self.shown[made.plan.id] = asked(lambda runtime: _changes(runtime, made.plan))
        return made

    def _with_members(self, planned: Sequence[GroupRestore]) -> list[GroupRestore]:
        """Groups that have members, checked before anything is applied."""
        counted = [(one, _members(one.group_id)) for one in planned]
        return [GroupRestore(one.group_id, one.plan, non_empty(one.group_id, n)) for one, n in counted if n]

    def _applied(self, run: Run, made: Sequence[GroupRestore]) -> tuple[list[GroupRestore], list[GroupRestore]]:
        """Every group after its plan was applied, and those whose plan was refused."""
        after, refused = [], []
        for one in _counted(run, made):
            if one.plan is not None and one.changes:
                one = self._put_back(one, one.plan)
                if one.error is not None:
                    refused.append(one)
            after.append(one)
        return after, refused

    def _put_back(self, one: GroupRestore, plan: PlanHeader) -> GroupRestore:
        try:
            done = asked_or_refused(lambda runtime: runtime.get(RestoreService).apply(plan, self.order.principal))
        except ProtocolError as error:
            return GroupRestore(one.group_id, plan, error, one.gone)
        return GroupRestore(one.group_id, done, gone=one.gone)

    def _told(self, made: Sequence[GroupRestore], refused: Sequence[GroupRestore]) -> dict[str, Any]:
        return {
            "at": rfc3339(self.order.at),
            "apply": self.apply,
            "groups": len(made),
            "unchanged": sum(not one.changes and one.error is None for one in made),
            "plans": [plan_told(one.plan) for one in made if one.plan is not None and one.changes],
            "refused": [
                {"group": one.group_id, "error": one.error.error.name, "detail": one.error.detail}
                for one in refused[:MOST_LISTED]
                if one.error is not None
            ],
            "left_out": [
                {"group": one.group_id, "topic": topic, "partition": partition}
                for one in made
                for topic, partition in one.gone
            ][:MOST_LISTED],
        }


@dataclass(slots=True)
class UndoJob:
    """Undoes what a run of restore applied: `plans` as (group, plan id)."""

    run_id: str
    plans: Sequence[tuple[str, str]]
    principal: Principal

    def __call__(self, run: Run, start: SparkStart) -> Outcome:
        """Run it. Raises JobError; refusals of individual plans are findings."""
        run.enter("undo")
        undone, refused = [], []
        for group_id, plan_id in _counted(run, self.plans):
            try:
                plan = self._taken_back(group_id, plan_id)
                undone.append(plan_told(plan))
            except ProtocolError as error:
                refused.append({"group": group_id, "error": error.error.name, "detail": error.detail})
        told = {"undo": self.run_id, "groups": len(self.plans), "plans": undone, "refused": refused[:MOST_LISTED]}
        return Outcome(rows=len(undone), findings=len(refused), result=told)

    def _taken_back(self, group_id: str, plan_id: str) -> PlanHeader:
        return asked_or_refused(lambda runtime: runtime.get(RestoreService).undo(group_id, plan_id, self.principal))


@dataclass(slots=True)
class RefillJob:
    """Fills an empty database from the archive, as it was at an instant (ms; None: at its end), and takes it over."""

    installation: Installation
    at: int | None
    create_topics: bool
    principal: str

    def __call__(self, run: Run, start: SparkStart) -> Outcome:
        """Run it. Raises JobError."""
        from offsets.spark.archive.archiving import ArchiveOptions, archive
        from offsets.spark.archive.states import newest
        from offsets.spark.archive.table import open_table, read_archive
        from offsets.spark.session import guarded

        run.enter("check")
        table = open_table(self.installation.storage())
        table.check()
        spark = start()
        with guarded(run, spark):
            last_id, last_at = newest(read_archive(spark, table))
        asked(lambda runtime: runtime.get(RefillService).begin(last_id, last_at))
        at = last_at if self.at is None else self.at
        states = _states(run, start, table, at)
        run.enter("fill")
        partitions: dict[str, int] = {}
        filled = offsets = 0
        for name in _counted(run, states.groups):
            records = [_record(row) for row in states.rows(name) if row["committed_offset"] is not None]
            for record in records:
                partitions[record.topic] = max(partitions.get(record.topic, 0), record.partition + 1)
            if records and self._filled(name, records):
                filled, offsets = filled + 1, offsets + len(records)
        missing = asked(lambda runtime: runtime.get(RefillService).missing_topics(partitions))
        if self.create_topics:
            wanted = {topic: partitions[topic] for topic in missing}
            asked(lambda runtime: runtime.get(RefillService).create_topics(wanted))
        config = self.installation.config
        options = ArchiveOptions(config.int("archive.snapshot.timeout.ms"), adopt=True, check_contents=False)
        report = archive(run, start, self.installation.conninfo, self.installation.storage(), options)
        told: dict[str, Any] = {
            "into_empty": True,
            "at": rfc3339(at),
            "groups": filled,
            "offsets": offsets,
            "created_topics" if self.create_topics else "missing_topics": missing[:MOST_LISTED],
            "manifest": report.manifest,
        }
        return Outcome(rows=offsets, files=len(report.files), result=told)

    def _filled(self, name: str, records: list[OffsetRecord]) -> bool:
        return asked(lambda runtime: runtime.get(RefillService).fill(name, records, self.principal))


def asked(work: Callable[[Runtime], Awaitable[T]]) -> T:
    """The result of a service call. Raises JobError with its message if it refuses."""
    try:
        return asked_or_refused(work)
    except ProtocolError as error:
        raise JobError(error.detail) from error


def asked_or_refused(work: Callable[[Runtime], Awaitable[T]]) -> T:
    """The result of a service call. Raises ProtocolError."""
    return bridge.call(work, TIMEOUT_SECONDS)


def plan_told(plan: PlanHeader) -> dict[str, Any]:
    """A plan as part of the printed object."""
    return {"group": plan.group_id, "plan": plan.id, "state": plan.state.value, **plan.totals}


def _members(group_id: str) -> int:
    return asked(lambda runtime: runtime.get(RestoreService).members(group_id))


def _states(run: Run, start: SparkStart, table: ArchiveTable, at: int) -> GroupStates:
    from offsets.spark.archive.states import collected, states_at
    from offsets.spark.archive.table import read_archive
    from offsets.spark.session import guarded

    run.enter("start Spark")
    spark = start()
    with guarded(run, spark):
        run.enter("read")
        return collected(states_at(read_archive(spark, table), at))


@contextmanager
def _read_ahead(at: int, states: GroupStates | None) -> Iterator[None]:
    """Meanwhile, services use these states as the contents of the archive."""
    ahead = None if states is None else ReadAhead(at, states.of)

    async def use(runtime: Runtime, given: ReadAhead | None) -> None:
        runtime.get(RestoreService).use(given)

    asked(lambda runtime: use(runtime, ahead))
    try:
        yield
    finally:
        asked(lambda runtime: use(runtime, None))


def _counted(run: Run, items: Sequence[T]) -> Iterator[T]:
    """The items; reports the run's progress and checks for its cancellation before each."""
    done = 0
    run.progress = lambda: (done, len(items))
    try:
        for item in items:
            run.check()
            yield item
            done += 1
    finally:
        run.progress = None


async def _changes(runtime: Runtime, plan: PlanHeader | None) -> list[Line]:
    assert plan is not None
    return [line async for line in plan_lines(runtime.get(PlanService), plan) if line.changes]


def _record(row: dict[str, Any]) -> OffsetRecord:
    return OffsetRecord(
        row["topic"],
        row["partition"],
        row["committed_offset"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"],
        expire_timestamp=row["expire_timestamp"],
    )
