"""The search for cyclic garbage: seldom, of what is new, and Python's own again in the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcoord.process import garbage
from kcoord.process.garbage import GROWN_BYTES, GarbageSearch, busy_seconds, is_due


class Cycle:
    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    gc.unfreeze()  # as a search does that stops, also what others have frozen
    yield
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


class World:
    """Instants and figures that the search is told."""

    now = 1_000.0
    cpu = 0.0
    memory = 0

    def passes(self, seconds: float, load: float = 0.0, grown: int = 0) -> None:
        self.now += seconds
        self.cpu += seconds * load
        self.memory += grown


@pytest.mark.parametrize(
    ("since", "took", "load", "grown", "due"),
    [
        (59, 0.0, 0.0, 0, False),
        (60, 0.0, 0.0, 0, True),
        (60, 0.0, 0.9, 0, False),
        (239, 0.0, 0.9, 0, False),
        (240, 0.0, 0.9, 0, True),
        (60, 0.0, 0.9, GROWN_BYTES, True),
        (59, 0.0, 0.0, GROWN_BYTES, False),
        (399, 0.4, 0.0, 0, False),
        (400, 0.4, 0.0, 0, True),
        (60, 0.4, 0.9, GROWN_BYTES, True),
        (60, 1.0, 0.9, GROWN_BYTES, False),
    ],
)
def test_when_a_full_search_is_due(since: float, took: float, load: float, grown: int, due: bool) -> None:
    assert is_due(since, took, load, grown) is due


@pytest.mark.whole("searches millions of objects; the default searches young ones")
def test_full_searches_are_made_when_due_and_find_cycles() -> None:
    async def run() -> None:
        world = World()
        search = GarbageSearch(lambda: world.now, lambda: world.cpu, lambda: world.memory)
        search.start()
        cycle = Cycle()
        seen = weakref.ref(cycle)
        del cycle
        world.passes(30)
        search.look()
        assert seen() is not None, "it is not time yet"
        world.passes(30)
        search.look()
        assert seen() is None
        search.stop()

    asyncio.run(run())


@pytest.mark.whole("searches millions of objects; the default searches young ones")
def test_what_a_search_leaves_is_searched_again_only_after_the_process_has_grown() -> None:
    async def run() -> None:
        world = World()
        search = GarbageSearch(lambda: world.now, lambda: world.cpu, lambda: world.memory)
        search.start()
        cycle = Cycle()
        seen = weakref.ref(cycle)
        world.passes(60)
        search.look()
        del cycle
        young = Cycle()
        seen_young = weakref.ref(young)
        del young
        world.passes(60)
        search.look()
        assert seen_young() is None
        assert seen() is not None, "it was not visited"
        world.passes(60, grown=GROWN_BYTES - 1)
        search.look()
        assert seen() is not None
        world.passes(60, grown=1)
        search.look()
        assert seen() is None
        search.stop()

    asyncio.run(run())


def test_a_search_visits_only_what_is_new() -> None:
    """A process with a large group: the search after it has joined is the last one that takes long."""

    async def run() -> list[int]:
        world, found = World(), []
        search = GarbageSearch(lambda: world.now, lambda: world.cpu, lambda: world.memory)
        search.start()
        kept = [[number] for number in range(100_000)]
        for _ in range(2):
            found.append(sum(len(gc.get_objects(generation)) for generation in range(3)))
            world.passes(60)
            search.look()
        assert len(kept) == 100_000
        search.stop()
        return found

    first, second = asyncio.run(run())
    assert first > 100_000
    assert second < 10_000


@pytest.mark.whole("searches millions of objects; the default searches young ones")
def test_python_makes_no_full_search_meanwhile() -> None:
    async def run() -> int:
        search = GarbageSearch()
        search.start()
        before = gc.get_stats()[2]["collections"]
        kept = [[number] for number in range(400_000)]
        assert len(kept) == 400_000
        made: int = gc.get_stats()[2]["collections"] - before
        search.stop()
        return made

    assert asyncio.run(run()) == 0


def test_what_was_loaded_is_not_searched_and_stopping_undoes_it() -> None:
    async def run() -> None:
        frozen = gc.get_freeze_count()
        search = GarbageSearch()
        search.start()
        assert gc.get_freeze_count() > frozen + 1_000
        assert gc.get_threshold() == (garbage.YOUNG, garbage.MIDDLE, garbage.NEVER)
        search.stop()
        search.stop()

    asyncio.run(run())


def test_resident_memory_is_known_here() -> None:
    assert garbage.resident_bytes() > 2**20


def test_a_process_that_waits_for_a_processor_is_busy(tmp_path: Path) -> None:
    schedstat = tmp_path / "schedstat"
    schedstat.write_text("5000000000 7000000000 123\n")
    used = busy_seconds(tmp_path / "absent")
    assert used > 0.0
    assert busy_seconds(schedstat) - used >= 7.0


def test_young_objects_are_searched_though_as_many_old_ones_are_freed() -> None:
    """Python counts new objects less freed ones, and would let them pile up."""

    async def run() -> int:
        search = GarbageSearch()
        search.start()
        old = [[number] for number in range(50_000)]
        search.search_young()
        new = [[old.pop()[0]] for _ in range(50_000)]
        search.search_young()
        left = len(gc.get_objects(0))
        search.stop()
        assert len(new) == 50_000
        return left

    assert asyncio.run(run()) < 5_000


def test_young_objects_are_searched_while_the_loop_runs() -> None:
    async def run() -> None:
        search = GarbageSearch()
        search.start()
        gc.set_threshold(garbage.NEVER)
        cycle = Cycle()
        seen = weakref.ref(cycle)
        del cycle
        async with asyncio.timeout(30):
            while seen() is not None:  # noqa: ASYNC110 - a search signals nothing
                await asyncio.sleep(garbage.YOUNG_SECONDS)
        search.stop()

    asyncio.run(run())
