"""What is stored of a commit (offsets.md 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.protocol.errors import Error
from offsets.core import commit as core
from offsets.core.commit import (
    LARGEST_INSTANT_MS,
    OVERTAKEN_MS,
    Lines,
    lines_of,
    membership_half,
    overtaken_before,
    records_of,
    utf16_length,
)
from offsets.core.types import OffsetRecord
from tests.support.commits import OffsetCommit, PartitionCommit, take

NOW = 1_000
COUNTS = {"orders": 3, "bills": 8}


@pytest.mark.parametrize(
    ("retention_time_ms", "expires"),
    [(-1, None), (0, NOW), (1, NOW + 1), (-2, NOW - 2), (-(2**63), NOW - 2**63), (2**63 - 1, LARGEST_INSTANT_MS)],
)
def test_every_retention_time_but_minus_one_adds_to_the_time_of_handling(
    retention_time_ms: int, expires: int | None
) -> None:
    asked = OffsetCommit("g", "", None, -1, (PartitionCommit("orders", 0, 5),), retention_time_ms)
    (stored,) = records_of(take(asked, COUNTS), NOW)
    assert stored.expire_timestamp == expires


@pytest.mark.parametrize(("metadata", "stored"), [(None, ""), ("", ""), ("note", "note")])
def test_metadata_is_stored_and_missing_metadata_is_empty(metadata: str | None, stored: str) -> None:
    asked = OffsetCommit("g", "", None, -1, (PartitionCommit("orders", 0, 5, metadata=metadata),))
    (row,) = records_of(take(asked, COUNTS), NOW)
    assert row.metadata == stored


@pytest.mark.parametrize(("text", "units"), [("", 0), ("ab", 2), ("\uffff", 1), ("\U00010000", 2), ("x\U0001f600y", 4)])
def test_metadata_is_measured_in_utf16_code_units(text: str, units: int) -> None:
    """offsets.md 3.2, row 13: the limit is that of the Java string."""
    assert utf16_length(text) == units == len(text.encode("utf-16-le")) // 2


def test_the_group_is_asked_about_partitions_that_will_be_stored() -> None:
    """offsets.md 3.6: a partition with metadata above the limit is refused whatever the group says."""
    entries = (
        PartitionCommit("orders", 0, 5),
        PartitionCommit("orders", 2, 5, metadata="four"),
        PartitionCommit("orders", 1, 5, metadata="five!"),
        PartitionCommit("bills", 7, 5),
    )
    commit = take(OffsetCommit("g", "m", "i", 3, entries), COUNTS, 4)
    assert [error.name for error in commit.errors] == ["NONE", "NONE", "OFFSET_METADATA_TOO_LARGE", "NONE"]
    asked = membership_half(commit)
    assert asked.partitions == {"orders": frozenset({0, 2}), "bills": frozenset({7})}
    assert (asked.group_id, asked.member_id, asked.group_instance_id, asked.generation_id) == ("g", "m", "i", 3)
    assert not asked.transactional


def test_results_are_in_the_order_of_the_request_and_the_last_entry_of_a_partition_is_stored() -> None:
    """offsets.md 2.2 and 3.6."""
    entries = (
        PartitionCommit("orders", 1, 5),
        PartitionCommit("orders", 9, 5),
        PartitionCommit("secret", 0, 5),
        PartitionCommit("bills", 0, 3),
        PartitionCommit("orders", 1, 6),
    )
    commit = take(OffsetCommit("g", "", None, -1, entries, denied=frozenset({"secret"})), COUNTS, 4)
    names = ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED", "NONE", "NONE"]
    assert [error.name for error in commit.errors] == names
    stored = [(row.topic, row.partition, row.offset) for row in records_of(commit, NOW)]
    assert stored == [("orders", 1, 6), ("bills", 0, 3)]


@pytest.mark.parametrize(("partition", "metadata", "is_for_group"), [(0, "", True), (0, "five!", True), (9, "", False)])
def test_the_group_is_asked_unless_the_partition_filter_leaves_nothing(
    partition: int, metadata: str, is_for_group: bool
) -> None:
    """offsets.md 2.2."""
    asked = OffsetCommit("g", "", None, -1, (PartitionCommit("orders", partition, 5, metadata=metadata),))
    assert take(asked, COUNTS, 4).is_for_group is is_for_group


entries = st.tuples(
    st.sampled_from(("orders", "bills", "secret", "unknown")),
    st.integers(-1, 9),
    st.sampled_from(("", "four", "five!", "\0", "\U0001f600\U0001f600", "\U0001f600\U0001f600\U0001f600")),
)


@given(st.lists(entries, min_size=1, max_size=8), st.booleans())
def test_lines_are_taken_one_by_one(asked: Sequence[tuple[str, int, str]], with_metadata: bool) -> None:
    """As the table says it of a single partition (offsets.md 2.2, 3.2 rows 3, 12, 13)."""
    texts = [text if with_metadata else "" for _, _, text in asked]
    errors, stored = [], dict[tuple[str, int], tuple[int, str]]()
    for number, ((topic, partition, _), text) in enumerate(zip(asked, texts, strict=True)):
        if topic == "secret":
            errors.append(Error.TOPIC_AUTHORIZATION_FAILED)
        elif not 0 <= partition < COUNTS.get(topic, 0):
            errors.append(Error.UNKNOWN_TOPIC_OR_PARTITION)
        elif "\0" in text or len(text.encode("utf-16-le")) > 2 * 4:
            errors.append(Error.OFFSET_METADATA_TOO_LARGE)
        else:
            errors.append(Error.NONE)
            stored[topic, partition] = (number, text)
    lines = Lines(
        tuple((topic, len(list(run))) for topic, run in groupby(asked, lambda entry: entry[0])),
        [partition for _, partition, _ in asked],
        list(range(len(asked))),
        [number + 100 for number in range(len(asked))],
        texts if with_metadata else None,
    )
    taken = core.take(lines, COUNTS, {"secret"}, 4)
    assert list(taken.errors) == errors
    asks = {Error.NONE, Error.OFFSET_METADATA_TOO_LARGE}
    assert taken.is_for_group is not asks.isdisjoint(errors)
    names = [topic for topic, count in taken.lines.topics for _ in range(count)]
    columns = zip(names, taken.lines.partitions, taken.lines.offsets, taken.lines.leader_epochs, strict=True)
    assert list(columns) == [(*key, number, number + 100) for key, (number, _) in stored.items()]
    assert (taken.lines.metadata or [""] * len(stored)) == [text for _, text in stored.values()]


def test_records_and_columns_are_the_same() -> None:
    records = [
        OffsetRecord("t", 0, 5, 7, "", None),
        OffsetRecord("t", 2, 6, 8, "note", None),
        OffsetRecord("u", 0, 1, -1, "", None),
    ]
    assert lines_of(records) == Lines((("t", 2), ("u", 1)), [0, 2, 0], [5, 6, 1], [7, 8, -1], ["", "note", ""])
    assert lines_of(records[:1]) == Lines((("t", 1),), [0], [5], [7], None)


def test_only_a_commit_that_has_waited_can_be_overtaken() -> None:
    assert overtaken_before(NOW, OVERTAKEN_MS) is None
    assert overtaken_before(NOW, OVERTAKEN_MS + 1) == NOW - 1
