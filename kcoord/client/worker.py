"""A thread that sends requests one at a time, so that commits reach the server in the order they were made."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from kcoord.client.monitor import Monitor

T = TypeVar("T")


class Worker:
    """Runs tasks in order on one daemon thread, started by the first. Each finished task is news for `monitor`."""

    def __init__(self, name: str, monitor: Monitor) -> None:
        self._name = name
        self._monitor = monitor
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Run `task` after those submitted before. To be called by one thread only."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._tasks.put((future, task))
        return future

    def close(self, timeout_s: float) -> bool:
        """Finish what was submitted, within `timeout_s` at most. False if something is still running."""
        if self._thread is None:
            return True
        self._tasks.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._tasks.get()) is not None:
            future, task = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = task()
            except Exception as error:  # noqa: BLE001 - passed on through the future
                future.set_exception(error)
            else:
                future.set_result(result)
            self._monitor.changed()
