"""Answers that come later, without a task that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

B = TypeVar("B")
T = TypeVar("T")


class Later(Generic[T]):
    """An answer that is made of what a future brings, where the future is resolved: no task waits for it.

    `finish` gets the result of the future; it returns the answer, or something to await.
    """

    __slots__ = ("finish", "future")

    def __init__(self, future: asyncio.Future[Any], finish: Callable[[Any], T | Awaitable[T]]) -> None:
        self.future = future
        self.finish = finish

    def __await__(self) -> Generator[Any, None, T]:
        """The answer."""
        found = self.finish((yield from self.future))
        return (yield from found.__await__()) if hasattr(found, "__await__") else found


class Then(Generic[B, T]):
    """An answer that is made of what something to await brings. It may be closed instead of awaited."""

    __slots__ = ("_finish", "_first")

    def __init__(self, first: Awaitable[B], finish: Callable[[B], T | Awaitable[T]]) -> None:
        self._first = first
        self._finish = finish

    def __await__(self) -> Generator[Any, None, T]:
        """The answer."""
        found = self._finish((yield from self._first.__await__()))
        return (yield from found.__await__()) if hasattr(found, "__await__") else found

    def close(self) -> None:
        """It is not awaited: close the coroutine that has not begun."""
        self._first.close()  # type: ignore[attr-defined]


def then(answer: B | Awaitable[B], finish: Callable[[B], T | Awaitable[T]]) -> T | Awaitable[T]:
    """What `finish` makes of an answer: at once if the answer is here, else when it comes."""
    if type(answer) is Later:
        first = answer.finish
        return Later(answer.future, lambda found: then(first(found), finish))
    return Then(answer, finish) if hasattr(answer, "__await__") else finish(answer)
