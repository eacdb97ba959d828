"""Requests that arrive together are let in a few at a time, in order, and no more wait than are allowed to."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from prometheus_client import REGISTRY

from kcoord.config import Config
from kcoord.door.http.door import Admission
from kcoord.door.http.peers import HttpPeers, PeerLimits
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests.turnstile import Batches, Kind, Lines, Turnstile, places_of
from offsets.share.lane import ItemLane
from tests.support.database import ROOT
from tests.support.rounds import bounded, counted_rounds

AT_ONCE = Kind.REQUEST.at_once


def turnstile(most: int = 1_000, **big: int) -> Turnstile:
    settings = {"http.max.queue": most, "http.retry.after.ms": 700}
    return Turnstile(Runtime(Config(settings | {f"http.max.big.{name}": value for name, value in big.items()}), ""))


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
    assert not any(gate._begun.values())


def test_lines_take_turns_and_in_each_its_holders() -> None:
    lines: Lines[str] = Lines()
    for item in ("ax1", "ax2", "ax3", "ay1", "ay2", "bx1", "bx2"):
        lines.append(item, item[1], item[0])
    assert len(lines) == 7
    assert lines.first() == "ax1"
    assert lines.remove("ay2", "y", "a")
    assert not lines.remove("ay2", "y", "a")
    assert [lines.popleft() for _ in range(6)] == ["ax1", "bx1", "ay1", "bx2", "ax2", "ax3"]
    assert len(lines) == 0
    with pytest.raises(StopIteration):
        lines.popleft()


async def test_the_second_request_of_a_member_does_not_wait_for_the_first_of_all_others() -> None:
    gate = turnstile()
    let_in: list[str] = []

    async def caller(name: str, *, again: bool) -> None:
        await gate.pass_through(again=again)
        let_in.append(name)

    callers = [asyncio.create_task(caller("first", again=False)) for _ in range(20 * AT_ONCE)]
    await asyncio.sleep(0)
    await asyncio.gather(caller("second", again=True))
    assert let_in.index("second") <= 3 * AT_ONCE
    await asyncio.gather(*callers)


async def test_big_requests_are_worked_on_a_few_at_a_time_in_order() -> None:
    gate = turnstile(requests=2)
    working: list[int] = []
    most, done = 0, []

    async def caller(number: int) -> None:
        nonlocal most
        async with gate.place():
            working.append(number)
            most = max(most, len(working))
            await asyncio.sleep(0)
            working.remove(number)
            done.append(number)

    await asyncio.gather(*(caller(number) for number in range(20)))
    assert most == 2
    assert done == list(range(20))


async def test_too_many_big_requests_are_refused_and_those_that_give_up_make_room() -> None:
    gate = turnstile(requests=1, queue=2)
    async with gate.place():
        waiting = [asyncio.create_task(gate.place().__aenter__()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ProtocolError, match=r"http\.max\.big\.queue") as refused:
            await gate.place().__aenter__()
        assert (refused.value.error, refused.value.retry_after_ms) == (Error.COORDINATOR_NOT_AVAILABLE, 700)
        await gate.pass_through()  # small ones do not wait for a place
        for caller in waiting:
            caller.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    async with asyncio.timeout(10), gate.place():
        pass


async def test_without_a_queue_a_free_place_is_taken_all_the_same() -> None:
    async with turnstile(requests=1, queue=0).place():
        pass


def test_there_are_places_for_each_core_and_at_least_two(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, places in ((1, 2), (2, 2), (8, 8)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False)
        assert places_of(0) == places
    assert places_of(5) == 5


def shown(name: str) -> dict[str, float]:
    """The series of a metric, by queue."""
    (family,) = (family for family in REGISTRY.collect() if family.name == name)
    return {sample.labels["queue"]: sample.value for sample in family.samples}


async def test_what_waits_and_what_is_held_is_in_the_metrics() -> None:
    gate = turnstile(requests=1)

    async def taken(holder: int) -> None:
        async with gate.place(holder):
            pass

    async with gate.place(0):
        waiting = [asyncio.create_task(taken(holder)) for holder in (1, 2)]
        gate.later(Kind.REQUEST, lambda: None)
        await asyncio.sleep(0)
        assert shown("kcoord_admission_held")["big"] == 1
        assert shown("kcoord_admission_waiting")["big"] == 2
    await asyncio.gather(*waiting)
    assert shown("kcoord_admission_held")["big"] == shown("kcoord_admission_waiting")["big"] == 0


async def test_every_queue_is_documented() -> None:
    runtime = Runtime(Config({}), "")
    Gateway(runtime, ())
    HttpPeers(PeerLimits.of(runtime.config))
    admission = runtime.get(Admission)
    await admission._stop()
    runtime.get(ItemLane)
    queues = shown("kcoord_admission_waiting").keys() | shown("kcoord_admission_held").keys()
    assert {
        "reads",
        "group_transactions",
        "requests",
        "hot_requests",
        "hot_tasks",
        "tasks",
        "pages",
        "big",
        "kafka_requests",
        "kafka_bytes",
        "items",
    } <= queues
    documented = (ROOT / "docs/monitoring/README.md").read_text()
    assert [queue for queue in sorted(queues) if f"`{queue}`" not in documented] == []


async def test_closing_when_a_batch_has_just_ended_ends() -> None:
    """Its callback has not run then; with Python 3.12 and later, gather does not let it."""

    async def batch() -> None:
        return

    waiting = [batch()]
    batches = Batches(lambda: bool(waiting), waiting.pop)
    batches.call()
    await asyncio.sleep(0)
    assert batches._running
    with bounded(5.0, AssertionError("it goes round in close()")):
        await asyncio.create_task(batches.close())
    assert not batches._running
