"""Requests that arrive together are let in a few at a time, in order, and no more wait than are allowed to."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import AT_ONCE, Turnstile
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.rounds import counted_rounds


def turnstile(most: int = 1_000) -> Turnstile:
    return Turnstile(Runtime(Config({"http.max.queue": most, "http.retry.after.ms": 700}), ""))


async def test_few_are_let_in_each_round_in_order_of_arrival() -> None:
    gate = turnstile()
    let_in: list[tuple[int, int]] = []
    async with counted_rounds() as rounds:

        async def caller(number: int) -> None:
            await gate.pass_through()
            let_in.append((number, rounds.now))

        await asyncio.gather(*(caller(number) for number in range(50)))
    assert [number for number, _ in let_in] == list(range(50))
    assert max(Counter(now for _, now in let_in).values()) <= AT_ONCE


async def test_a_lone_caller_does_not_wait() -> None:
    gate = turnstile(most=1)
    for _ in range(20):
        async with counted_rounds() as rounds:
            await asyncio.sleep(0)
            before = rounds.now
            await gate.pass_through()
            assert rounds.now == before
            await asyncio.sleep(0)


async def test_too_many_are_refused_and_told_when_to_come_back() -> None:
    gate = turnstile(most=10)
    results = await asyncio.gather(*(gate.pass_through() for _ in range(AT_ONCE + 13)), return_exceptions=True)
    refused = [result for result in results if result is not None]
    assert results[: AT_ONCE + 10] == [None] * (AT_ONCE + 10)
    assert len(refused) == 3
    for error in refused:
        assert isinstance(error, ProtocolError)
        assert (error.error, error.retry_after_ms) == (Error.COORDINATOR_NOT_AVAILABLE, 700)
        assert "http.max.queue" in error.detail


async def test_a_client_that_is_gone_takes_nobodys_turn() -> None:
    gate = turnstile()
    callers = [asyncio.create_task(gate.pass_through()) for _ in range(3 * AT_ONCE)]
    await asyncio.sleep(0)
    for caller in callers[AT_ONCE : 2 * AT_ONCE]:
        caller.cancel()
    async with asyncio.timeout(10):
        results = await asyncio.gather(*callers, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == (
        [False] * AT_ONCE + [True] * AT_ONCE + [False] * AT_ONCE
    )


@pytest.mark.parametrize("rounds", [1, 5])
async def test_it_rests_when_nobody_comes(rounds: int) -> None:
    gate = turnstile()
    await asyncio.gather(*(gate.pass_through() for _ in range(rounds * AT_ONCE)))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not gate._goes_round
    assert gate._let_in == 0
