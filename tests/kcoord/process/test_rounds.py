"""Requests that are read together are started a few each round, in order, and are as old as when they were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kcoord.door.http.middleware import RequestLog
from kcoord.requests import current, turnstile
from kcoord.requests.current import RECEIPT, Receipt
from kcoord.requests.turnstile import Kind, Rounds
from tests.support.members import eventually
from tests.support.rounds import counted_rounds

AT_ONCE = Kind.HOT.at_once


async def test_few_start_each_round_in_order_of_arrival() -> None:
    starts = Rounds()
    started: list[tuple[int, int]] = []
    async with counted_rounds() as rounds:

        def starting(number: int) -> Callable[[], None]:
            return lambda: started.append((number, rounds.now))

        for number in range(5 * AT_ONCE):
            if starts.is_free(Kind.HOT):
                starting(number)()
            else:
                starts.later(Kind.HOT, starting(number))
        await eventually(lambda: len(started) == 5 * AT_ONCE, "all have started")
    assert [number for number, _ in started] == list(range(5 * AT_ONCE))
    assert max(Counter(now for _, now in started).values()) == AT_ONCE


async def test_what_takes_long_leaves_the_rest_of_its_kind_to_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """And others have their part of the round all the same."""
    spent = 0.0
    monkeypatch.setattr(turnstile.time, "thread_time", lambda: spent)
    starts = Rounds()
    started: list[tuple[Kind, int]] = []
    async with counted_rounds() as rounds:

        def start(kind: Kind) -> None:
            nonlocal spent
            spent += 0.4 * turnstile.KIND_SECONDS
            started.append((kind, rounds.now))

        for kind in (Kind.READ, Kind.HOT):
            for _ in range(9):
                starts.later(kind, partial(start, kind))
        await eventually(lambda: len(started) == 18, "all have started")
    assert sorted(Counter(started).values()) == [3] * 6
    assert {now for kind, now in started if kind is Kind.READ} == {now for kind, now in started if kind is Kind.HOT}


async def test_a_request_is_not_started_before_those_that_wait() -> None:
    starts = Rounds()
    assert [starts.is_free(Kind.HOT) for _ in range(AT_ONCE + 1)] == [True] * AT_ONCE + [False]
    started: list[str] = []
    starts.later(Kind.HOT, lambda: started.append("first"))
    assert not starts.is_free(Kind.HOT)
    await eventually(lambda: started == ["first"], "it has started")
    await eventually(lambda: starts.is_free(Kind.HOT), "the next starts at once again")


async def test_a_start_that_fails_does_not_stop_those_after_it() -> None:
    starts = Rounds()
    started: list[int] = []

    def fail() -> None:
        raise ZeroDivisionError

    starts.later(Kind.HOT, fail)
    for number in range(2 * AT_ONCE):
        starts.later(Kind.HOT, lambda number=number: started.append(number))  # type: ignore[misc]
    await eventually(lambda: len(started) == 2 * AT_ONCE, "the others have started")


@pytest.mark.parametrize("receipt", [Receipt(12.5, 7.0), None])
async def test_a_request_that_waited_for_its_start_is_as_old_as_when_it_was_read(receipt: Receipt | None) -> None:
    found = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.append(current.receipt())

    scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "headers": [], "client": None}
    await RequestLog(application)({**scope, RECEIPT: receipt}, None, None)  # type: ignore[arg-type]
    assert found == [receipt]
