"""Which coordinator partition a group belongs to.

Source: offsets.md 9.1; Kafka's `partitionFor` and `Utils.abs`, Java's `String.hashCode`.
"""

from __future__ import annotations

_SIGN = 0x8000_0000
_MASK = 0xFFFF_FFFF


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, in signed 32-bit arithmetic that wraps around."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & _MASK
    return (value ^ _SIGN) - _SIGN


def partition_of(group_id: str, partitions: int) -> int:
    """The coordinator partition, 0 to `partitions` - 1, of a group.

    Kafka's absolute value maps the smallest 32-bit number, which has no positive twin, to 0.
    """
    value = java_hash(group_id)
    return (0 if value == -_SIGN else abs(value)) % partitions
