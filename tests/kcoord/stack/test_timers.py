"""How long a connection is kept alive, on a clock that the tests set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kcoord.access.rights import Access
from kcoord.config import Config
from kcoord.door.http.connection import HttpProtocol
from kcoord.process import runtime as runtimes
from tests.support.doors import TOKEN, Door, heartbeat

BEAT = heartbeat()


class Clock:
    """A loop whose time is told, with the timers that were set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:
        entry = (self.now + delay, callback)
        self.timers.append(entry)
        return _Timer(lambda: self.timers.remove(entry))

    def ring(self) -> float:
        """Let the only timer end; when that is."""
        ((self.now, callback),) = self.timers
        self.timers.clear()
        callback()
        return self.now


class _Timer:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel


class Wire(asyncio.Transport):
    """A transport without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


@contextmanager
def wired() -> Iterator[tuple[Door, HttpProtocol, Wire, Clock]]:
    """A connection without a network, whose token is known, on a clock that stands."""
    door = Door(Config({}))
    runtimes.use(door.runtime)
    with asyncio.Runner() as runner:

        async def make() -> HttpProtocol:
            await door.runtime.get(Access).authenticate(TOKEN)
            return door.factory()()

        protocol, wire, clock = runner.run(make()), Wire(), Clock()
        protocol.loop = clock  # type: ignore[assignment]
        protocol._turnstile = None  # its rounds are those of a loop
        protocol.connection_made(wire)
        yield door, protocol, wire, clock
    runtimes.use(None)


def test_a_connection_is_kept_alive_after_its_last_answer() -> None:
    with wired() as (door, protocol, wire, clock):
        seconds = protocol.timeout_keep_alive
        protocol.data_received(BEAT)
        for clock.now in (1.0, 2.0, 3.0):
            protocol.data_received(BEAT)
        assert len(door.service.at_once) == 4
        assert clock.ring() == seconds
        assert not wire.closed, "there was a request since then"
        assert clock.ring() == 3.0 + seconds
        assert wire.closed


def test_a_request_that_has_begun_is_not_ended_by_the_timer() -> None:
    with wired() as (door, protocol, wire, clock):
        seconds = protocol.timeout_keep_alive
        protocol.data_received(BEAT)
        protocol.data_received(BEAT[:30])
        assert clock.ring() == seconds
        assert not wire.closed, "it has limits of its own"
        protocol.data_received(BEAT[30:])
        assert len(clock.timers) == 1
        assert len(door.service.at_once) == 2
        assert clock.ring() == 2 * seconds
        assert wire.closed
