"""An AsyncConsumer behind the methods of `Consumer`, so that the same tests run on both drivers.

The consumer lives on an event loop in a thread of its own. A listener of a test may call the consumer again: it runs
in another thread meanwhile, and its calls are awaited by the task that polls, as those of an `async` listener would be.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from kcoord.client import (
    AsyncConsumer,
    AsyncConsumerRebalanceListener,
    AsyncShareConsumer,
    ConsumerRebalanceListener,
    TopicPartition,
)

_here = threading.local()

loops: list[Loop] = []
"""The event loops of the current test, which its fixture `driver` closes."""


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="event-loop", daemon=True)
        self._thread.start()

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Await `main` on the loop, from another thread."""
        return asyncio.run_coroutine_threadsafe(main, self.loop).result()

    async def tasks(self) -> list[str]:
        """The names of the tasks there are."""
        return [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    def close(self) -> None:
        """Stop."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _Pumping(AsyncConsumerRebalanceListener):
    """Calls a listener in a thread, and awaits here what it asks of the consumer."""

    def __init__(self, listener: ConsumerRebalanceListener) -> None:
        self._listener = listener

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        await self._pump(self._listener.on_partitions_revoked, revoked)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        await self._pump(self._listener.on_partitions_assigned, assigned)

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        await self._pump(self._listener.on_partitions_lost, lost)

    async def _pump(self, method: Callable[[Any], None], partitions: Collection[TopicPartition]) -> None:
        calls: asyncio.Queue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def run() -> None:
            _here.calls = (loop, calls)
            try:
                method(partitions)
            finally:
                del _here.calls
                loop.call_soon_threadsafe(calls.put_nowait, None)

        thread = loop.run_in_executor(None, run)
        while (asked := await calls.get()) is not None:
            call, answer = asked
            try:
                answer.set_result(await _awaited(call))
            except Exception as error:  # noqa: BLE001 - raised where it was asked for
                answer.set_exception(error)
        await thread


async def _awaited(call: Callable[[], Any]) -> Any:
    result = call()
    return await result if asyncio.iscoroutine(result) else result


class BlockingConsumer:
    """The methods of `Consumer`, answered by an `AsyncConsumer`."""

    kind: type[Any] = AsyncConsumer

    def __init__(self, *topics: str, **settings: Any) -> None:
        self.loop = Loop()
        loops.append(self.loop)
        self.consumer = self.kind(*topics, **settings)

    def __getattr__(self, name: str) -> Any:
        member = getattr(type(self.consumer), name, None)
        if name.startswith("_") or isinstance(member, property):
            return getattr(self.consumer, name)
        method = getattr(self.consumer, name)
        return lambda *args, **options: self._call(lambda: method(*args, **options))

    def __enter__(self) -> BlockingConsumer:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.close(autocommit=error is None)

    def __iter__(self) -> BlockingConsumer:
        return self

    def __next__(self) -> Any:
        try:
            return self._call(self.consumer.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def wakeup(self) -> None:
        self.consumer.wakeup()

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        if not topics and not pattern:
            return self._call(self.consumer.unsubscribe)
        pattern, listener = (_pumping(each) for each in (pattern, listener))
        return self._call(lambda: self.consumer.subscribe(topics, pattern, listener))

    def close(self, *arguments: Any, **options: Any) -> None:
        """Close. Fails if a task of the consumer is left."""
        try:
            self._call(lambda: self.consumer.close(*arguments, **options))
        finally:
            if self.consumer._core.closed and not hasattr(_here, "calls"):
                assert self.loop.run(self.loop.tasks()) == [], "tasks outlived the consumer"

    def _call(self, call: Callable[[], Any]) -> Any:
        inside = getattr(_here, "calls", None)
        if inside is None:
            return self.loop.run(_awaited(call))
        loop, calls = inside

        async def ask() -> Any:
            answer: asyncio.Future[Any] = loop.create_future()
            calls.put_nowait((call, answer))
            return await answer

        return asyncio.run_coroutine_threadsafe(ask(), loop).result()


class BlockingShareConsumer(BlockingConsumer):
    """The methods of `ShareConsumer`, answered by an `AsyncShareConsumer`."""

    kind = AsyncShareConsumer

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._call(lambda: self.consumer.__aexit__(kind, error, traceback))

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        self._call(lambda: self.consumer.subscribe(topics))


def _pumping(listener: Any) -> Any:
    return _Pumping(listener) if isinstance(listener, ConsumerRebalanceListener) else listener
