"""The codec: what it writes kio writes too, what it reads it writes again, and no bytes do harm."""

from __future__ import annotations

import io
import random
import struct
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from groups.api.kafka.apis import APIS as OF_GROUPS
from kcoord.door.kafka import dispatch, session
from kcoord.door.kafka.api import request_class, response_class
from kcoord.door.kafka.codec import Columns, Frame, Malformed, read, write
from offsets.api.kafka.apis import APIS as OF_OFFSETS
from tests.support.frames import read_all
from tests.wire.generate import instance

APIS = (*session.APIS, *OF_GROUPS, *OF_OFFSETS)
SERVED = [(api, version) for api in APIS for version in range(api.versions[0], api.versions[1] + 1)]
of_each_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)


def versions(api: Any) -> list[int]:
    """Those that are served."""
    return [version for served, version in SERVED if served is api]


def kio_bytes(value: Any) -> bytes:
    with io.BytesIO() as out:
        entity_writer(type(value))(out, value)
        return out.getvalue()


@of_each_api
def test_bytes_of_kio_are_read_and_written_again(api: Any) -> None:
    kinds = [kind(api.name, version) for version in versions(api) for kind in (request_class, response_class)]
    for cls, seed in product(kinds, range(5)):
        value = instance(cls, random.Random(seed))
        raw = kio_bytes(value)
        fields = read_all(cls, Frame(raw), 0)
        out = bytearray()
        write(cls, fields, out)
        assert bytes(out) == raw
        found, end = entity_reader(cls)(bytes(out), 0)
        assert (found, end) == (value, len(raw))


@of_each_api
def test_a_cut_or_longer_frame_is_malformed(api: Any) -> None:
    for version in versions(api):
        cls = request_class(api.name, version)
        raw = kio_bytes(instance(cls, random.Random(1)))
        for end in range(len(raw)):
            with pytest.raises(Malformed):
                read_all(cls, Frame(raw[:end]), 0)
        with pytest.raises(Malformed):
            read_all(cls, Frame(raw + b"\0"), 0)


@of_each_api
def test_mutated_frames_are_read_or_malformed(api: Any) -> None:
    for version, number in product(versions(api), range(100)):
        chance = random.Random(f"{api.name} {version} {number}")
        cls: Any = request_class(api.name, version)
        head = struct.pack(">hhih", api.key, version, 1, 1) + (b"t\0" if cls.__flexible__ else b"t")
        mutated = bytearray(head + kio_bytes(instance(cls, chance)))
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(4, max(len(mutated), 5))
            mutated[at : at + chance.randint(0, 5)] = chance.randbytes(chance.randint(0, 5))
        try:
            header = dispatch.read_header(Frame(mutated))
            dispatch.read_body(api.name, header._replace(version=version), Frame(mutated))
        except Malformed:
            continue


@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_malformed(raw: bytes) -> None:
    try:
        found = dispatch.read_header(Frame(raw))
    except Malformed:
        return
    assert found.body_at <= len(raw)


@given(st.binary(max_size=300), st.sampled_from(SERVED))
def test_any_bytes_are_a_body_or_malformed(raw: bytes, served: Any) -> None:
    api, version = served
    try:
        found, end = read(request_class(api.name, version), Frame(raw))
    except Malformed:
        return
    assert end <= len(raw)
    assert isinstance(found, dict)


@pytest.mark.parametrize("count", [2**31 - 1, 2**32 - 2, 1_000])
def test_a_count_is_compared_with_what_is_left(count: int) -> None:
    """kio reserves 8 bytes for each entry first, and aborts the process."""
    raw = bytearray()
    frames_count = count + 1
    while frames_count > 0x7F:
        raw.append(frames_count & 0x7F | 0x80)
        frames_count >>= 7
    raw.append(frames_count)
    with pytest.raises(Malformed, match="more entries"):
        read(request_class("metadata", 12), Frame(raw + b"\0" * 20))


def test_a_legacy_count_is_compared_too() -> None:
    for count in (2**31 - 1, 3):
        with pytest.raises(Malformed, match="more entries"):
            read(request_class("metadata", 4), Frame(struct.pack(">i", count) + b"\0" * 5))
    with pytest.raises(Malformed, match="negative"):
        read(request_class("metadata", 4), Frame(struct.pack(">i", -2) + b"\0" * 5))


