"""One request as bytes, and its answer.

Source: Kafka's RequestHeader and ResponseHeader, versions 1 and 2, 0 and 1. The answer to ApiVersions always has the
header of version 0, because its client does not know yet what the server understands (KIP-511).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from kcoord.wire import api
from kcoord.wire.reading import Fields, Frame, Malformed, read, shown, varint
from kcoord.wire.writing import write

API_VERSIONS = 18
SIZE = struct.Struct(">i")
_FIXED = struct.Struct(">hhih")


class Header(NamedTuple):
    """The part that all requests have in common. `body_at`: where that of a version with legacy headers begins."""

    key: int
    version: int
    correlation_id: int
    client_id: str
    body_at: int


def read_header(frame: Frame) -> Header:
    """The header of a request, without its tagged fields. Raises Malformed."""
    try:
        key, version, correlation_id, length = _FIXED.unpack_from(frame)
    except struct.error:
        raise Malformed("the header is cut off") from None
    at = _FIXED.size
    if length < -1 or at + length > len(frame):
        raise Malformed("the client id exceeds the frame")
    end = at + max(length, 0)
    return Header(key, version, correlation_id, shown(frame[at:end]), end)


def read_body(name: str, header: Header, frame: Frame) -> Fields:
    """The body of a request. Raises Malformed.

    What follows it is not looked at, as in Kafka: librdkafka asks for all topics with three bytes too many.
    """
    cls: Any = api.request_class(name, header.version)
    at = header.body_at
    try:
        if cls.__flexible__:
            at = _skip_tags(frame, at)
    except IndexError:
        raise Malformed("the header is cut off") from None
    return read(cls, frame, at)[0]


def _skip_tags(frame: Frame, at: int) -> int:
    count, at = varint(frame, at)
    for _ in range(count):
        _tag, at = varint(frame, at)
        length, at = varint(frame, at)
        at += length
        if at > len(frame):
            raise Malformed("a tagged field of the header exceeds the frame")
    return at


def answer(key: int, name: str, version: int, correlation_id: int, body: api.Answer) -> bytes:
    """An answer with its size and header."""
    cls: Any = api.response_class(name, version)
    out = bytearray(4)
    out += SIZE.pack(correlation_id)
    if cls.__flexible__ and key != API_VERSIONS:
        out.append(0)
    write(cls, body, out)
    SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)
