"""Frames of every API and version as Kafka's own classes wrote them: read as they read them, written byte for byte."""

from __future__ import annotations

import base64
import json
import re
import uuid
from functools import cache
from typing import Any

import pytest

from kcoord.door.kafka import dispatch
from kcoord.door.kafka.api import request_class, response_class
from kcoord.door.kafka.codec import Columns, Fields, Frame, write
from tests.support.frames import read_all
from tests.wire.record import FRAMES, served

SERVED = {(api.key, version): api for api, version in served()}
RECORDED = [json.loads(line) for line in FRAMES.read_text(encoding="utf-8").splitlines()]
NO_UUID = "A" * 22
RENAMED = "_or_member_epoch"
"""What Kafka 4.4 appended to the generation of TxnOffsetCommit, in all versions."""
RECORDS = ("records", "recordsSizeInBytes")
"""Kafka tells how long records are, not what they contain."""


def name_of(found: dict[str, Any]) -> str:
    return f"{SERVED[found['key'], found['version']].name}-{found['version']}-{found['kind']}"


def test_there_is_a_frame_of_everything_that_is_served() -> None:
    recorded = [(found["key"], found["version"], found["kind"]) for found in RECORDED]
    assert recorded == [(key, version, kind) for key, version in SERVED for kind in ("request", "response")]


@cache
def snake(name: str) -> str:
    """kio's name of a field of Kafka's."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def same(ours: Any, kafkas: Any, where: str) -> int:
    """Compare a value; returns how many numbers, texts and bytes it has."""
    if isinstance(ours, Columns):
        ours = [Fields(row) for row in ours.rows()]
    if isinstance(ours, Fields):
        return of_struct(ours, kafkas, where)
    if isinstance(ours, list):
        assert len(ours) == len(kafkas), where
        return sum(same(one, other, f"{where}[{at}]") for at, (one, other) in enumerate(zip(ours, kafkas, strict=True)))
    if isinstance(ours, bytes):
        kafkas = base64.b64decode(kafkas)
    elif isinstance(ours, uuid.UUID):
        kafkas = uuid.UUID(bytes=base64.urlsafe_b64decode(kafkas + "=="))
    elif ours is None and kafkas == NO_UUID:
        kafkas = None
    assert ours == kafkas, where
    return 1


def of_struct(ours: Fields, kafkas: dict[str, Any], where: str) -> int:
    """Compare a struct, of which kio drops the unit of durations in names."""
    compared = 0
    left = dict(ours)
    for name, value in kafkas.items():
        if name in RECORDS:
            left.pop("records")
            continue
        known = snake(name) if snake(name) in left else snake(name).removesuffix("_ms").removesuffix(RENAMED)
        compared += same(left.pop(known), value, f"{where}.{name}")
    assert not left, f"{where}: Kafka does not tell {', '.join(left)}"
    return compared


@pytest.mark.parametrize("name", sorted({api.name for api in SERVED.values()}))
def test_recorded_frames_are_read_as_kafka_reads_them_and_written_again(name: str) -> None:
    for found in RECORDED:
        if SERVED[found["key"], found["version"]].name == name:
            print(name_of(found))
            read_and_written_again(found)


def read_and_written_again(found: dict[str, Any]) -> None:
    api, raw = SERVED[found["key"], found["version"]], bytes.fromhex(found["frame"])
    version, out = found["version"], bytearray()
    if found["kind"] == "request":
        header = dispatch.read_header(Frame(raw))
        assert (header.key, header.version, header.correlation_id, header.client_id) == (
            api.key,
            version,
            7,
            "recorder",
        )
        fields = dispatch.read_body(api.name, header, Frame(raw))
        write(request_class(api.name, version), fields, out)
        assert raw.endswith(bytes(out))
        assert len(raw) - len(out) - header.body_at == request_class(api.name, version).__flexible__  # type: ignore[attr-defined]
    else:
        cls: Any = response_class(api.name, version)
        at = 5 if cls.__flexible__ and api.key != dispatch.API_VERSIONS else 4
        fields = read_all(cls, Frame(raw), at)
        assert dispatch.encoded(api.key, api.name, version, 7, fields) == len(raw).to_bytes(4, "big") + raw
    assert same(fields, found["values"], name_of(found)) > 0 or not fields
