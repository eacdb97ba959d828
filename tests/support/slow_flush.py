"""A server that does not store the sessions that it renewed in memory: `python -m tests.support.slow_flush`."""

from __future__ import annotations

from groups.lane.heartbeats import Flusher
from kcoord.stack.server import main


async def _not_yet(self: Flusher) -> None:
    """As if Postgres took for ever."""


if __name__ == "__main__":
    Flusher.flush = _not_yet  # type: ignore[method-assign]
    main()
