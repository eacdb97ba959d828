"""The commands of the Spark jobs: `manage.py archive`, and `python -m offsets.spark archive` without Django.

Nothing of Spark is imported before a job runs: its packages may still be on their way, or not be there at all. Each
prints one object with `--format json`, or lines for people. Exit status: 0, 1 for findings, 2 for jobs that cannot run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kcoord.config import Config
from kcoord.spark_packages import SparkUnavailable, wait_for_spark
from offsets.core.days import DAY_MS
from offsets.spark.errors import INTERRUPTED, ArchiveDamaged, JobError, RunCancelled, first_line
from offsets.spark.runs import Outcome, Run, RunRequest, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from offsets.spark.archive.storage import Storage
    from offsets.spark.session import SparkSettings

OK, FINDINGS, CANNOT_RUN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Installation:
    """What a job needs from the service: its settings, its database, its data directory."""

    config: Config
    conninfo: str
    data_dir: Path

    def storage(self) -> Storage:
        """The archive. Raises JobError if none is configured."""
        from offsets.spark.archive.storage import Storage

        return Storage(self.config.str("archive.path"))

    def spark_settings(self) -> SparkSettings:
        """How Spark is started."""
        from offsets.spark.session import SparkSettings

        return SparkSettings(
            self.config.str("spark.master"), self.data_dir / "spark", self.config.int("spark.driver.memory.mb")
        )


@dataclass(slots=True)
class SparkStart:
    """Starts Spark when a job wants it, stops it at the end, and knows how long the start took (`seconds`)."""

    settings: Callable[[], SparkSettings]
    seconds: float = 0.0
    _session: SparkSession | None = field(default=None)

    def __call__(self) -> SparkSession:
        """The running Spark. Raises JobError."""
        if self._session is None:
            from offsets.spark.session import start_spark

            begun = time.monotonic()
            self._session = start_spark(self.settings())
            self.seconds = time.monotonic() - begun
        return self._session

    def stop(self) -> None:
        """Stop what was started. Java may be gone already: a service manager signals all processes of a group."""
        if self._session is not None:
            from py4j.protocol import Py4JError

            with suppress(Py4JError, OSError):
                self._session.stop()


Job = Callable[[Run, SparkStart], Outcome]


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that all job commands take."""
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json: one object on one line")
    parser.add_argument("--run-id", type=UUID, default=None, help="id of a run that was requested over the API")
    parser.add_argument("--nice", type=int, default=0, help="lower the priority, as nice(1) does; 0 to 19")
    parser.add_argument("--log-path", default="", help="file to which the caller writes the output of this process")


def add_archive_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `archive`."""
    add_common_arguments(parser)
    parser.add_argument(
        "--adopt", action="store_true", help="take over the archive of the installation this database was restored from"
    )
    parser.add_argument(
        "--check",
        choices=("full", "sizes"),
        default="full",
        help="how published files are compared: by SHA-256, or only by size",
    )


def archive_job(installation: Installation, given: Mapping[str, Any]) -> Job:
    """The job of `archive` for the parsed arguments `given`."""

    def job(run: Run, start: SparkStart) -> Outcome:
        from offsets.spark.archive.archiving import ArchiveOptions, archive

        options = ArchiveOptions(
            deadline_ms=installation.config.int("archive.snapshot.timeout.ms"),
            adopt=bool(given.get("adopt")),
            check_contents=given.get("check", "full") == "full",
        )
        return archive(run, start, installation.conninfo, installation.storage(), options).outcome()

    return job


def add_reconcile_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `reconcile`."""
    add_common_arguments(parser)
    parser.add_argument(
        "--watermark-margin-ms",
        type=int,
        default=0,
        help="how much later than a commit a watermark must be reported to prove where the log ended; for probes "
        "that report long after measuring",
    )


def reconcile_job(installation: Installation, given: Mapping[str, Any]) -> Job:
    """The job of `reconcile` for the parsed arguments `given`."""
    config = installation.config

    def job(run: Run, start: SparkStart) -> Outcome:
        from offsets.spark.reconcile.reconciling import ReconcileOptions, reconcile

        options = ReconcileOptions(
            deadline_ms=config.int("archive.snapshot.timeout.ms"),
            events_retention_ms=config.int("events.retention.days") * DAY_MS,
            margin_ms=given.get("watermark_margin_ms", 0),
        )
        storage = installation.storage() if config.str("archive.path") else None
        return reconcile(run, start, installation.conninfo, storage, options).outcome()

    return job


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `report`."""
    add_common_arguments(parser)
    parser.add_argument(
        "--idle-days", type=int, default=7, help="a group without commits for this long is idle (default: 7)"
    )


def report_job(installation: Installation, given: Mapping[str, Any]) -> Job:
    """The job of `report` for the parsed arguments `given`."""
    config = installation.config

    def job(run: Run, start: SparkStart) -> Outcome:
        from offsets.spark.report.reporting import ReportOptions, report

        options = ReportOptions(
            idle_days=given.get("idle_days", 7),
            deadline_ms=config.int("archive.snapshot.timeout.ms"),
            events_kept=config.int("events.max.per.group"),
        )
        return report(run, start, installation.conninfo, installation.storage(), options).outcome()

    return job


def requested(given: Mapping[str, Any], requested_by: str, **parameters: Any) -> RunRequest:
    """The request of the common parsed arguments `given`. Sets this process's niceness accordingly."""
    if given["nice"]:
        os.nice(given["nice"])
    return RunRequest(requested_by, parameters, given["run_id"], given["log_path"])


