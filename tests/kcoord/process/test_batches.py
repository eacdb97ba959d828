"""What waits goes in batches, of which a second one does not begin for less than the first one took."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from kcoord.requests.turnstile import Batches
from tests.support.members import eventually


class Waiting:
    """What waits is a number. A batch takes `most` of it, and ends when `end` says so."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self.begun: list[tuple[int, asyncio.Event]] = []
        self.batches = Batches(lambda: self.count, self._prepare)

    def _prepare(self) -> Coroutine[Any, Any, None] | None:
        taken = min(self.count, self.most)
        self.count -= taken
        return self._batch(taken) if taken else None

    async def _batch(self, taken: int) -> None:
        ended = asyncio.Event()
        self.begun.append((taken, ended))
        await ended.wait()

    async def come(self, count: int) -> list[int]:
        """More waits. How much each batch took, once those that may begin have begun."""
        self.count += count
        self.batches.call()
        for _ in range(5):
            await asyncio.sleep(0)
        return [taken for taken, _ in self.begun]

    def end(self, number: int) -> None:
        """This batch ends."""
        self.begun[number][1].set()


async def test_a_second_batch_begins_when_as_much_waits_as_the_first_took() -> None:
    waiting = Waiting(most=10)
    assert await waiting.come(3) == [3]
    assert await waiting.come(2) == [3]
    assert await waiting.come(1) == [3, 3]
    assert await waiting.come(9) == [3, 3], "two at once"


async def test_what_waits_goes_when_the_first_batch_ends() -> None:
    waiting = Waiting(most=10)
    await waiting.come(3)
    await waiting.come(1)
    waiting.end(0)
    await eventually(lambda: [taken for taken, _ in waiting.begun] == [3, 1], "the rest has gone")


async def test_a_batch_that_could_not_take_all_is_followed_at_once() -> None:
    waiting = Waiting(most=10)
    assert await waiting.come(25) == [10, 10]


async def test_one_does_not_wait_for_another() -> None:
    waiting = Waiting(most=10)
    assert await waiting.come(1) == [1]
    assert await waiting.come(1) == [1, 1]
