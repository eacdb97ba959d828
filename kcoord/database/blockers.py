"""Sessions of frozen processes that hold locks and that Postgres does not end by itself.

A backend that waits for its client to read a large result ignores all timeouts. A process whose lock waits time out
ends such sessions, and so does each tick of the timers.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 0.5
"""Minimum interval between two checks of one process."""


class Blockers:
    """Ends stuck sessions, for one process.

    Parameters: `find` ends them all and returns pid and wait event of each.
    """

    def __init__(self, find: Callable[[], Awaitable[list[Any]]]) -> None:
        self._find = find
        self._looked = float("-inf")

    async def end(self) -> int:
        """Check, unless this process has just done so; returns how many sessions were ended."""
        if time.monotonic() - self._looked < PAUSE_SECONDS:
            return 0
        self._looked = time.monotonic()
        ended = await self._find()
        for pid, wait_event, *_ in ended:
            log.warning("stuck_session_ended", pid=pid, wait_event=wait_event)
        return len(ended)
