"""The Spark jobs that can be started: what each found last, when it runs by itself, and how to start it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django_celery_beat.models import PeriodicTask

from offsets.runs.service import STARTABLE, SparkRun, SparkRuns


@dataclass(frozen=True, slots=True)
class LastRuns:
    """Of a kind: the newest run that succeeded, and the newest of all."""

    done: SparkRun | None
    newest: SparkRun | None

    @property
    def running(self) -> SparkRun | None:
        """The run that goes on."""
        return self.newest if self.newest is not None and self.newest.is_open else None

    @property
    def failed(self) -> SparkRun | None:
        """The newest run, if it ended without success."""
        newest = self.newest
        return None if newest is None or newest.is_open or newest == self.done else newest


async def last_runs(runs: SparkRuns) -> Mapping[str, LastRuns]:
    """The last runs by kind. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""

    async def of(kind: str) -> LastRuns:
        done, listed = await asyncio.gather(runs.newest(kind), runs.runs(kind=kind, limit=1))
        return LastRuns(done, next(iter(listed.items), None))

    found = await asyncio.gather(*map(of, STARTABLE))
    return dict(zip(STARTABLE, found, strict=True))


def schedules() -> Mapping[str, Sequence[str]]:
    """When beat starts the jobs, in words, by kind; a job that is not scheduled is not there."""
    tasks = PeriodicTask.objects.filter(enabled=True, task__in=[f"offsets.{kind}" for kind in STARTABLE])
    found: dict[str, list[str]] = {}
    for task in tasks.select_related("crontab", "interval", "solar", "clocked").order_by("name"):
        found.setdefault(task.task.removeprefix("offsets."), []).append(_words(task))
    return found


def _words(task: PeriodicTask) -> str:
    """`at 03:00 UTC`, or the schedule as the admin writes it."""
    crontab = task.crontab
    if crontab is None:
        return str(task.scheduler)
    days = crontab.day_of_week, crontab.day_of_month, crontab.month_of_year
    if days == ("*", "*", "*") and crontab.minute.isdecimal() and crontab.hour.isdecimal():
        return f"every day at {int(crontab.hour):02}:{int(crontab.minute):02} {crontab.timezone}"
    fields = crontab.minute, crontab.hour, crontab.day_of_month, crontab.month_of_year, crontab.day_of_week
    return f"{' '.join(fields)} {crontab.timezone}"
