"""Kafka's ConsumerProtocol: the bytes that members of protocol type "consumer" put into joins and syncs.

A subscription is what a member sends as the metadata of each of its protocols, an assignment what the leader sends for
each member. Both are opaque to the coordinator; this module reads and writes them for clients that speak JSON, for
`POST /v1/assign` and for people who inspect a group.

Framing: an int16 version, then the message of that version (0 to 3; big-endian, classic encoding without tags).
Source: Kafka's `ConsumerProtocol`, `ConsumerProtocolSubscription.json`, `ConsumerProtocolAssignment.json`.

The bytes come from any client that may join a group, so nothing is allocated that a length field promises but the bytes
do not contain. kio's reader, generated from the same schemas, does allocate it, and aborts the process if memory is
limited; it serves as the reference in the tests instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kcoord.protocol.errors import Error, ProtocolError

HIGHEST_VERSION = 3
"""The newest version of both messages. 1 added owned partitions, 2 the generation, 3 the rack (KIP-429, 792, 881)."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_LONGEST_STRING = 32_767
LONGEST_RACK_ID = 255
"""Characters of a rack that a member of a consumer group may have."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member subscribes to and owns.

    Parameters: `topics` it subscribes to; `owned_partitions` topic -> partitions it had in `generation_id` (-1:
    unknown); `rack_id` where it runs; `user_data` for the assignor, None where absent; `version` of the message.
    """

    topics: tuple[str, ...]
    owned_partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    generation_id: int = -1
    rack_id: str | None = None
    user_data: bytes | None = None
    version: int = HIGHEST_VERSION


@dataclass(frozen=True, slots=True)
class Assignment:
    """A member's assignment: `partitions` topic -> partitions, `user_data` of the assignor, None where absent."""

    partitions: Mapping[str, tuple[int, ...]]
    user_data: bytes | None = None
    version: int = HIGHEST_VERSION


def encode_subscription(subscription: Subscription) -> bytes:
    """The bytes of `subscription`; fields that its version lacks are omitted.

    Topics and partitions are written in order and without duplicates: the coordinator compares the bytes, and a
    subscription that only lists its topics in another order must not look like a change.

    Raises `ProtocolError` (INVALID_REQUEST) naming the field that does not fit the format.
    """
    version = _writable(subscription.version)
    topics = sorted(set(subscription.topics))
    parts = [_INT16.pack(version), _INT32.pack(len(topics)), *(_string("topics", topic) for topic in topics)]
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        parts += _topic_partitions("owned_partitions", subscription.owned_partitions)
    if version >= 2:
        parts.append(_int32s("generation_id", [subscription.generation_id]))
    if version >= 3:
        parts.append(_INT16.pack(-1) if subscription.rack_id is None else _string("rack_id", subscription.rack_id))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription | None:
    """The subscription in `data`, None if `data` is not one. Never raises, whatever the bytes.

    A version newer than the newest known is read as that one, and bytes after the message are ignored, as Kafka does.
    """
    try:
        reader = _Reader(data)
        version = reader.version()
        return Subscription(
            topics=reader.strings(),
            user_data=reader.nullable_bytes(),
            owned_partitions=reader.topic_partitions() if version >= 1 else {},
            generation_id=reader.int32() if version >= 2 else -1,
            rack_id=reader.rack_id() if version >= 3 else None,
            version=version,
        )
    except _MalformedError:
        return None


def encode_assignment(assignment: Assignment) -> bytes:
    """The bytes of `assignment`. Raises `ProtocolError` (INVALID_REQUEST) naming the field that does not fit."""
    parts = [_INT16.pack(_writable(assignment.version))]
    parts += _topic_partitions("partitions", assignment.partitions)
    parts.append(_nullable_bytes(assignment.user_data))
    return b"".join(parts)


def decode_assignment(data: bytes) -> Assignment | None:
    """The assignment in `data`, None if `data` is not one (no bytes at all: nothing was assigned yet)."""
    try:
        reader = _Reader(data)
        version = reader.version()
        return Assignment(partitions=reader.topic_partitions(), user_data=reader.nullable_bytes(), version=version)
    except _MalformedError:
        return None


class _MalformedError(Exception):
    """The bytes are not a valid message."""


class _Reader:
    """Reads fields one after another. Every method raises `_MalformedError` if the bytes do not hold the field."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def _take(self, size: int) -> bytes:
        end = self._offset + size
        if end > len(self._data):
            raise _MalformedError
        taken = self._data[self._offset : end]
        self._offset = end
        return taken

    def _count(self) -> int:
        """The length of an array. It has not been checked yet that as many elements follow."""
        count = self.int32()
        if count < 0:
            raise _MalformedError
        return count

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(4))[0])

    def version(self) -> int:
        version = self.int16()
        if version < 0:
            raise _MalformedError
        return min(version, HIGHEST_VERSION)

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        try:
            text = self._take(length).decode()
        except UnicodeDecodeError as error:
            raise _MalformedError from error
        if "\0" in text:  # no topic and no rack has one, and Postgres cannot store it
            raise _MalformedError
        return text

    def rack_id(self) -> str | None:
        rack = self.nullable_string()
        if rack is not None and len(rack) > LONGEST_RACK_ID:
            raise _MalformedError
        return rack

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise _MalformedError
        return text

    def strings(self) -> tuple[str, ...]:
        return tuple([self.string() for _ in range(self._count())])

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def topic_partitions(self) -> dict[str, tuple[int, ...]]:
        """Topic -> partitions. A topic that is listed twice has the partitions of both entries."""
        topics: dict[str, list[int]] = {}
        for _ in range(self._count()):
            partitions = topics.setdefault(self.string(), [])
            count = self._count()
            numbers = self._take(4 * count)
            partitions += struct.unpack(f">{count}i", numbers)
        return {topic: tuple(partitions) for topic, partitions in topics.items()}


def _writable(version: int) -> int:
    if not 0 <= version <= HIGHEST_VERSION:
        raise ValueError(f"ConsumerProtocol version {version} cannot be written; known are 0 to {HIGHEST_VERSION}")
    return version


def _topic_partitions(name: str, topics: Mapping[str, Iterable[int]]) -> list[bytes]:
    parts = [_INT32.pack(len(topics))]
    for topic in sorted(topics):
        partitions = sorted(set(topics[topic]))
        parts += [_string(name, topic), _INT32.pack(len(partitions)), _int32s(f"{name}[{topic!r}]", partitions)]
    return parts


def _int32s(name: str, values: Sequence[int]) -> bytes:
    try:
        return struct.pack(f">{len(values)}i", *values)
    except struct.error as error:
        raise _does_not_fit(name, "must be a 32-bit integer") from error


def _string(name: str, text: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise _does_not_fit(name, "must be valid Unicode") from error
    if len(encoded) > _LONGEST_STRING:
        raise _does_not_fit(name, f"must be at most {_LONGEST_STRING} bytes in UTF-8")
    return _INT16.pack(len(encoded)) + encoded


def _nullable_bytes(value: bytes | None) -> bytes:
    return _INT32.pack(-1) if value is None else _INT32.pack(len(value)) + value


def _does_not_fit(name: str, rule: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{name}: {rule} to be sent as ConsumerProtocol bytes")
