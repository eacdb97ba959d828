"""Places are given to holders in turn: none waits for all of another's requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.requests.turnstile import Places


def gone() -> bool:
    """Nobody waits for the place."""
    return False


async def taken(places: Places, holder: Hashable) -> None:
    """Takes a place, and gives it back."""
    async with places.place(holder):
        pass


async def test_holders_take_turns_and_each_is_served_in_order() -> None:
    places = Places(1)
    served: list[str] = []

    async def caller(holder: str, number: int) -> None:
        async with places.place(holder):
            served.append(f"{holder}{number}")
            await asyncio.sleep(0)

    assert places.take("first", gone) is None
    wanted = [("a", n) for n in range(5)] + [("b", n) for n in range(2)] + [("c", 0)]
    callers = [asyncio.create_task(caller(*each)) for each in wanted]
    await asyncio.sleep(0)
    assert places.waiting == len(wanted)
    places.give()
    await asyncio.gather(*callers)
    assert served == ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]
    assert not places.locked()


async def test_those_that_give_up_leave_their_line_and_a_place_that_was_just_given_goes_on() -> None:
    places = Places(1)
    assert places.take("x", gone) is None
    first, second, third = (asyncio.create_task(taken(places, holder)) for holder in "aab")
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert places.waiting == 2
    places.give()  # to the first, which is cancelled before it runs
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.wait_for(third, 10)
    assert not places.locked()
    assert places.waiting == 0


def test_a_holder_that_fills_the_queue_leaves_room_for_others() -> None:
    async def fill() -> tuple[int, list[bool]]:
        places = Places(0)
        tasks = []
        while places.has_room("greedy", 64):
            tasks.append(asyncio.create_task(taken(places, "greedy")))
            await asyncio.sleep(0)
        others = []
        for number in range(8):
            others.append(places.has_room(number, 64))
            tasks.append(asyncio.create_task(taken(places, number)))
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks) - len(others), others

    waiting, others = asyncio.run(fill())
    assert waiting == 48
    assert all(others)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40),
    st.integers(1, 3),
)
def test_no_place_is_lost_or_given_twice(wanted: list[tuple[str, bool]], count: int) -> None:
    async def run() -> None:
        places = Places(count)
        working = most = 0

        async def caller(holder: str) -> None:
            nonlocal working, most
            async with places.place(holder):
                working += 1
                most = max(most, working)
                try:
                    await asyncio.sleep(0)
                finally:
                    working -= 1

        tasks = [asyncio.create_task(caller(holder)) for holder, _ in wanted]
        await asyncio.sleep(0)
        for task, (_, gives_up) in zip(tasks, wanted, strict=True):
            if gives_up:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= count
        assert places.waiting == 0
        for _ in range(count):
            assert not places.locked()
            assert places.take("end", gone) is None
        assert places.locked()

    asyncio.run(run())


@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_short_queues_have_room_for_as_many_as_they_say(most: int) -> None:
    places = Places(0)
    for holder in range(most):
        places.take(holder, lambda: True)
    assert not places.has_room("x", most)


def test_nobody_overtakes_one_that_waits_for_many_places() -> None:
    places, begun = Places(100), list[str]()

    def begins(name: str) -> Callable[[], bool]:
        return lambda: begun.append(name) is None

    assert places.take("a", begins("first"), 90) is None
    big, small = places.take("b", begins("big"), 50), places.take("c", begins("small"), 5)
    assert big is not None
    assert small is not None
    places.give(30)
    assert not begun
    places.give(20)
    assert begun == ["big", "small"]
    last = places.take("d", begins("last"), 90)
    behind = places.take("e", begins("behind"), 5)
    assert last is not None
    assert behind is not None
    places.leave(last)
    assert begun == ["big", "small", "behind"], "it had waited behind the one that left"
    places.give(50 + 5 + 5 + 40)
    assert places.take("f", gone, 100) is None
