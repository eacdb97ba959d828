"""Frames of the few Kafka requests that the bench sends, in versions that are encoded without tags.

Layouts are those of the message schemas in Apache Kafka's `clients/src/main/resources/common/message`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CREATE_TOPICS = 8, 10, 11, 12, 14, 19
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
VERSIONS = {
    OFFSET_COMMIT: 2,
    FIND_COORDINATOR: 1,
    JOIN_GROUP: 3,
    HEARTBEAT: 0,
    SYNC_GROUP: 0,
    SASL_HANDSHAKE: 1,
    CREATE_TOPICS: 2,
    SASL_AUTHENTICATE: 0,
}
KNOWS_MEMBER_ID_REQUIRED = 4
"""A version of JoinGroup with the layout of VERSIONS; a member is given an id first, as clients of today are."""
CORRELATION = 7
CLIENT = "bench"


def string(text: str | None) -> bytes:
    """STRING or NULLABLE_STRING."""
    if text is None:
        return b"\xff\xff"
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def binary(content: bytes) -> bytes:
    """BYTES."""
    return struct.pack(">i", len(content)) + content


def array(entries: Sequence[bytes]) -> bytes:
    """ARRAY of what is encoded already."""
    return struct.pack(">i", len(entries)) + b"".join(entries)


def frame(api: int, body: bytes, version: int | None = None) -> bytes:
    """A request with its header and size; `version` None: that of VERSIONS."""
    number = VERSIONS[api] if version is None else version
    whole = struct.pack(">hhi", api, number, CORRELATION) + string(CLIENT) + body
    return struct.pack(">i", len(whole)) + whole


def answer(body: bytes) -> bytes:
    """A response with its header and size."""
    whole = struct.pack(">i", CORRELATION) + body
    return struct.pack(">i", len(whole)) + whole


def create_topic(name: str, partitions: int) -> bytes:
    """CreateTopics 2 of one topic with one replica."""
    topic = string(name) + struct.pack(">ih", partitions, 1) + array([]) + array([])
    return frame(CREATE_TOPICS, array([topic]) + struct.pack(">i?", 30_000, False))


def find_coordinator(group: str) -> bytes:
    """FindCoordinator 1 of a group."""
    return frame(FIND_COORDINATOR, string(group) + b"\0")


def join_group(
    group: str, member: str, session_ms: int = 1_800_000, rebalance_ms: int = 60_000, version: int | None = None
) -> bytes:
    """JoinGroup 3, or KNOWS_MEMBER_ID_REQUIRED."""
    protocol = string("range") + binary(b"")
    body = string(group) + struct.pack(">ii", session_ms, rebalance_ms) + string(member)
    return frame(JOIN_GROUP, body + string("consumer") + array([protocol]), version)


def sync_group(group: str, member: str, generation: int, members: Sequence[str]) -> bytes:
    """SyncGroup 0; a leader gives every member the same few bytes, others give none."""
    entries = [string(one) + binary(b"assigned") for one in members]
    return frame(SYNC_GROUP, string(group) + struct.pack(">i", generation) + string(member) + array(entries))


def log_in(token: str) -> bytes:
    """SaslHandshake 1 and SaslAuthenticate 0 with SASL/PLAIN."""
    message = binary(f"\0bench\0{token}".encode())
    return frame(SASL_HANDSHAKE, string("PLAIN")) + frame(SASL_AUTHENTICATE, message)


def heartbeat(group: str, member: str, generation: int) -> bytes:
    """Heartbeat 0."""
    return frame(HEARTBEAT, string(group) + struct.pack(">i", generation) + string(member))


HEARTBEAT_WELL = answer(struct.pack(">h", 0))
"""What a heartbeat is answered with."""


def offset_commit(group: str, member: str, generation: int, topic: str, partitions: Sequence[int]) -> bytes:
    """OffsetCommit 2 of one topic."""
    entries = array([struct.pack(">iq", partition, 1_000) + string("") for partition in partitions])
    head = string(group) + struct.pack(">i", generation) + string(member) + struct.pack(">q", -1)
    return frame(OFFSET_COMMIT, head + array([string(topic) + entries]))


def commit_well(topic: str, partitions: Sequence[int]) -> bytes:
    """What such a commit is answered with."""
    return answer(array([string(topic) + array([struct.pack(">ih", partition, 0) for partition in partitions])]))


@dataclass(frozen=True, slots=True)
class Joined:
    """What JoinGroup 3 was answered with; `members` are there for the leader."""

    error: int
    generation: int
    leader: str
    member: str
    members: tuple[str, ...]


class Reader:
    """Reads the fields of a response in order."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def number(self, kind: str) -> int:
        """An integer: `h`, `i` or `q`."""
        (value,) = struct.unpack_from(f">{kind}", self._content, self._at)
        self._at += struct.calcsize(f">{kind}")
        return int(value)

    def string(self) -> str:
        """STRING; null is empty."""
        length = max(0, self.number("h"))
        self._at += length
        return self._content[self._at - length : self._at].decode()

    def skip_bytes(self) -> None:
        """BYTES."""
        length = max(0, self.number("i"))
        self._at += length


def read_joined(body: bytes) -> Joined:
    """JoinGroup 3's response, after the correlation id."""
    reader = Reader(body)
    reader.number("i")  # throttle_time_ms
    error, generation = reader.number("h"), reader.number("i")
    reader.string()  # protocol_name
    leader, member, members = reader.string(), reader.string(), []
    for _ in range(reader.number("i")):
        members.append(reader.string())
        reader.skip_bytes()
    return Joined(error, generation, leader, member, tuple(members))


def read_coordinator(body: bytes) -> int:
    """The error code of FindCoordinator 1."""
    reader = Reader(body)
    reader.number("i")
    return reader.number("h")


def read_synced(body: bytes) -> int:
    """The error code of SyncGroup 0."""
    return Reader(body).number("h")


def read_created(body: bytes) -> int:
    """The error code of CreateTopics 2 of one topic."""
    reader = Reader(body)
    reader.number("i")
    assert reader.number("i") == 1
    reader.string()
    return reader.number("h")
