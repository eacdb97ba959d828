"""Who may speak for a transactional id, and which pending offset prevails: the pure half of transactional commits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.transactions import (
    MAX_PRODUCER_EPOCH,
    PendingOffset,
    Producer,
    Standing,
    overdue,
    prevailing,
    stable,
    standing,
    successor,
)
from offsets.core.types import FetchedOffset, TopicPartition

epochs = st.integers(0, MAX_PRODUCER_EPOCH)
partitions = st.tuples(st.sampled_from("ab"), st.integers(0, 2))


@given(registered=epochs, speaking=epochs)
def test_of_two_epochs_the_larger_one_speaks(registered: int, speaking: int) -> None:
    before, producer = Producer("t", 7, registered), Producer("t", 7, speaking)
    if speaking < registered:
        with pytest.raises(ProtocolError) as raised:
            standing(before, producer)
        assert raised.value.error is Error.INVALID_PRODUCER_EPOCH
    else:
        expected = Standing.CURRENT if speaking == registered else Standing.SUCCESSOR
        assert standing(before, producer) is expected


def test_a_producer_of_another_id_is_told_so_whatever_its_epoch() -> None:
    assert standing(None, Producer("t", 7, 5)) is Standing.NEW
    for epoch in (0, 3, 9):
        with pytest.raises(ProtocolError) as raised:
            standing(Producer("t", 7, 3), Producer("t", 8, epoch))
        assert raised.value.error is Error.INVALID_PRODUCER_ID_MAPPING


@given(epochs)
def test_a_successor_fences_whoever_it_follows(epoch: int) -> None:
    before = Producer("t", 7, epoch)
    following = successor(before)
    if following is None:
        assert epoch == MAX_PRODUCER_EPOCH
        return
    with pytest.raises(ProtocolError):
        standing(following, before)


@pytest.mark.parametrize(
    ("epoch", "following"), [(0, 1), (MAX_PRODUCER_EPOCH - 1, MAX_PRODUCER_EPOCH), (MAX_PRODUCER_EPOCH, None)]
)
def test_epochs_are_16_bits_and_then_a_new_id_is_needed(epoch: int, following: int | None) -> None:
    assert MAX_PRODUCER_EPOCH == 2**15 - 1
    found = successor(Producer("t", 7, epoch))
    assert found == (None if following is None else Producer("t", 7, following))


@given(st.lists(st.tuples(st.integers(1, 9), st.none() | st.integers(1, 9))))
def test_the_one_written_later_prevails(turns: list[tuple[int, int | None]]) -> None:
    pending = [PendingOffset(1, "a", n, written, other, 0) for n, (written, other) in enumerate(turns)]
    winners = prevailing(pending)
    assert {offset.partition for offset in winners} == {
        n for n, (written, other) in enumerate(turns) if written > (other or 0)
    }


@pytest.mark.parametrize(("opened", "late"), [((), False), ((1,), False), ((0,), True), ((5, 0, 5), True)])
def test_a_transaction_is_as_old_as_its_first_write(opened: tuple[int, ...], late: bool) -> None:
    assert overdue([PendingOffset(1, "a", n, 1, None, at) for n, at in enumerate(opened)], 100, 100) is late


@given(st.sets(partitions), st.sets(partitions), st.none() | st.lists(partitions))
def test_a_stable_fetch(
    committed: set[TopicPartition], pending: set[TopicPartition], wanted: list[TopicPartition] | None
) -> None:
    found = stable([FetchedOffset(*key, committed_offset=1) for key in sorted(committed)], pending, wanted)
    by_key = {(offset.topic, offset.partition): offset for offset in found}
    asked = committed if wanted is None else set(wanted)
    assert set(by_key) == asked & (committed if wanted is None else committed | pending)
    for key, offset in by_key.items():
        unstable = key in pending
        assert offset.error is (Error.UNSTABLE_OFFSET_COMMIT if unstable else Error.NONE)
        assert offset.committed_offset == (-1 if unstable else 1)
        assert (offset.metadata, offset.leader_epoch) == ("", -1)
