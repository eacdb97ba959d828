"""What is stored of a commit (offsets.md 3.6)."""

from __future__ import annotations

import pytest

from offsets.core.commit import LARGEST_INSTANT_MS, membership_half, records_of, utf16_length
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
