"""Celery tasks of offsets: retention, journal maintenance, samples, abandoned transactions."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_ready

from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.alerts.checks import AlertChecks
from offsets.commits.retention.deleted_topics import DeletedTopicSweep
from offsets.commits.retention.sweep import Report, RetentionService
from offsets.commits.transactions.service import TransactionService
from offsets.journal.journal_days import JournalDays
from offsets.lag.samples import SampleService
from offsets.plans.service import PlanService
from offsets.runs.service import SparkRuns
from offsets.share.timers import LockTimers
from offsets.verdicts import VerdictChecks

LONGEST_RUN_SECONDS = 3_600.0
"""A run that takes longer is interrupted; what it has removed stays removed, the next one continues."""


@shared_task(name="offsets.expire")  # type: ignore[untyped-decorator]
def expire() -> int:
    """Remove expired offsets and empty groups; see `RetentionService.run`."""

    async def run(runtime: Runtime) -> Report:
        return await runtime.get(RetentionService).run(runtime.config.int("offsets.retention.check.interval.ms"))

    return bridge.call(run, LONGEST_RUN_SECONDS).offsets


@shared_task(name="offsets.sample")  # type: ignore[untyped-decorator]
def sample() -> int:
    """Sample watermarks and lag; see `SampleService.sample`."""
    done = bridge.call(lambda runtime: runtime.get(SampleService).sample(), LONGEST_RUN_SECONDS)
    return done.partitions + done.lags


@shared_task(name="offsets.thin_samples")  # type: ignore[untyped-decorator]
def thin_samples() -> int:
    """Thin samples and drop old ones; see `SampleService.thin`."""
    return bridge.call(lambda runtime: runtime.get(SampleService).thin(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.check_members")  # type: ignore[untyped-decorator]
def check_members() -> int:
    """Judge all groups by their members; see `VerdictChecks.check_members`."""
    return bridge.call(lambda runtime: runtime.get(VerdictChecks).check_members(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.check_offsets")  # type: ignore[untyped-decorator]
def check_offsets() -> int:
    """Judge all groups by their offsets; see `VerdictChecks.check_offsets`."""
    return bridge.call(lambda runtime: runtime.get(VerdictChecks).check_offsets(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.check_alerts")  # type: ignore[untyped-decorator]
def check_alerts() -> int:
    """Compare the rules of alerts with all groups; see `AlertChecks.check`. What is to be told is sent at once."""
    told = bridge.call(lambda runtime: runtime.get(AlertChecks).check(), LONGEST_RUN_SECONDS)
    if told:
        send_alerts.apply_async(expires=600)
    return told


@shared_task(name="offsets.send_alerts")  # type: ignore[untyped-decorator]
def send_alerts() -> int:
    """Send messages about alerts that are due; see `AlertChecks.send`."""
    return bridge.call(lambda runtime: runtime.get(AlertChecks).send(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.abort_abandoned_transactions")  # type: ignore[untyped-decorator]
def abort_abandoned_transactions() -> int:
    """Abort transactions that their producers do not end; see `TransactionService.abort_abandoned`."""
    return bridge.call(lambda runtime: runtime.get(TransactionService).abort_abandoned(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.forget_idle_producers")  # type: ignore[untyped-decorator]
def forget_idle_producers() -> int:
    """Forget producers that no longer end transactions; see `TransactionService.forget_idle`."""
    return bridge.call(lambda runtime: runtime.get(TransactionService).forget_idle(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.end_locks")  # type: ignore[untyped-decorator]
def end_locks() -> int:
    """End locks of items whose time is over; see `LockTimers.end_overdue`."""
    return bridge.call(lambda runtime: runtime.get(LockTimers).end_overdue(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.trim_plans")  # type: ignore[untyped-decorator]
def trim_plans() -> int:
    """Delete plans past the retention of the journal; see `PlanService.trim`."""
    return bridge.call(lambda runtime: runtime.get(PlanService).trim(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.sweep_deleted_topics")  # type: ignore[untyped-decorator]
def sweep_deleted_topics() -> int:
    """Remove what groups committed on deleted topics; see `DeletedTopicSweep.sweep`."""
    return bridge.call(lambda runtime: runtime.get(DeletedTopicSweep).sweep(), LONGEST_RUN_SECONDS)


@shared_task(name="offsets.keep_journal_days")  # type: ignore[untyped-decorator]
def keep_journal_days() -> int:
    """Create and drop day partitions of the journal; see `JournalDays.keep`."""
    report = bridge.call(lambda runtime: runtime.get(JournalDays).keep(), LONGEST_RUN_SECONDS)
    return len(report.made) + len(report.dropped)


@shared_task(name="offsets.archive")  # type: ignore[untyped-decorator]
def archive() -> str:
    """Start a run that archives the journal, if there is an archive; see `SparkRuns.start_scheduled`."""
    return bridge.call(lambda runtime: runtime.get(SparkRuns).start_scheduled("archive"))


@shared_task(name="offsets.reconcile")  # type: ignore[untyped-decorator]
def reconcile() -> str:
    """Start a run that compares offsets with their history; see `SparkRuns.start_scheduled`."""
    return bridge.call(lambda runtime: runtime.get(SparkRuns).start_scheduled("reconcile"))


@worker_ready.connect  # type: ignore[untyped-decorator]
def keep_journal_days_at_once(**kwargs: Any) -> None:
    """A new database has no days, and after long downtime the days ahead are used up: beat runs only hourly."""
    keep_journal_days.apply_async(expires=600)
