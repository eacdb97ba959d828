"""What a share consumer takes for a gap: only what the source says can never have a record."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from kcoord.client import OffsetOutOfRangeError, Record, TopicPartition
from kcoord.client.core.effects import Ask
from kcoord.client.core.share.held import Held, Phase, offsets_in, ranges_of
from kcoord.client.core.share.reading import MOST_SPANNED, Reading
from kcoord.client.core.wire import AcquiredLock
from kcoord.client.share_config import ShareConsumerConfig
from kcoord.client.sources.lists import Lists

JOB = TopicPartition("job", 0)


class Table:
    """Ids with rows, and below which id nothing can appear. `between` happens after the next fetch."""

    def __init__(self, ids: Sequence[int], settled: int) -> None:
        self.ids = set(ids)
        self.settled = settled
        self.between: Callable[[], None] | None = None
        self.begins = 0
        self.asked_end = False

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> list[Record[str]]:
        if offset < self.begins:
            raise OffsetOutOfRangeError("before the first")
        found = [Record(topic, partition, n, value=f"row {n}") for n in sorted(self.ids) if n >= offset][:max_records]
        happens, self.between = self.between, None
        if happens is not None:
            happens()
        return found

    def beginning_offset(self, topic: str, partition: int) -> int:
        return self.begins

    def end_offset(self, topic: str, partition: int) -> int:
        self.asked_end = True
        return max(self.ids, default=-1) + 1

    def settled_offset(self, topic: str, partition: int) -> int:
        return self.settled


class Reader:
    """A reading of one lock, with a clock."""

    def __init__(self, source: Any, first: int, last: int) -> None:
        self.now = 0.0
        self.held = Held()
        self.held.add([AcquiredLock(1, *JOB, [(first, last)])], 30.0, 0.0)
        self.reading = Reading(ShareConsumerConfig(group_id="g", url="http://h"), source, lambda: self.now)

    def read(self) -> tuple[list[int], list[int]]:
        """The offsets that were read, and the gaps, a while after the last time."""
        self.now += 1
        gaps = answer(self.reading.read(self.held, 10))
        for delivery in gaps:
            self.held.over(delivery)
        return [delivery.offset for delivery in self.held.take(100, self.now)], [gap.offset for gap in gaps]

    @property
    def unread(self) -> list[int]:
        return [delivery.offset for delivery in self.held.within(Phase.UNREAD)]


def answer(main: Coroutine[Any, Any, Any]) -> Any:
    """Run something that only asks the source."""
    try:
        effect = main.send(None)
        while True:
            assert isinstance(effect, Ask)
            try:
                found = effect.function(*effect.arguments)
            except OffsetOutOfRangeError as error:
                effect = main.throw(error)
            else:
                effect = main.send(found)
    except StopIteration as end:
        return end.value


def test_what_may_still_appear_is_read_again() -> None:
    table = Table([1, 3], settled=4)
    reader = Reader(table, 1, 6)
    assert reader.read() == ([1, 3], [2])
    assert reader.unread == [4, 5, 6]
    assert reader.read() == ([], [])
    table.ids |= {5}
    table.settled = 7
    assert reader.read() == ([5], [4, 6])
    assert reader.unread == []


def test_a_row_that_commits_while_it_is_read_is_no_gap() -> None:
    """What is settled is asked after a first look, and then what is missing is looked for again."""
    table = Table([1], settled=1)
    reader = Reader(table, 1, 2)

    def commits() -> None:
        table.ids |= {2}
        table.settled = 3

    table.between = commits
    assert reader.read() == ([1, 2], [])


def test_what_was_deleted_at_the_beginning_is_a_gap() -> None:
    table = Table([5], settled=0)
    table.begins = 5
    reader = Reader(table, 3, 5)
    assert reader.read()[1] == [3, 4]
    table.settled = 6
    assert reader.read() == ([5], [])


def test_a_source_without_that_is_settled_up_to_its_end() -> None:
    reader = Reader(Lists({JOB: ["a", "b"]}), 0, 3)
    assert reader.read() == ([0, 1], [])
    assert reader.unread == [2, 3]


def test_without_a_source_items_are_offsets() -> None:
    assert Reader(None, 7, 9).read() == ([7, 8, 9], [])


def test_an_end_is_told_once_and_only_when_it_is_known() -> None:
    table = Table([1, 2], settled=0)
    reader = Reader(table, 1, 1)
    answer(reader.reading.look([JOB]))
    assert (reader.reading.condition(), table.asked_end) == ({}, False), "it would be waited for"
    table.settled = 3
    answer(reader.reading.look([JOB]))
    assert reader.reading.condition() == {}, "not asked again so soon"
    reader.now += 1
    answer(reader.reading.look([JOB]))
    assert reader.reading.condition() == {JOB: 3}
    reader.reading.told({JOB: 3})
    assert reader.reading.condition() == {}


def test_between_gaps_more_offsets_are_acquired_at_once() -> None:
    reader = Reader(Table(range(0, 4_000, 8), settled=5_000), 0, 9)
    assert reader.reading.span(10) == 10
    assert reader.read()[0] == [0, 8]
    assert reader.reading.span(10) == 88 - 9, "up to the tenth row after these"
    far = Reader(Table([0, 1_000_000], settled=2_000_000), 0, 9)
    far.read()
    assert far.reading.span(10) == MOST_SPANNED
    dense = Reader(Table(range(100), settled=100), 0, 9)
    dense.read()
    assert dense.reading.span(10) == 10


def test_ranges() -> None:
    assert ranges_of([5, 1, 2, 3, 7, 8]) == [(1, 3), (5, 5), (7, 8)]
    assert list(offsets_in([(1, 3), (5, 5)])) == [1, 2, 3, 5]
