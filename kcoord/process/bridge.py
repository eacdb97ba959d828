"""The one bridge from synchronous code to the async services.

Services are written once, as coroutines. REST views, Celery tasks and management commands call them through `call`,
from any thread. In a process that serves requests the coroutine runs on the loop of the current
runtime. In any other process the bridge starts, at the first call, one background thread with its own loop and runtime,
built from Django's settings; the thread ends with the process, and a forked child starts its own.

Source: architecture.md 4 ("Sync callers run the same async services through one bridge").
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import TypeVar

from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0
"""The longest a synchronous caller waits by default."""

STOP_SECONDS = 5.0
"""How long process exit waits for the background runtime to close its connections."""


def call(work: Callable[[Runtime], Awaitable[T]], timeout_seconds: float = TIMEOUT_SECONDS) -> T:
    """Run `work(runtime)` on the loop of this process's runtime and return its result, or raise its exception.

    Raises ProtocolError REQUEST_TIMED_OUT if no result arrives within `timeout_seconds`; the work is cancelled, and
    it is then unknown whether an open transaction committed. Raises COORDINATOR_NOT_AVAILABLE while the
    process starts or stops. Raises RuntimeError when called on a thread that runs an event loop: blocking there would
    stall the loop that produces the result.
    """
    _refuse_on_a_loop()
    runtime = runtimes.current() if runtimes.is_running() else _background()
    if runtime.loop is None:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "this process is starting or stopping")

    async def run() -> T:
        return await work(runtime)

    future = asyncio.run_coroutine_threadsafe(run(), runtime.loop)
    try:
        return future.result(timeout_seconds)
    except CancelledError:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "this process is stopping") from None
    except TimeoutError:
        if future.done() and not future.cancelled():
            raise  # the work itself raised a TimeoutError
        future.cancel()
        raise ProtocolError(
            Error.REQUEST_TIMED_OUT,
            f"no result after {timeout_seconds:g} s; the request may or may not have taken effect",
        ) from None


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("bridge.call blocks, and this thread runs an event loop: await the service instead")


class _Background:
    """A thread with a loop and a runtime, for a process without its own."""

    def __init__(self) -> None:
        from django.conf import settings

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kcoord-bridge", daemon=True)
        self._thread.start()
        self.runtime = Runtime(settings.KCOORD, settings.CONNINFO)
        try:
            asyncio.run_coroutine_threadsafe(self.runtime.start(), self._loop).result(TIMEOUT_SECONDS)
        except BaseException:
            self._end_loop()
            raise

    def close(self) -> None:
        """Stop the runtime and end the thread, within STOP_SECONDS each."""
        try:
            asyncio.run_coroutine_threadsafe(self.runtime.stop(), self._loop).result(STOP_SECONDS)
        finally:
            self._end_loop()

    def _end_loop(self) -> None:
        with contextlib.suppress(TimeoutError):
            # Otherwise tasks that a busy machine did not finish in time, such as pool workers, would be reported.
            asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop).result(STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


async def _end_tasks() -> None:
    """Cancel what is still running on this loop, and wait for it to end."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest)


_lock = threading.Lock()
_started: _Background | None = None


def _background() -> Runtime:
    global _started
    with _lock:
        if _started is None:
            _started = _Background()
        return _started.runtime


def close() -> None:
    """Close the background runtime, if any; the next call starts another."""
    global _started
    with _lock:
        started, _started = _started, None
    if started is not None:
        started.close()


_inherited: list[_Background | None] = []
"""References a forked child has from its parents: kept, because asyncio would log their tasks if garbage-collected."""


def _forget_parent() -> None:
    """A fork copies no threads, so no loop runs in the child: it starts without a runtime and with an unlocked lock."""
    global _lock, _started
    runtimes.use(None)
    _inherited.append(_started)
    _lock, _started = threading.Lock(), None


atexit.register(close)
os.register_at_fork(after_in_child=_forget_parent)
