"""A server that seldom stores the sessions that it renewed in memory: `python -m tests.support.slow_flush`."""

from __future__ import annotations

from groups.lane.flusher import Flusher
from kcoord.process.runtime import Runtime
from kcoord.stack.server import main

FLUSH_SECONDS = 10.0
"""Longer than the session of its members."""

_init = Flusher.__init__


def _slow(self: Flusher, runtime: Runtime) -> None:
    _init(self, runtime)
    self._interval_seconds = FLUSH_SECONDS


if __name__ == "__main__":
    Flusher.__init__ = _slow  # type: ignore[method-assign]
    main()
