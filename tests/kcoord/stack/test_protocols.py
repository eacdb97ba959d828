"""The parser with a small application: what reaches it, and what comes back. No database, real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from kcoord.config import Config
from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.peers import HttpPeers, PeerLimits

SECONDS = 20.0
HOST = b"Host: a\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
LAST = b"GET /last HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
LARGE = b"x" * 300_000


def post(*headers: bytes, body: bytes = b"hello", version: bytes = b"1.1") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"POST /path HTTP/" + version + b"\r\n" + HOST + lines + b"\r\n" + body


@dataclass(slots=True)
class Echo:
    """Answers with the body it got. `seen`: scope and body of each request, `most` requests at the same time."""

    streams: bool = False
    seen: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    running: int = 0
    most: int = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.running -= 1
                return
            body += message["body"]
            more = message["more_body"]
        self.seen.append((scope, body))
        await asyncio.sleep(0)
        headers = [] if self.streams else [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body[:2], "more_body": True})
        self.running -= 1
        await send({"type": "http.response.body", "body": body[2:]})

    def headers(self, index: int = 0) -> dict[bytes, bytes]:
        return dict(self.seen[index][0]["headers"])


class Noticed(HttpProtocol):
    """Says when it has read something."""

    has_read: asyncio.Event

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.has_read.set()


def talk(app: Echo, *parts: bytes) -> bytes:
    """All that comes back on one connection until the server closes it.

    A part is sent when the one before was read, or after 10 ms: the server does not read while it answers.
    """

    async def conversation() -> bytes:
        loop = asyncio.get_running_loop()
        config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, ws="none")  # type: ignore[arg-type]
        peers, state, has_read = HttpPeers(PeerLimits.of(Config({}))), ServerState(), asyncio.Event()

        def connection() -> asyncio.Protocol:
            protocol = Noticed(peers, config=config, server_state=state, app_state={})
            protocol.has_read = has_read
            return protocol

        server = await loop.create_server(connection, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        for part in parts:
            has_read.clear()
            writer.write(part)
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(has_read.wait(), 0.01)
        read = await asyncio.wait_for(reader.read(), SECONDS)
        writer.close()
        server.close()
        return read

    return run(conversation)


def run(work: Callable[[], Awaitable[bytes]]) -> bytes:
    factory = uvicorn.Config("", loop="auto").get_loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work())  # type: ignore[arg-type]


def statuses(read: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d{3})", read)]


def test_the_loop_is_that_of_uvloop() -> None:
    async def loop() -> bytes:
        return type(asyncio.get_running_loop()).__module__.encode()

    assert run(loop).startswith(b"uvloop")


def test_a_request_reaches_the_application() -> None:
    app = Echo()
    request = b"POST /a%20b/c%2Fd?q=%20&r HTTP/1.1\r\nHost: a \r\nX-Empty:\r\nX-Two: 1\r\nx-two:\t2\t \r\n"
    read = talk(app, request + b"Content-Length: 5\r\n\r\nhello" + LAST)
    assert statuses(read) == [200, 200]
    scope, body = app.seen[0]
    assert (scope["method"], scope["path"], scope["raw_path"]) == ("POST", "/a b/c/d", b"/a%20b/c%2Fd")
    assert (scope["query_string"], scope["http_version"], scope["scheme"]) == (b"q=%20&r", "1.1", "http")
    assert scope["headers"] == [
        (b"host", b"a"), (b"x-empty", b""), (b"x-two", b"1"), (b"x-two", b"2"), (b"content-length", b"5"),
    ]  # fmt: skip
    assert body == b"hello"
    assert scope["client"][0] == "127.0.0.1"


BODIES = {
    "length": post(b"Content-Length: 5"),
    "length with blanks": post(b"Content-Length: \t5 "),
    "chunks": post(b"Transfer-Encoding: chunked", body=b"2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\n\r\n"),
    "capitals": post(b"Transfer-Encoding: CHUNKED", body=b"05\r\nhello\r\n00\r\n\r\n"),
    "upgrade": post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"Content-Length: 5"),
    "upgrade with chunks": post(
        b"upgrade: websocket", b"Connection: upgrade", b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_bodies_end_where_they_say(name: str, step: int) -> None:
    app = Echo()
    stream = BODIES[name] + GET + BODIES[name] + LAST
    parts = [stream[at : at + step] for at in range(0, len(stream), step)]
    assert statuses(talk(app, *parts)) == [200] * 4
    assert [body for _, body in app.seen] == [b"hello", b"", b"hello", b""]


def test_large_bodies_come_whole() -> None:
    app = Echo()
    chunks = b"".join(b"%x\r\n%s\r\n" % (70_000, b"x" * 70_000) for _ in range(4)) + b"4e20\r\n" + b"x" * 20_000
    stream = post(b"Content-Length: 300000", body=LARGE)
    stream += post(b"Transfer-Encoding: chunked", body=chunks + b"\r\n0\r\n\r\n") + LAST
    read = talk(app, stream)
    assert statuses(read) == [200] * 3
    assert [body for _, body in app.seen] == [LARGE, LARGE, b""]


def test_trailers_are_no_headers() -> None:
    app = Echo()
    sent = post(b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\nAuthorization: x\r\nX: y\r\n\r\n")
    assert statuses(talk(app, sent + LAST)) == [200, 200]
    assert set(app.headers()) == {b"host", b"transfer-encoding"}


def test_pipelined_requests_are_answered_one_at_a_time() -> None:
    app = Echo()
    requests = [post(b"Content-Length: %d" % len(b"%d" % n), body=b"%d" % n) for n in range(500)]
    read = talk(app, b"".join(requests) + LAST)
    assert [body for _, body in app.seen] == [b"%d" % n for n in range(500)] + [b""]
    assert re.findall(rb"\r\n\r\n(\d+)HTTP", read) == [b"%d" % n for n in range(500)]
    assert app.most == 1, "the second began before the first was answered"


REFUSED = {
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "two hosts, HTTP/1.0": b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    "length and chunks": post(b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunks and length": post(b"Transfer-Encoding: chunked", b"Content-Length: 4", body=b"0\r\n\r\n"),
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 6"),
    "a list of lengths": post(b"Content-Length: 5, 6"),
    "no length": post(b"Content-Length:"),
    "signed length": post(b"Content-Length: +5"),
    "length of 26 digits": post(b"Content-Length: " + b"9" * 26),
    "coding before chunked": post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "identity": post(b"Transfer-Encoding: identity", body=b""),
    "two codings": post(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunked twice": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunks in HTTP/1.0": post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n", version=b"1.0"),
    "blank in a name": post(b"Content-Length : 5"),
    "control character": post(b"X: a\x00b", b"Content-Length: 5"),
    "line feed alone": post(b"X: a\nContent-Length: 9", b"Content-Length: 5"),
    "carriage return alone": post(b"X: a\rContent-Length: 9", b"Content-Length: 5"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "two blanks": b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n",
    "target not ASCII": b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "blank line first": b"\r\n" + GET,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "endless head": GET[:-2] + b"X: " + b"y" * 100_000,
    "many headers": GET[:-2] + b"X: y\r\n" * 20_000,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_ends_the_connection(name: str) -> None:
    app = Echo()
    read = talk(app, REFUSED[name] + LAST)
    assert statuses(read) == [400]
    assert b"application/problem+json" in read
    assert app.seen == []


STRICTER = {
    "folded header": post(b"X: a", b" b", b"Content-Length: 5"),
    "the same length twice": post(b"Content-Length: 5", b"Content-Length: 5"),
    "line feeds alone": b"GET / HTTP/1.1\nHost: a\n\n",
    "head of 20 kB at once": GET[:-2] + b"X: " + b"y" * 20_000 + b"\r\n\r\n",
    "unknown method": b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n",
    "control character in a value": GET[:-2] + b"X: a\x01b\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n",
}


@pytest.mark.parametrize("name", STRICTER)
def test_what_other_servers_let_through_ends_the_connection(name: str) -> None:
    app = Echo()
    assert statuses(talk(app, STRICTER[name] + LAST)) == [400]
    assert app.seen == []


BAD_CHUNKS = [b"ZZ\r\n", b"5\nhello\r\n0\r\n\r\n", b"-5\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello world\r\n"]
BAD_CHUNKS += [b"f" * 30 + b"\r\n", b"1;" + b"x" * 50_000, b"0\r\n" + b"X: y\r\n" * 20_000]


@pytest.mark.parametrize("body", BAD_CHUNKS, ids=lambda body: repr(body[:8]))
def test_chunks_that_are_none_end_the_connection(body: bytes) -> None:
    app = Echo()
    read = talk(app, post(b"Transfer-Encoding: chunked", body=body) + LAST)
    assert statuses(read) == [400]
    assert app.seen == []


@pytest.mark.parametrize("trailer", [b"Content-Length: 9", b"Transfer-Encoding: chunked", b"Connection: close"])
def test_trailers_cannot_change_the_framing(trailer: bytes) -> None:
    app = Echo()
    body = b"5\r\nhello\r\n0\r\n" + trailer + b"\r\n\r\n"
    read = talk(app, post(b"Transfer-Encoding: chunked", body=body) + GET + LAST)
    assert statuses(read) in ([400], [200, 400], [200] * 3)
    assert all(set(dict(scope["headers"])) <= {b"host", b"transfer-encoding", b"connection"} for scope, _ in app.seen)
    assert [scope["path"] for scope, _ in app.seen] == ["/path", "/", "/last"][: len(app.seen)]


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_of_http_1_0_gets_no_chunks(streams: bool) -> None:
    app = Echo(streams=streams)
    read = talk(app, post(b"Content-Length: 5", version=b"1.0"))
    head, _, body = read.partition(b"\r\n\r\n")
    assert body == b"hello"
    assert b"transfer-encoding" not in head.lower()
    assert b"connection: close" in head.lower()


def test_a_stream_to_a_client_of_http_1_1_comes_in_chunks() -> None:
    read = talk(Echo(streams=True), post(b"Content-Length: 5") + LAST)
    assert statuses(read) == [200, 200]
    assert b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n" in read


@pytest.mark.parametrize("value", [b"close", b"Close", b"x, close"])
def test_a_client_that_wants_to_close_gets_no_second_answer(value: bytes) -> None:
    app = Echo()
    read = talk(app, GET[:-2] + b"Connection: " + value + b"\r\n\r\n" + GET)
    assert statuses(read) == [200]
    assert len(app.seen) == 1
