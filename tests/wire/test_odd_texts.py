"""Texts that Kafka's protocol allows and Postgres or an index does not, in every string of every API that is served.

Each is answered with an error of its own or does no harm; the connection stays, and nothing fails inside.
"""

from __future__ import annotations

import asyncio
import dataclasses
import struct
import typing
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from groups.api.kafka.apis import APIS as OF_GROUPS
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.kafka.api import request_class
from kcoord.door.kafka.codec import CHECKED, SHOWN, shape_of
from kcoord.door.kafka.session import APIS as OF_SESSIONS
from kcoord.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from kcoord.protocol.errors import Error
from offsets.api.kafka.apis import APIS as OF_OFFSETS
from tests.wire.client import request_frame
from tests.wire.conftest import Connect
from tests.wire.support import join_fields, joined, sync_fields

SERVED = sorted((*OF_SESSIONS, *OF_GROUPS, *OF_OFFSETS), key=lambda api: api.key)
PLACE = "<" + "x" * 30 + ">"
"""Replaced by the bytes of a text that cannot be written as a string."""
ODD = {
    "nul": b"\0",
    "nul inside": b"a\0b",
    "not utf-8": b"a\xff\xfeb",
    "surrogate": b"\xed\xa0\x80",
    "overlong nul": b"\xc0\x80",
    "cut off": b"\xe2\x82",
    "line breaks": b"a\r\n\x1b[0m",
    "bidirectional": "a\u202eb".encode(),
    "noncharacter": "\uffff".encode(),
    "beyond the basic plane": "\U0001f600".encode(),
    "longer than an index": b"x" * 3_000,
    "as long as can be": b"x" * 32_767,
}
VALUES = {
    "acks": 1,
    "group_id": "g",
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "member_epoch": 0,
    "session_timeout": 10_000,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "client_software_name": "t",
    "client_software_version": "1",
    "mechanism": "PLAIN",
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 2,
    "retention_time": -1,
    "committed_leader_epoch": -1,
    "resource_type": 32,
    "records": None,
    "assignments": [],
    "transactional_id": "t",
    "response_partition_limit": 100,
}
"""What is not like others of its type."""
FAILURES = {"kafka_connection_closed", "kafka_request_failed", "request_failed"}
ORDINARY = {"string": "t", "bytes": b"", "records": None, "uuid": None, "bool": False}


