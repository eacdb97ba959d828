"""Read model of reports from the archive: the run, and what its files say. The reports themselves: docs/archive.md.

Reading them needs pyarrow; nothing here starts Spark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import structlog

from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.spark_packages import SparkUnavailable, require_spark
from offsets.runs.service import SparkRun, SparkRuns, unknown_run
from offsets.spark.errors import JobError

if TYPE_CHECKING:
    from offsets.spark.report.reading import GroupReport, GroupsFound, PartitionTotals, ReportFiles

log = structlog.get_logger(__name__)

T = TypeVar("T")

MOST_DAYS = 366
"""The most days shown of a group, the newest ones; the files have all of them."""
MOST_MEMBERS = 20


class ReportUnreadable(ProtocolError):
    """UNKNOWN_SERVER_ERROR: the files of a run cannot be read."""

    def __init__(self, reason: object) -> None:
        super().__init__(Error.UNKNOWN_SERVER_ERROR, f"the files of the report cannot be read: {reason}")


class Reports:
    """Reads reports. Methods raise ReportUnreadable if the files of a run cannot be read."""

    def __init__(self, runtime: Runtime) -> None:
        self._runs = runtime.get(SparkRuns)

    async def run(self, run_id: str | None = None) -> SparkRun | None:
        """A successful report run; without an id the newest, or None before the first.

        Raises RunRefused with status 404.
        """
        if run_id is None:
            return await self._runs.newest("report")
        found = await self._runs.run(run_id)
        if found.kind != "report" or found.state != "succeeded":
            raise unknown_run(run_id)
        return found

    async def groups(
        self, run: SparkRun, *, sort: str, q: str = "", idle_before: int | None = None, first: int = 0, limit: int
    ) -> GroupsFound:
        """A page of a run's groups.

        `sort`: of `offsets.spark.report.reading.SORTS`. `idle_before` (ms): only groups that last committed before.
        """

        def read(files: ReportFiles) -> GroupsFound:
            return files.groups(sort, q, idle_before, first, limit)

        return await self._reading(run, read)

    async def partitions(self, run: SparkRun, *, first: int = 0, limit: int) -> tuple[int, list[PartitionTotals]]:
        """How many busiest partitions a run recorded, and a page of them."""
        return await self._reading(run, lambda files: files.partitions(first, limit))

    async def of_group(
        self, run: SparkRun, group_id: str, *, days: int = MOST_DAYS, members: int = MOST_MEMBERS
    ) -> GroupReport | None:
        """What a run says about a group: its newest days, and the members that were seen last; None: nothing."""
        return await self._reading(run, lambda files: files.of_group(group_id, days, members))

    async def _reading(self, run: SparkRun, read: Callable[[ReportFiles], T]) -> T:
        return await asyncio.to_thread(self._read, run, read)

    def _read(self, run: SparkRun, read: Callable[[ReportFiles], T]) -> T:
        try:
            require_spark()
            # Here: services without an archive do not need pyarrow.
            from offsets.spark.archive.storage import Storage
            from offsets.spark.report.reading import ReportFiles

            return read(ReportFiles(Storage(self._runs.archive_path), (run.result or {}).get("written") or ()))
        except (JobError, SparkUnavailable) as error:
            log.warning("report_unreadable", run=run.id, reason=str(error))
            raise ReportUnreadable(error) from error