def run_job(
    kind: str, job: Job, installation: Installation, request: RunRequest, also: tuple[str, ...] = ()
) -> tuple[int, dict[str, Any]]:
    """Run a job under the lock of its kind (and those of `also`); returns its status and the `--format json` object.

    A job that cannot run is an `error` in the object, not an exception: a crash must not be mistaken for findings.
    """
    begun = time.monotonic()
    start = SparkStart(installation.spark_settings)
    told: dict[str, Any] = {"kind": kind}
    try:
        with _sigterm_interrupts(), running(installation.conninfo, kind, request, also) as run:
            told["run"] = str(run.id)
            _wait_for_packages(run)
            run.outcome = job(run, start)
            told |= {**(run.outcome.result or {}), **run.outcome.printed}
        status = FINDINGS if run.outcome.findings else OK
        told |= {"state": "succeeded"}
    except JobError as error:
        status = CANNOT_RUN
        told |= {"state": "cancelled" if isinstance(error, RunCancelled) else "failed", "error": str(error)}
        if isinstance(error, ArchiveDamaged):
            told["problems"] = list(error.problems)
    except KeyboardInterrupt:
        status = CANNOT_RUN
        told |= {"state": "cancelled", "error": INTERRUPTED}
    except Exception as error:  # noqa: BLE001 - reported with its traceback and the status of a job that cannot run
        traceback.print_exc()
        status = CANNOT_RUN
        told |= {"state": "failed", "error": f"{type(error).__name__}: {first_line(error)}"}
    finally:
        start.stop()
    told |= {"seconds": round(time.monotonic() - begun, 3), "spark_start_seconds": round(start.seconds, 3)}
    return status, told


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM ends the block like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait_for_packages(run: Run) -> None:
    """Wait while they are being installed; the run's stage says so. Raises JobError if they do not come."""
    try:
        wait_for_spark(run.enter)
    except SparkUnavailable as missing:
        raise JobError(str(missing)) from missing


def shown(kind: str, told: Mapping[str, Any], form: str) -> str:
    """The output of a command."""
    if form == "json":
        return json.dumps(told, ensure_ascii=False)
    if "error" in told:
        return f"{kind}: {told['error']}"
    return SUMMARIES[kind](told)


def _archive_summary(told: Mapping[str, Any]) -> str:
    days = ", ".join(f"{day['date']} ({day['rows']})" for day in told["days"]) or "none"
    lines = [
        f"archived {told['rows']} rows in {told['files']} files ({told['bytes']} bytes), days: {days}",
        f"bound {told['bound']}, manifest {told['manifest']}, {told['seconds']} s, of which Spark's start "
        f"{told['spark_start_seconds']} s",
    ]
    if told["rebased"]:
        lines.append("the database or its timeline changed since the last run: all rows were compared")
    if told["made_up"]:
        lines.append(f"recorded for runs that were killed: manifests {', '.join(map(str, told['made_up']))}")
    if told["compacted"]["replaced"]:
        lines.append(f"compacted {told['compacted']['replaced']} files to {told['compacted']['by']}")
    return "\n".join(lines)


def _reconcile_summary(told: Mapping[str, Any]) -> str:
    source = "archive and journal" if told["with_archive"] else "the journal"
    kinds = ", ".join(f"{kind} {count}" for kind, count in told["by_kind"].items())
    lines = [
        f"{one['kind']:18} {one['group']} {one['topic']}-{one['partition']}: expected {_value(one['expected'])}, "
        f"found {_value(one['found'])} (journal: {', '.join(map(str, one['evidence']['journal_ids'])) or 'no line'})"
        for one in told["findings"]
    ]
    if told["not_listed"]:
        lines.append(f"and {told['not_listed']} more")
    lines.append(
        f"{told['findings_total']} findings{f' ({kinds})' if kinds else ''} in {told['rows']} lines of {source}, "
        f"{told['partitions']} partitions; {told['seconds']} s, of which Spark's start {told['spark_start_seconds']} s"
    )
    return "\n".join(lines)


def _report_summary(told: Mapping[str, Any]) -> str:
    tables = ", ".join(f"{name} ({rows})" for name, rows in told["tables"].items())
    return (
        f"{told['rows']} commits in {len(told['days'])} days; {tables}, in {len(told['written'])} files below "
        f"reports/run={told['run']}; {told['seconds']} s, of which Spark's start {told['spark_start_seconds']} s"
    )


def _value(number: int | None) -> str:
    return "none" if number is None else str(number)


SUMMARIES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "archive": _archive_summary,
    "reconcile": _reconcile_summary,
    "report": _report_summary,
}
"""How each kind of run is printed for people."""
