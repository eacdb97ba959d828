"""Runs the core with asyncio: each lane is a task of the event loop that first used the consumer."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import httpx

from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Ask, Effect, Send, Wait
from kcoord.client.errors import IllegalStateError
from kcoord.client.http import make_async_client, send_async

T = TypeVar("T")

Main = Coroutine[Effect[Any], Any, T]


class Tasks:
    """Carries out the effects of one core. A cancellation is raised inside the core, where the effect was awaited."""

    def __init__(self, client: httpx.AsyncClient | None) -> None:
        self._client = client or make_async_client()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owner: asyncio.Task[Any] | None = None
        self._lanes: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[None]] = set()
        self.condition = Condition(time.monotonic, self._announce)

    def start(self, name: str, main: Coroutine[Any, Any, None]) -> None:
        """Run a lane as a task."""
        lane = asyncio.get_running_loop().create_task(self._drive(main), name=name)
        self._lanes.add(lane)
        lane.add_done_callback(self._lanes.discard)

    async def run(self, function: Callable[..., Main[T]], *arguments: Any) -> T:
        """Run a call of the user that may wait. Raises IllegalStateError while another task runs one."""
        with self._exclusive():
            # A loop of polls that never have to wait would not let the lanes run.
            await asyncio.sleep(0)
            return await self._drive(function(*arguments))

    async def run_at_once(self, function: Callable[..., Main[T]], *arguments: Any) -> T:
        """`run` without a chance to be cancelled before the core is reached."""
        with self._exclusive():
            return await self._drive(function(*arguments))

    def now(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a call of the user that does not wait. Raises IllegalStateError while another task runs one."""
        with self._exclusive():
            return function(*arguments)

    def look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something that any task may do at any time."""
        return function(*arguments)

    def poke(self, function: Callable[[], None]) -> None:
        """Run `function` on the event loop, from whichever thread."""
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside or self._loop is None:
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    def interrupt(self, function: Callable[[], None]) -> None:
        """Run something from a signal handler. The loop it interrupted may be asleep, and only this wakes it."""
        if self._loop is None or self._loop.is_closed():
            function()
        else:
            self._loop.call_soon_threadsafe(function)

    async def finish(self, deadline: float) -> bool:
        """Wait for the lanes until `deadline`, end those that are left, close the connections. True if none was."""
        lanes = set(self._lanes)
        try:
            if lanes:
                await asyncio.wait(lanes, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            left = [lane for lane in lanes if not lane.done()]
            for lane in left:
                lane.cancel()
            try:
                await asyncio.gather(*left, return_exceptions=True)
            finally:
                await self._client.aclose()
        return not left

    async def _drive(self, main: Main[T]) -> T:
        resume = partial(main.send, None)
        while True:
            try:
                effect = resume()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                resume = partial(main.send, await self._perform(effect))
            except BaseException as error:  # noqa: BLE001 - it is raised inside the core, which ends or passes it on
                resume = partial(main.throw, error)

    async def _perform(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, Send):
            return await send_async(self._client, effect.request)
        if isinstance(effect, Wait):
            return await self._wait(effect)
        assert isinstance(effect, Ask), effect
        result = effect.function(*effect.arguments)
        return await result if inspect.isawaitable(result) else result

    async def _wait(self, effect: Wait) -> None:
        if self.condition.version != effect.seen:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        alarm = None if effect.timeout_s is None else loop.call_later(effect.timeout_s, _ring, waiter)
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)
            if alarm is not None:
                alarm.cancel()

    def _announce(self) -> None:
        for condition in self._waiting:
            _ring(condition)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Refuse use from a second task, or from another event loop."""
        task: asyncio.Task[Any] | None = None
        with contextlib.suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            task = asyncio.current_task()
            if self._loop not in (None, loop):
                raise IllegalStateError("the consumer belongs to another event loop: create one in this loop")
            self._loop = loop
        if self._owner is not None and self._owner is not task:
            raise IllegalStateError("the consumer is in use by another task: one task at a time")
        outer, self._owner = self._owner, task
        try:
            yield
        finally:
            self._owner = outer


def _ring(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
