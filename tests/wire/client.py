"""A client of Kafka's protocol, as small as it can be: one connection, requests by the names of kio's fields."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from kcoord.door.kafka.api import request_class, response_class
from kcoord.door.kafka.codec import Fields, Frame, varint, write
from kcoord.door.kafka.dispatch import API_VERSIONS
from tests.support.frames import read_all


def request_frame(
    name: str, version: int, body: Mapping[str, Any], correlation_id: int = 1, client_id: str = "t"
) -> bytes:
    """A request without its size."""
    cls: Any = request_class(name, version)
    raw = client_id.encode()
    out = bytearray(struct.pack(">hhih", cls.__api_key__, version, correlation_id, len(raw)) + raw)
    if cls.__flexible__:
        out.append(0)
    write(cls, body, out)
    return bytes(out)


def read_answer(name: str, version: int, frame: bytes) -> tuple[int, Fields]:
    """The correlation id and the body of an answer."""
    cls: Any = response_class(name, version)
    data = Frame(frame)
    data.items = 1_000_000
    at = 4
    if cls.__flexible__ and cls.__api_key__ != API_VERSIONS:
        tags, at = varint(data, at)
        assert tags == 0
    return struct.unpack_from(">i", frame)[0], read_all(cls, data, at)


class WireClient:
    """One connection. Requests may be sent before earlier ones are answered: `send`, then `receive` in their order."""

    def __init__(self, port: int, *, client_id: str = "t", tls: ssl.SSLContext | None = None) -> None:
        self._port, self.client_id, self._tls = port, client_id, tls
        self._correlation_id = 0
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> WireClient:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.abort()

    def abort(self) -> None:
        """Close without a word, as a process that is killed."""
        self.writer.transport.abort()

    def send(self, name: str, version: int, **body: Any) -> int:
        """Send a request; returns its correlation id."""
        self._correlation_id += 1
        self.send_raw(request_frame(name, version, body, self._correlation_id, self.client_id))
        return self._correlation_id

    def send_raw(self, frame: bytes) -> None:
        """Send these bytes with their size."""
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def receive_raw(self) -> bytes:
        """An answer without its size. Raises IncompleteReadError when the connection ends instead."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def receive(self, name: str, version: int) -> Fields:
        """The next answer, to a request of this API and version."""
        return read_answer(name, version, await self.receive_raw())[1]

    async def ask(self, name: str, version: int, **body: Any) -> Fields:
        """Send a request and return its answer."""
        sent = self.send(name, version, **body)
        async with asyncio.timeout(30):
            correlation_id, answer = read_answer(name, version, await self.receive_raw())
        assert correlation_id == sent
        return answer

    async def log_in(self, token: str, version: int = 2) -> WireClient:
        """SASL/PLAIN; returns this client."""
        assert (await self.ask("sasl_handshake", 1, mechanism="PLAIN")).error_code == 0
        answer = await self.ask("sasl_authenticate", version, auth_bytes=f"\0user\0{token}".encode())
        assert answer.error_code == 0, answer
        return self

    async def is_closed(self) -> bool:
        """Whether the server closes the connection without another byte."""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True
