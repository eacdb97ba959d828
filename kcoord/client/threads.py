"""Runs the core with threads: each lane is one, a lock makes sure that only one of them is inside the core."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import httpx

from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Ask, Effect, Send, Wait
from kcoord.client.errors import IllegalStateError
from kcoord.client.http import make_client, send

T = TypeVar("T")

Main = Coroutine[Effect[Any], Any, T]


class Threads:
    """Carries out the effects of one core. The lock is held while the core runs, not while an effect does."""

    def __init__(self, client: httpx.Client | None) -> None:
        self._client = client or make_client()
        self._inside = threading.Condition(threading.RLock())
        self._user = threading.RLock()
        self._lanes: list[threading.Thread] = []
        self.condition = Condition(time.monotonic, self._inside.notify_all)

    def start(self, name: str, main: Coroutine[Any, Any, None]) -> None:
        """Run a lane on a daemon thread."""
        self._lanes = [lane for lane in self._lanes if lane.is_alive()]
        lane = threading.Thread(target=self._drive, args=(main,), name=name, daemon=True)
        self._lanes.append(lane)
        lane.start()

    def run(self, function: Callable[..., Main[T]], *arguments: Any) -> T:
        """Run a call of the user that may wait. Raises IllegalStateError while another thread runs one."""
        with self._exclusive():
            return self._drive(function(*arguments))

    def now(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a call of the user that does not wait. Raises IllegalStateError while another thread runs one."""
        with self._exclusive(), self._inside:
            return function(*arguments)

    def look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something that any thread may do at any time."""
        with self._inside:
            return function(*arguments)

    def interrupt(self, function: Callable[[], None]) -> None:
        """Run something from a signal handler. Whatever the handler interrupted may hold the lock, or be about to wait
        for condition, so another thread does it.
        """
        threading.Thread(target=self.look, args=(function,), name="kcoord-signal", daemon=True).start()

    def finish(self, deadline: float) -> bool:
        """Wait for the lanes until `deadline`, then close the connections. True if all lanes have ended."""
        for lane in self._lanes:
            lane.join(max(0.0, deadline - time.monotonic()))
        self._client.close()
        return not any(lane.is_alive() for lane in self._lanes)

    def _drive(self, main: Main[T]) -> T:
        resume = partial(main.send, None)
        while True:
            with self._inside:
                try:
                    effect = resume()
                except StopIteration as end:
                    result: T = end.value
                    return result
            try:
                resume = partial(main.send, self._perform(effect))
            except BaseException as error:  # noqa: BLE001 - it is raised inside the core, which ends or passes it on
                resume = partial(main.throw, error)

    def _perform(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, Send):
            return send(self._client, effect.request)
        if isinstance(effect, Wait):
            with self._inside:
                self._inside.wait_for(lambda: self.condition.version != effect.seen, effect.timeout_s)
            return None
        assert isinstance(effect, Ask), effect
        result = effect.function(*effect.arguments)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"{effect.function!r} is asynchronous: use kcoord.client.AsyncConsumer")
        return result

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Refuse use from a second thread."""
        if not self._user.acquire(blocking=False):
            raise IllegalStateError("the consumer is in use by another thread: one thread at a time")
        try:
            yield
        finally:
            self._user.release()
