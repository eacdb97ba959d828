"""The order in which Kafka's clients visit members.

When there are too few partitions for every member to keep its own, the first members visited keep more. Kafka's Java
clients visit them in the order of a `java.util.HashMap`, which depends on the ids alone. In a group that includes Java
clients, the leader may be one of them now and one of ours after the next rebalance: both must compute the same
assignment, or partitions would move unnecessarily.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import accumulate, repeat
from operator import mul

_LEAST_BUCKETS = 16
_MASK = 0xFFFFFFFF


def in_java_map_order(member_ids: Collection[str], size: int | None = None) -> list[str]:
    """`member_ids` as a `HashMap` iterates them that has `size` keys, or just these; ids of one bucket in id order."""
    keys = len(member_ids) if size is None else size
    buckets = _LEAST_BUCKETS
    while keys > buckets * 3 // 4:
        buckets *= 2
    return sorted(member_ids, key=lambda member_id: (_bucket(member_id, buckets), member_id))


def _bucket(key: str, buckets: int) -> int:
    """The bucket of `key` among `buckets`, a power of two."""
    code = java_hash(key)
    return (code ^ (code >> 16)) & (buckets - 1)


def java_hash(text: str) -> int:
    """`String.hashCode()` of `text`, as an unsigned 32-bit number."""
    if text.isascii():
        units: Sequence[int] = text.encode("ascii")
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        units = [high << 8 | low for high, low in zip(encoded[::2], encoded[1::2], strict=True)]
    # 31 ** (n - 1) * first + ... + 31 * last but one + last.
    code: int = sum(map(mul, reversed(units), _powers(len(units))))
    return code & _MASK


@lru_cache(maxsize=64)
def _powers(count: int) -> Sequence[int]:
    """The first `count` powers of 31, of which only the lowest 32 bits count."""
    return list(accumulate(repeat(31, count - 1), lambda power, base: power * base & _MASK, initial=1)) if count else []
