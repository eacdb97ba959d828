"""Bytes of Kafka's protocol, read more strictly than the gateway reads requests."""

from __future__ import annotations

from kcoord.door.kafka.codec import Fields, Frame, Malformed, read


def read_all(cls: type, data: Frame, at: int) -> Fields:
    """The struct of a kio class that begins at `at` and must end where the frame ends. Raises Malformed."""
    found, end = read(cls, data, at)
    if end != len(data):
        raise Malformed(f"{len(data) - end} bytes follow")
    return found