def strings(cls: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all strings of a request that clients send; tagged ones are those of other brokers."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if "tag" in field.metadata:
            continue
        shape = shape_of(field, hints[field.name])
        if shape.nested is not None:
            yield from strings(shape.nested, (*path, field.name))
        elif shape.kind == "string":
            yield (*path, field.name)


def body(cls: Any, at: tuple[str, ...], text: str) -> dict[str, Any]:
    """A request with one entry in each list, and `text` at a path."""
    hints, made = typing.get_type_hints(cls), {}
    for field in dataclasses.fields(cls):
        shape, rest = shape_of(field, hints[field.name]), at[1:] if at[:1] == (field.name,) else None
        value: Any
        if shape.nested is not None:
            value = body(shape.nested, rest or (), text)
        elif rest is not None:
            value = text
        else:
            value = VALUES.get(field.name, ORDINARY.get(shape.kind, 0))
        if field.name in VALUES and rest is None:
            made[field.name] = VALUES[field.name]
        else:
            made[field.name] = [value] if shape.is_array else value
    return made


def frame(name: str, version: int, at: tuple[str, ...], raw: bytes) -> bytes:
    """A request with these bytes as one of its strings."""
    marked = request_frame(name, version, body(request_class(name, version), at, PLACE))
    found = marked.index(PLACE.encode())
    size = len(PLACE)
    if request_class(name, version).__flexible__:
        assert marked[found - 1] == size + 1
        head, length = found - 1, bytearray()
        count = len(raw) + 1
        while count > 0x7F:
            length.append(count & 0x7F | 0x80)
            count >>= 7
        length.append(count)
    else:
        head, length = found - 2, bytearray(struct.pack(">h", len(raw)))
    return marked[:head] + bytes(length) + raw + marked[found + size :]


def codes(tree: Any) -> Iterator[int]:
    """Every error of an answer."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "error_code":
                yield value
            else:
                yield from codes(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from codes(value)


def places(api: Any) -> Iterator[tuple[int, tuple[str, ...]]]:
    """First and last version of an API with the paths of their strings; joins of the first ones would wait."""
    first, last = api.versions
    for version in dict.fromkeys((last, max(first, min(last, 4)) if api.waits else first)):
        for path in strings(request_class(api.name, version)):
            yield version, path


WITH_STRINGS = [api for api in SERVED if list(places(api))]


@pytest.mark.parametrize("api", WITH_STRINGS, ids=lambda api: api.name)
async def test_every_string_of_every_request(connect: Connect, topics: Any, api: Any) -> None:
    await topics.create("t", 3)
    client = await connect()
    with capture_logs() as lines:
        for version, path in places(api):
            for what, raw in ODD.items():
                client.send_raw(frame(api.name, version, path, raw))
                async with asyncio.timeout(30):
                    try:
                        answer = await client.receive(api.name, version)
                    except Exception as error:
                        raise AssertionError((version, path, what, lines)) from error
                found = list(codes(answer))
                assert Error.UNKNOWN_SERVER_ERROR.code not in found, (version, path, what, lines)
                if b"\0" in raw and path[-1] not in SHOWN:
                    assert any(found) or not found, (version, path, what)
    assert not [line for line in lines if line["event"] in FAILURES]
    assert (await client.ask("heartbeat", 4, group_id="g", generation_id=1, member_id="m")).error_code


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
async def test_client_ids(connect: Connect, raw: bytes) -> None:
    client = await connect()
    joining = {**body(request_class("join_group", 9), (), ""), "member_id": "", "group_instance_id": None}
    marked = request_frame("join_group", 9, joining, client_id=PLACE)
    at = marked.index(PLACE.encode())
    client.send_raw(marked[: at - 2] + struct.pack(">h", len(raw)) + raw + marked[at + len(PLACE) :])
    answer = await client.receive("join_group", 9)
    wanted = Error.INVALID_REQUEST if len(raw) > 255 else Error.MEMBER_ID_REQUIRED
    assert answer.error_code == wanted.code


async def test_metadata_with_u0000_is_refused_for_its_partition(connect: Connect, topics: Any) -> None:
    """Named by docs/differences.md."""
    await topics.create("orders", 3)
    client = await connect(client_id="n\0ul")
    for version in (2, 9):
        answer = await client.ask(
            "offset_commit", version, group_id="g", generation_id_or_member_epoch=-1, member_id="",
            topics=[{"name": "orders", "partitions": [
                {"partition_index": number, "committed_offset": 7, "committed_leader_epoch": -1,
                 "committed_metadata": text}
                for number, text in enumerate(["a", "a\0b", "\0"])
            ]}],
        )  # fmt: skip
        assert [found.error_code for found in answer.topics[0].partitions] == [0, 12, 12]
    asked = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0, 1, 2]}], "member_epoch": -1}
    fetched = await client.ask("offset_fetch", 9, groups=[asked], require_stable=False)
    assert [found.committed_offset for found in fetched.groups[0].topics[0].partitions] == [7, -1, -1]


def subscriptions() -> Iterator[tuple[str, bytes, bytes]]:
    """What leaders and members say in bytes of their own, with odd texts inside: name, subscription, assignment."""
    for what, text in (("nul", "a\0b"), ("longer than an index", "x" * 3_000), ("noncharacter", "\uffff")):
        names = {text: [0], "t": [1]}
        for rack, topics in ((text, ("t",)), (None, (text, "t"))):
            said = Subscription(topics, user_data=text.encode(), owned_partitions=names, rack_id=rack)
            yield (
                f"{what} in {'topics' if rack is None else 'rack'}",
                encode_subscription(said),
                encode_assignment(Assignment(names, text.encode())),
            )
    yield "bytes of nobody's format", b"\0" * 40, b"\0\xff" * 20


@pytest.mark.parametrize(
    ("said", "assigned"), [one[1:] for one in subscriptions()], ids=[one[0] for one in subscriptions()]
)
async def test_texts_inside_subscriptions_and_assignments(
    connect: Connect, service: GroupService, clock: VirtualClock, topics: Any, api: httpx.AsyncClient, said: bytes,
    assigned: bytes,
) -> None:  # fmt: skip
    """These bytes are only carried, but they are read too: for retention, pages, and changes of the protocol."""
    await topics.create("t", 3)
    client = await connect()
    with capture_logs() as lines:
        answer = await joined(client, service, clock, protocols=[{"name": "range", "metadata": said}])
        assert (answer.error_code, answer.members[0].metadata) == (0, said)
        synced = await client.ask("sync_group", 5, **sync_fields(answer, {answer.member_id: assigned}))
        assert (synced.error_code, synced.assignment) == (0, assigned)
        for path in ("", "/lag", "/events", "/simulate"):
            answered = await (api.post if path == "/simulate" else api.get)(f"/v1/groups/g{path}")
            assert answered.status_code < 500, (path, answered.text)
        upgrading = {
            "group_id": "g", "member_id": "", "member_epoch": 0, "instance_id": None, "rack_id": None,
            "rebalance_timeout": 30_000, "subscribed_topic_names": ["t"], "server_assignor": None,
            "topic_partitions": [],
        }  # fmt: skip
        beat = await client.ask("consumer_group_heartbeat", 0, **upgrading)
        assert beat.error_code != Error.UNKNOWN_SERVER_ERROR.code
        other = await client.ask("consumer_group_heartbeat", 0, **{**upgrading, "group_id": "c"})
        assert other.error_code == 0
        joining = join_fields("m", group_id="c", protocols=[{"name": "range", "metadata": said}])
        joined_there = await client.ask("join_group", 9, **joining)
        assert joined_there.error_code != Error.UNKNOWN_SERVER_ERROR.code
    assert not [line for line in lines if line["event"] in FAILURES or line["log_level"] == "error"]


def test_the_table_covers_what_is_served() -> None:
    assert {path[-1] for api in WITH_STRINGS for _, path in places(api)} >= CHECKED | SHOWN
