"""The order in which Kafka's clients visit members.

When there are too few partitions for every member to keep its own, the first members visited keep more. Kafka's Java
clients visit them in the order of a `java.util.HashMap`, which depends on the ids alone. In a group that includes Java
clients, the leader may be one of them now and one of ours after the next rebalance: both must compute the same
assignment, or partitions would move unnecessarily.
"""

from __future__ import annotations

from collections.abc import Collection

_LEAST_BUCKETS = 16


def in_java_map_order(member_ids: Collection[str]) -> list[str]:
    """`member_ids` as a `HashMap` with these keys iterates; ids that share a bucket in id order."""
    buckets = _LEAST_BUCKETS
    while len(member_ids) > buckets * 3 // 4:
        buckets *= 2
    return sorted(member_ids, key=lambda member_id: (_bucket(member_id, buckets), member_id))


def _bucket(key: str, buckets: int) -> int:
    """The bucket of `key` among `buckets`, a power of two."""
    code = java_hash(key)
    return (code ^ (code >> 16)) & (buckets - 1)


def java_hash(text: str) -> int:
    """`String.hashCode()` of `text`, as an unsigned 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code
