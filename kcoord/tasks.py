"""Celery tasks of the kernel: the age of the audit."""

from __future__ import annotations

from celery import shared_task

from kcoord.access.audit.chain import Audit
from kcoord.process import bridge

LONGEST_RUN_SECONDS = 3_600.0
"""A run that takes longer is interrupted; what it has removed stays removed, the next one continues."""


@shared_task(name="kcoord.trim_audit")  # type: ignore[untyped-decorator]
def trim_audit() -> int:
    """Remove records of the audit that are too old; see `Audit.trim`."""
    return bridge.call(lambda runtime: runtime.get(Audit).trim(), LONGEST_RUN_SECONDS)
