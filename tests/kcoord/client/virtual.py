"""A driver without threads, sockets or a clock: lanes take turns, and time passes only when all of them wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Ask, Effect, Send, Wait
from kcoord.client.core.http import Disconnected
from kcoord.client.http import _taken


@dataclass
class Lane:
    """A lane, with what continues it, and what it waits for."""

    name: str
    main: Coroutine[Any, Any, Any]
    resume: Callable[[], Any]
    wait: Wait | None = None
    until: float = 0.0
    result: Any = None
    error: BaseException | None = None
    ended: bool = False


class Virtual:
    """Runs a core against a function that answers requests at once. `now` is the time in seconds."""

    def __init__(self, handler: Callable[[httpx.Request], httpx.Response]) -> None:
        self.now = 0.0
        self.condition = Condition(lambda: self.now)
        self._handler = handler
        self._lanes: list[Lane] = []

    def start(self, name: str, main: Coroutine[Any, Any, None]) -> None:
        """Add a lane."""
        self._lanes.append(Lane(name, main, partial(main.send, None)))

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        """Run everything until `main` has ended; returns its result."""
        self.start("user", main)
        mine = self._lanes[-1]
        while not mine.ended:
            self._turn(math.inf)
        if mine.error is not None:
            raise mine.error
        return mine.result

    def pass_time(self, seconds: float) -> None:
        """Run the lanes for so long, while the user does nothing."""
        end = self.now + seconds
        while self.now < end:
            self._turn(end)

    def _turn(self, end: float) -> None:
        ready = [lane for lane in self._lanes if self._is_ready(lane)]
        for lane in ready:
            self._step(lane)
        self._lanes = [lane for lane in self._lanes if not lane.ended]
        if not ready:
            self.now = min([end, *(lane.until for lane in self._lanes)])
            assert self.now < math.inf, "nothing will ever happen"

    def _is_ready(self, lane: Lane) -> bool:
        return lane.wait is None or lane.wait.seen != self.condition.version or lane.until <= self.now

    def _step(self, lane: Lane) -> None:
        lane.wait = None
        try:
            effect = lane.resume()
        except StopIteration as end:
            lane.result, lane.ended = end.value, True
            return
        except Exception as error:  # noqa: BLE001 - raised by `run`
            lane.error, lane.ended = error, True
            return
        if isinstance(effect, Wait):
            lane.wait = effect
            lane.until = math.inf if effect.timeout_s is None else self.now + effect.timeout_s
            lane.resume = partial(lane.main.send, None)
            return
        try:
            lane.resume = partial(lane.main.send, self._perform(effect))
        except Exception as error:  # noqa: BLE001 - raised inside the core
            lane.resume = partial(lane.main.throw, error)

    def _perform(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, Send):
            request = effect.request
            sent = httpx.Request(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.content,
                extensions={"timeout": {"connect": request.timeout_s, "read": request.read_timeout_s}},
            )
            try:
                return _taken(self._handler(sent))
            except httpx.RequestError as error:
                raise Disconnected(f"{request.method} {request.url}: {error}") from error
        assert isinstance(effect, Ask), effect
        return effect.function(*effect.arguments)
