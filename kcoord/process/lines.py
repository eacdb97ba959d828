"""Who waits, in turn: nobody waits for all that another one asks for, and the states are in the metrics."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from kcoord import metrics

T = TypeVar("T")


class Lines(Generic[T]):
    """Who waits. Lines take turns, in a line its holders do, and what one holder waits for is in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, dict[Hashable, deque[T]]] = {}
        """Of those that wait; whose turn is next comes first."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, item: T, holder: Hashable = None, line: Hashable = None) -> None:
        """`item` comes last of its holder in its line."""
        self._lines.setdefault(line, {}).setdefault(holder, deque()).append(item)
        self._count += 1

    def first(self) -> T:
        """Whose turn is next. Raises StopIteration if nobody waits."""
        return next(iter(next(iter(self._lines.values())).values()))[0]

    def popleft(self) -> T:
        """Take that one out, and put its holder and its line behind the others. Raises StopIteration."""
        line, holders = next(iter(self._lines.items()))
        holder, items = next(iter(holders.items()))
        item = items.popleft()
        del holders[holder], self._lines[line]
        if items:
            holders[holder] = items
        if holders:
            self._lines[line] = holders
        self._count -= 1
        return item

    def remove(self, item: T, holder: Hashable, line: Hashable) -> bool:
        """Take one out that gives up. Whether it waited."""
        holders = self._lines.get(line, {})
        items = holders.get(holder, ())
        if item not in items:
            return False
        holders[holder].remove(item)
        if not items:
            del holders[holder]
        if not holders:
            del self._lines[line]
        self._count -= 1
        return True

    def of(self, line: Hashable) -> Mapping[Hashable, Sequence[T]]:
        """What waits in a line, by holder."""
        return self._lines.get(line, {})


@dataclass(slots=True, eq=False)
class Turn:
    """Who waits in `Places`. `begin` is called with the place; False: there is nobody any more who needs it."""

    holder: Hashable
    begin: Callable[[], bool]
    weight: int
    line: Hashable
    at: float = field(default_factory=time.monotonic)


class Places:
    """Places that are given in turn, as `Lines`: one that wants many does not make others wait for all of them.

    Each holder's own requests are in order of arrival. A request takes as many places as its weight, e.g. bytes; while
    the next one waits for enough of them, nobody overtakes it. Parameters: `count` of places, `queue`: its name in the
    metrics.
    """

    def __init__(self, count: int, queue: str = "") -> None:
        self._free = count
        self._waiting: Lines[Turn] = Lines()
        if queue:
            metrics.ADMISSION_WAITING.labels(queue).set_function(lambda: self.waiting)
            metrics.ADMISSION_HELD.labels(queue).set_function(lambda: count - self._free)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def since(self, line: Hashable) -> float:
        """Since when somebody waits in a line, by the monotonic clock (s); infinite if nobody does."""
        return min((turns[0].at for turns in self._waiting.of(line).values()), default=math.inf)

    def locked(self) -> bool:
        """No place is free, or others are before the caller."""
        return self._free <= 0 or self.waiting > 0

    def has_room(self, holder: Hashable, most: int) -> bool:
        """Whether one more request of the holder may wait, of `most` that may wait together.

        The last quarter is for holders that have less than an equal share: there is room for one that has just come.
        """
        if self.waiting >= most:
            return False
        others = self._waiting.of(None)
        holders = len(others) + (holder not in others)
        return self.waiting < most - most // 4 or len(others.get(holder, ())) < most // max(2, holders)

    def take(self, holder: Hashable, begin: Callable[[], bool], weight: int = 1, line: Hashable = None) -> Turn | None:
        """Take places now: None; or, if they are not free, when it is the turn of the holder: see `Turn`."""
        if not self.waiting and weight <= self._free:
            self._free -= weight
            return None
        turn = Turn(holder, begin, weight, line)
        self._waiting.append(turn, holder, line)
        return turn

    def give(self, weight: int = 1) -> None:
        """Give places back, to the first of the holder whose turn it is."""
        self._free += weight
        while self._waiting and self._waiting.first().weight <= self._free:
            turn = self._waiting.popleft()
            self._free -= turn.weight
            if not turn.begin():
                self._free += turn.weight

    def leave(self, turn: Turn) -> None:
        """Do not wait any longer."""
        if self._waiting.remove(turn, turn.holder, turn.line):
            self.give(0)  # it may have been the one that others wait behind

    @asynccontextmanager
    async def place(self, holder: Hashable = None, line: Hashable = None) -> AsyncIterator[None]:
        """Within the block the caller has a place, for which it waits."""
        granted = asyncio.get_running_loop().create_future()
        turn = self.take(holder, partial(come, granted), line=line)
        if turn is not None:
            try:
                await granted
            except asyncio.CancelledError:
                if granted.cancelled():
                    self.leave(turn)
                else:
                    self.give()  # it was given a place just now
                raise
        try:
            yield
        finally:
            self.give()


def come(turn: asyncio.Future[None]) -> bool:
    """It is its turn; False: the client of a cancelled one is gone."""
    if turn.done():
        return False
    turn.set_result(None)
    return True
