"""A copy in memory: who asks after a hint gets what was read after it, and many who ask make one reading."""

from __future__ import annotations

import asyncio

import pytest

from kcoord.config import Config
from kcoord.database.notifications import TOPICS
from kcoord.process.runtime import Runtime, WatchedCopy
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current


@pytest.fixture
def config() -> Config:
    """No copy is renewed by itself while a test runs."""
    return Config({"notifications.repair.interval.ms": 60_000})


class Source:
    """What is copied: a reading sees the number as it is when the reading begins, and ends when the test lets it."""

    def __init__(self) -> None:
        self.number = 0
        self.readings = 0
        self.fails = False
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def read(self, known: int | None) -> int:
        number = self.number
        self.readings += 1
        self.begun.set()
        for _ in range(3):
            await asyncio.sleep(0)  # others run meanwhile, as they do while a query is under way
        await self.may_end.wait()
        if self.fails:
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE)
        return number


@pytest.fixture
def source() -> Source:
    """What is copied."""
    return Source()


@pytest.fixture
def watched(runtime: Runtime, source: Source) -> WatchedCopy[int]:
    """The copy."""
    return WatchedCopy(runtime, TOPICS, source.read)


async def test_a_hint_during_a_reading_leads_to_another(watched: WatchedCopy[int], source: Source) -> None:
    source.may_end.clear()
    early = asyncio.create_task(watched.get())
    await asyncio.wait_for(source.begun.wait(), 10)
    source.number = 1
    watched.hint()
    late = asyncio.create_task(watched.get())
    await asyncio.sleep(0)
    source.may_end.set()
    assert await asyncio.wait_for(early, 10) in (0, 1)
    assert await asyncio.wait_for(late, 10) == 1
    assert source.readings == 2


async def test_repairs_do_not_bear_the_id_of_the_request_that_asked_first(runtime: Runtime) -> None:
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def read(known: int | None) -> int:
        seen.put_nowait(current.request_id())
        return 0

    runtime.config = runtime.config.replace(notifications_repair_interval_ms=100)
    token = current.enter_request(current.RequestContext("first"))
    await WatchedCopy(runtime, TOPICS, read).get()
    current.leave_request(token)
    assert [await asyncio.wait_for(seen.get(), 10) for _ in range(2)] == ["first", ""]


async def test_who_asks_between_the_end_of_a_reading_and_its_callback_begins_another(
    watched: WatchedCopy[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    asked = 0
    begin = watched._begin

    async def read(known: int | None) -> int:
        return await ends if known is None else known + 1

    def counted() -> asyncio.Task[None]:
        nonlocal asked
        asked += 1
        assert asked < 100, "it asks for the same reading for ever, and nothing else runs"
        return begin()

    monkeypatch.setattr(watched, "_read", read)
    monkeypatch.setattr(watched, "_begin", counted)
    early = asyncio.create_task(watched.get())
    await asyncio.sleep(0)  # it asks
    await asyncio.sleep(0)  # the reading begins
    watched.hint()
    ends.set_result(0)  # the next step of the reading is its last
    late = asyncio.create_task(watched.get())  # runs right after that step
    assert await asyncio.wait_for(late, 10) == 1
    assert await asyncio.wait_for(early, 10) in (0, 1)


async def test_many_who_ask_make_one_reading(watched: WatchedCopy[int], source: Source) -> None:
    assert await asyncio.gather(*(watched.get() for _ in range(100))) == [0] * 100
    assert source.readings == 1
    source.number = 1
    for _ in range(100):
        watched.hint()
    assert await asyncio.gather(*(watched.get() for _ in range(100))) == [1] * 100
    assert source.readings <= 3


async def test_nothing_is_read_before_somebody_asks(watched: WatchedCopy[int], source: Source) -> None:
    watched.hint()
    await asyncio.sleep(0)
    assert source.readings == 0


async def test_renewed_copy_is_read_after_the_call_and_nobody_else_waits_for_it(
    watched: WatchedCopy[int], source: Source
) -> None:
    assert await watched.get() == 0
    source.number = 1
    assert await watched.get() == 0, "there was no hint"
    source.begun.clear()
    source.may_end.clear()
    early = asyncio.create_task(watched.renewed())
    await asyncio.wait_for(source.begun.wait(), 10)
    source.number = 2
    late = [asyncio.create_task(watched.renewed()) for _ in range(10)]
    assert await asyncio.wait_for(watched.get(), 10) == 0, "the copy, while it is read again"
    source.may_end.set()
    assert await asyncio.wait_for(early, 10) == 1
    assert await asyncio.wait_for(asyncio.gather(*late), 10) == [2] * 10
    assert source.readings == 3


async def test_copy_that_cannot_be_renewed_is_no_answer(watched: WatchedCopy[int], source: Source) -> None:
    assert await watched.get() == 0
    source.fails = True
    with pytest.raises(ProtocolError):
        await watched.renewed()
    assert await watched.get() == 0


async def test_hints_that_never_end_make_nobody_wait_for_ever(watched: WatchedCopy[int], source: Source) -> None:
    await watched.get()
    stop = False

    async def hinting() -> None:
        while not stop:
            watched.hint()
            await asyncio.sleep(0)

    noise = asyncio.create_task(hinting())
    source.number = 1
    watched.hint()
    assert await asyncio.wait_for(watched.get(), 10) == 1
    stop = True
    await noise


async def test_a_reading_that_fails_is_tried_again_by_the_next_who_asks(
    watched: WatchedCopy[int], source: Source
) -> None:
    source.fails = True
    failed = await asyncio.gather(*(watched.get() for _ in range(3)), return_exceptions=True)
    assert [type(error) for error in failed] == [ProtocolError] * 3
    assert source.readings == 1
    source.fails = False
    assert await watched.get() == 0


async def test_the_end_of_the_process_waits_for_a_reading(
    runtime: Runtime, watched: WatchedCopy[int], source: Source
) -> None:
    await watched.get()
    source.may_end.clear()
    source.begun.clear()
    source.number = 1
    watched.hint()
    waiting = asyncio.create_task(watched.get())
    await asyncio.wait_for(source.begun.wait(), 10)
    closing = asyncio.create_task(watched._close())
    await asyncio.sleep(0)
    assert not closing.done()
    source.may_end.set()
    assert await asyncio.wait_for(waiting, 10) == 1
    await asyncio.wait_for(closing, 10)
    watched.hint()
    await asyncio.sleep(0)
    assert source.readings == 2
