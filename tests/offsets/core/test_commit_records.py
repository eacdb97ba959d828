"""What is stored of a commit (offsets.md 3.6)."""

from __future__ import annotations

import pytest

from offsets.core.commit import LARGEST_INSTANT_MS, membership_half, record, utf16_length
from offsets.core.types import OffsetCommit, PartitionCommit

NOW = 1_000


@pytest.mark.parametrize(
    ("retention_time_ms", "expires"),
    [(-1, None), (0, NOW), (1, NOW + 1), (-2, NOW - 2), (-(2**63), NOW - 2**63), (2**63 - 1, LARGEST_INSTANT_MS)],
)
def test_every_retention_time_but_minus_one_adds_to_the_time_of_handling(
    retention_time_ms: int, expires: int | None
) -> None:
    _, (stored,) = record((PartitionCommit("orders", 0, 5),), retention_time_ms, NOW, 4_096)
    assert stored.expire_timestamp == expires


@pytest.mark.parametrize(("metadata", "stored"), [(None, ""), ("", ""), ("note", "note")])
def test_metadata_is_stored_and_missing_metadata_is_empty(metadata: str | None, stored: str) -> None:
    _, (row,) = record((PartitionCommit("orders", 0, 5, metadata=metadata),), -1, NOW, 4_096)
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
    asked = membership_half(OffsetCommit("g", "m", "i", 3, entries), entries, 4)
    assert asked.partitions == {"orders": frozenset({0, 2}), "bills": frozenset({7})}
    assert (asked.group_id, asked.member_id, asked.group_instance_id, asked.generation_id) == ("g", "m", "i", 3)
    assert not asked.transactional
