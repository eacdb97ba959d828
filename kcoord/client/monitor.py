"""The one lock of a consumer, and a way to wait for news without missing any."""

from __future__ import annotations

import threading
from types import TracebackType


class Monitor:
    """Guards what the user's thread, the heartbeat thread and the join thread share; use it in a `with` statement.

    `version` grows with each piece of news: remember it, read the state, then wait for anything newer.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.RLock())
        self.version = 0

    def __enter__(self) -> None:
        self._condition.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._condition.release()

    def changed(self) -> None:
        """Announce news: wake all waiting threads."""
        with self._condition:
            self.version += 1
            self._condition.notify_all()

    def wait(self, seen: int, timeout_s: float | None) -> bool:
        """Wait until there is news since version `seen`, at most `timeout_s`. True if there is."""
        with self._condition:
            return self._condition.wait_for(lambda: self.version != seen, timeout_s)
