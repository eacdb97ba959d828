"""Shortcuts that must not change what is found: duplicate fields, and instants."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.api.wire import ConsumerHeartbeatRequest, HeartbeatRequest, JoinRequest, ManyHeartbeatsRequest
from kcoord.door.http import body as bodies
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import ProtocolError
from offsets.api.wire import CommitRequest


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """Its defaults are not left out."""

    x: int = 1
    y: int = 1


class Outer(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Its own are."""

    inner: list[Inner]


LAST_SECOND = 253_402_300_799

FIELDS = st.sampled_from(
    [
        ("member_id", '"m"'), ("member_id", '"member_id"'), ("member_id", '"\\"member_id\\":"'), ("member_id", '"{"'),
        ("generation_id", "1"), ("generation_id", "2"), ("group_instance_id", "null"), ("group_instance_id", '"x"'),
        ("group_instance_id", '"generation_id"'), ("m\\u0065mber_id", '"m"'), ("other", "1"),
    ]
)  # fmt: skip
BLANKS = st.sampled_from(["", " ", "\n"])


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """An object with some of the fields of a heartbeat, some of them more than once."""
    fields = draw(st.lists(FIELDS, max_size=5))
    written = [f'{draw(BLANKS)}"{name}"{draw(BLANKS)}:{value}' for name, value in fields]
    return f"{{{','.join(written)}}}{draw(BLANKS)}".encode()


def has_twice(body: bytes) -> bool:
    """Whether an object in a valid body has two equal keys."""
    found = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        found.append(len({name for name, _ in pairs}) != len(pairs))

    json.loads(body, object_pairs_hook=look)
    return any(found)


def outcome(kind: Any, body: bytes) -> str:
    try:
        bodies.decode(msgspec.json.Decoder(kind), body)
    except ProtocolError as error:
        return error.detail
    return "accepted"


@given(objects())
def test_a_field_that_occurs_twice_is_always_found(body: bytes) -> None:
    found = outcome(HeartbeatRequest, body)
    assert (found == "accepted") <= (not has_twice(body))
    if "occurs twice" in found:
        assert has_twice(body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (HeartbeatRequest, b'{"member_id":"m","generation_id":1,"generation_id":1}'),
        (HeartbeatRequest, b'{"member_id":"m","generation_id":1,"g\\u0065neration_id":1}'),
        (ManyHeartbeatsRequest, b'{"heartbeats":[],"heartbeats":[]}'),
        (ManyHeartbeatsRequest, b'{"heartbeats":[{"group_id":"g","member_id":"a","generation_id":1,"member_id":"m"}]}'),
        (ConsumerHeartbeatRequest, b'{"member_id":"m","member_epoch":1,"topic_partitions":null,"topic_partitions":[]}'),
        (
            JoinRequest,
            b'{"member_id":"","session_timeout_ms":1,"protocol_type":"c","protocols":[{"name":"r",'
            b'"subscription":{"topics":[],"owned_partitions":{"t":[0],"t":[1]}}}]}',
        ),
    ],
)
def test_wherever_it_is(kind: Any, body: bytes) -> None:
    assert "occurs twice" in outcome(kind, body)


def test_kinds_whose_names_are_not_known_are_looked_at_in_full() -> None:
    class Lenient(msgspec.Struct):
        name: str

    for kind in (Lenient, dict[str, int], Any):
        assert outcome(kind, b'{"x":1,"x":2,"name":3}') != "accepted"
    assert "occurs twice" in outcome(Lenient, b'{"x":1,"x":2,"name":"n"}')


@st.composite
def commits(draw: st.DrawFn) -> bytes:
    """A commit of which some fields are given that have their default, left out, or given twice."""

    def written(*fields: tuple[str, str]) -> str:
        chosen = [field for field in fields for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2])))]
        return "{" + ",".join(f'"{name}":{value}' for name, value in draw(st.permutations(chosen))) + "}"

    def listed(most: int, *fields: tuple[str, str]) -> str:
        return "[" + ",".join(written(*fields) for _ in range(draw(st.integers(0, most)))) + "]"

    text = draw(st.sampled_from(['""', '"orders"', '"name"', "null"]))
    number = draw(st.sampled_from(["-1", "7", '"7"']))
    partition = ("partition", "1"), ("committed_offset", number), ("committed_leader_epoch", "-1")
    topic = ("name", '"orders"'), ("partitions", listed(3, *partition, ("committed_metadata", text)))
    return written(("topics", listed(2, *topic)), ("member_id", '""'), ("group_instance_id", "null")).encode()


@given(commits())
def test_a_field_that_occurs_twice_in_a_commit_is_always_found(body: bytes) -> None:
    found = outcome(CommitRequest, body)
    assert (found == "accepted") <= (not has_twice(body))
    if "occurs twice" in found:
        assert has_twice(body)


@pytest.mark.parametrize("more", [b"", b',"committed_leader_epoch":3', b',"committed_metadata":"m"'])
def test_the_usual_commit_is_not_read_a_second_time(monkeypatch: pytest.MonkeyPatch, more: bytes) -> None:
    monkeypatch.setattr(bodies, "_refuse_duplicates", lambda body: pytest.fail("it was"))
    one = b'{"partition":1,"committed_offset":7%b}' % more
    assert outcome(CommitRequest, b'{"topics":[{"name":"t","partitions":[%b,%b]}]}' % (one, one)) == "accepted"


def test_a_kind_with_defaults_that_are_not_left_out_is_looked_at_in_full() -> None:
    assert "occurs twice" in outcome(Outer, b'{"inner":[{"x":1,"x":2}]}')


@given(st.integers(0, LAST_SECOND * 1_000 + 999))
def test_instants(instant_ms: int) -> None:
    shown = rfc3339(instant_ms)
    assert shown is not None
    assert len(shown) == len("2026-01-01T00:00:00.000Z")
    found = datetime.strptime(shown, "%Y-%m-%dT%H:%M:%S.%f%z")
    assert found == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant_ms)
