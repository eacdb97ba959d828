"""What is stored of a commit (offsets.md 3.6)."""

from __future__ import annotations

import pytest

from offsets.core.commit import LARGEST_INSTANT_MS, record
from offsets.core.types import PartitionCommit

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
