"""Which partition a group belongs to (offsets.md 9.1)."""

from __future__ import annotations

import pytest

from groups.core.model.group import java_hash, partition_of

JAVA = [
    ("", 0, 0, 0),
    ("foo", 101574, 24, 0),
    ("group-1", 293427299, 49, 2),
    ("my-group", -1906497762, 12, 0),
    ("orders", -1008770331, 31, 0),
    ("polygenelubricants", -2147483648, 0, 0),
    ("другая", 1778555643, 43, 0),
    ("日本", 835047, 47, 0),
    ("😀", 1772899, 49, 1),
]
"""Id, hash, partition of 50, partition of 3: the verified values of offsets.md 9.1."""


@pytest.mark.parametrize(("group_id", "hashed", "of_50", "of_3"), JAVA)
def test_partitions_are_those_of_java(group_id: str, hashed: int, of_50: int, of_3: int) -> None:
    assert java_hash(group_id) == hashed
    assert partition_of(group_id, 50) == of_50
    assert partition_of(group_id, 3) == of_3
