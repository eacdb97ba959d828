"""Celery tasks of offsets: retention, journal upkeep, samples, abandoned transactions."""

from __future__ import annotations

from celery import shared_task

from kcoord import bridge
from offsets.retention import RetentionService

LONGEST_RUN_SECONDS = 3_600.0
"""A run that takes longer is cut off; what it has removed stays removed, the next one goes on."""


@shared_task(name="offsets.expire")  # type: ignore[untyped-decorator]
def expire() -> int:
    """Remove expired offsets and empty groups; see `RetentionService.run`."""
    report = bridge.call(lambda runtime: runtime.get(RetentionService).run(), LONGEST_RUN_SECONDS)
    return report.offsets
