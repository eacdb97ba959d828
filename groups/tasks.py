"""Celery tasks of groups: the timers' guarantee."""

from __future__ import annotations

from celery import shared_task

from groups.engine.timers import TimerService
from kcoord.process import bridge


@shared_task(name="groups.tick_due_groups")  # type: ignore[untyped-decorator]
def tick_due_groups() -> int:
    """Expire due groups; see `TimerService.tick_due_groups`."""
    return bridge.call(lambda runtime: runtime.get(TimerService).tick_due_groups())


@shared_task(name="groups.trim_events")  # type: ignore[untyped-decorator]
def trim_events() -> int:
    """Delete events that are old or too many; see `TimerService.trim_events`."""
    return bridge.call(lambda runtime: runtime.get(TimerService).trim_events())