def test_the_entries_of_a_frame_are_bounded() -> None:
    frame = Frame(struct.pack(">i", 1_000) + b"\0\0" * 1_000 + b"\0")
    frame.items = 999
    with pytest.raises(Malformed, match="too many entries"):
        read(request_class("metadata", 4), frame)


def test_unknown_tagged_fields_are_skipped() -> None:
    """kio raises KeyError."""
    body = bytearray()
    fields = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
    write(request_class("heartbeat", 4), fields, body)
    assert body[-1] == 0
    tagged = bytes(body[:-1]) + b"\1\x63\2hi"
    assert read_all(request_class("heartbeat", 4), Frame(tagged), 0) == fields


@pytest.mark.parametrize(
    ("given", "unstorable"),
    [
        ({"member_id": "m"}, ""),
        ({"member_id": "m\0"}, "member_id"),
        ({"member_id": "m", "group_instance_id": "\0"}, "group_instance_id"),
        ({"member_id": "m", "group_id": "g\0"}, ""),  # its handler says so
    ],
)
def test_a_text_that_postgres_cannot_store_is_reported(given: dict[str, str], unstorable: str) -> None:
    body = bytearray()
    write(request_class("heartbeat", 4), {"group_id": "g", **given}, body)
    frame = Frame(body)
    fields = read_all(request_class("heartbeat", 4), frame, 0)
    assert frame.unstorable == unstorable
    assert fields.items() >= given.items()


def test_a_text_that_is_only_shown_is_mended() -> None:
    body = bytearray()
    write(request_class("leave_group", 5), {"group_id": "g", "members": [{"member_id": "m", "reason": "a\0b"}]}, body)
    frame = Frame(body.replace(b"a\0b", b"a\0\xff"))
    assert read_all(request_class("leave_group", 5), frame, 0).members[0].reason == "a\ufffd\ufffd"
    assert not frame.unstorable


INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
COMMITS = [(api, version) for api, version in SERVED if api.name in ("offset_commit", "txn_offset_commit")]


@given(st.lists(st.tuples(INT32, INT64, INT32, st.sampled_from([None, "", "", "some"]))), st.sampled_from(COMMITS))
def test_the_columns_of_a_commit_are_what_kio_reads(rows: list[tuple[Any, ...]], served: Any) -> None:
    """Texts are mostly left out: then all partitions are read together."""
    api, version = served
    cls = request_class(api.name, version)
    names = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    partitions = [dict(zip(names, row, strict=True)) for row in rows]
    out = bytearray()
    write(cls, {"topics": [{"partitions": partitions}]}, out)
    columns = read_all(cls, Frame(out), 0).topics[0].partitions
    found, _ = entity_reader(cls)(bytes(out), 0)
    asked = found.topics[0].partitions
    assert isinstance(columns, Columns)
    assert columns.rows() == [{name: getattr(one, name) for name in columns} for one in asked]
    assert all(len(column) == len(rows) for column in columns.values())


@given(st.lists(st.tuples(INT32, st.integers(-1, 100))), st.sampled_from(COMMITS))
def test_columns_are_written_as_their_rows_are(rows: list[tuple[int, int]], served: Any) -> None:
    api, version = served
    cls = response_class(api.name, version)
    columns = Columns(partition_index=[number for number, _ in rows], error_code=[code for _, code in rows])
    written = [bytearray(), bytearray()]
    for partitions, out in zip((columns, columns.rows()), written, strict=True):
        write(cls, {"topics": [{"partitions": partitions}]}, out)
    assert written[0] == written[1]


@pytest.mark.parametrize("tagged", [0, 1, 2])
def test_a_tagged_field_of_a_partition_is_skipped(tagged: int) -> None:
    entries = [struct.pack(">iqiB", number, 7, -1, 1) for number in range(3)]
    raw = b"\2g" + b"\0\0\0\1" + b"\2m" + b"\0" + b"\2\2t\4"
    raw += b"".join(entry + (b"\1\x63\2hi" if at == tagged else b"\0") for at, entry in enumerate(entries)) + b"\0\0"
    found = read_all(request_class("offset_commit", 9), Frame(raw), 0)
    assert found.topics[0].partitions["partition_index"] == [0, 1, 2]
