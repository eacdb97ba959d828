"""A connection of HTTP/1.1: bytes in, one request after the other, answers in their order.

The cutter finds where heads, chunks and requests end; httptools says whether they are valid, and both must agree where
a request ends. A parser that is given one piece at a time never reads beyond the request that is being answered:
pipelined requests wait as bytes, and nothing that belongs to the next request can reach the one before.

A request for an operation is answered by `kcoord.door.http.door`, any other one by the ASGI application
(`kcoord.door.http.cycle`). What a peer owes is in `kcoord.door.http.peers`.

Members repeat the same headers for hours, so what a block of headers says is remembered for each connection, except
whether the token in it is valid: that is asked for each request.

Source: RFC 9112, section 2, 3, 7.1 and 11.2.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import time
from contextvars import copy_context
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.server import ServerState

from kcoord import metrics
from kcoord.access.quotas.connections import PEER
from kcoord.access.rights import trusted_caller
from kcoord.door.http.cycle import HIGH_WATER_BYTES, Cycle, Writable
from kcoord.door.http.door import (
    DOOR,
    Asked,
    BadFraming,
    Door,
    Head,
    Headers,
    Route,
    ambiguous_framing,
    answer_head,
    body_length,
)
from kcoord.door.http.peers import TOO_LATE, TOO_MANY, HttpPeers, Peer, Phase, Reason, refusal
from kcoord.process import runtime as runtimes
from kcoord.protocol.errors import Error
from kcoord.requests import current
from kcoord.requests.current import RECEIPT, Receipt
from kcoord.requests.turnstile import Kind

_END = b"\r\n\r\n"
_BARE_END = re.compile(rb"\n\r?\n")
"""The end of a head that is not valid, so that it is refused at once."""
_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/(1\.[01])\r\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
_BLANK_LINE = b"\r\n"
_SPACE = 0x20


class Part(Enum):
    """What the next byte belongs to."""

    HEAD = "the head of a request"
    BODY = "a body of known length"
    SIZE = "the line before a chunk"
    CHUNK = "a chunk"
    TRAILERS = "what follows the last chunk"


class Cutter:
    """The bytes of one connection that were not parsed yet.

    Parameters: `longest` head of a request, line between chunks, or trailers, in bytes; a longer one raises BadFraming.
    """

    __slots__ = ("_at", "_data", "_left", "_longest", "_part", "_searched")

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._data = b""
        self._at = 0
        self._searched = 0
        self._part = Part.HEAD
        self._left = 0
        """Bytes that remain: of the body, of the chunk with its line end, or allowed for trailers."""

    @property
    def in_body(self) -> bool:
        """The head of a request was taken, and its body not all of it."""
        return self._part is not Part.HEAD

    @property
    def waiting(self) -> int:
        """Bytes that have come and were not taken."""
        return len(self._data) - self._at

    def received(self, data: bytes) -> None:
        """This has come."""
        self._data = self._data[self._at :] + data if self.waiting else data
        self._at = 0

    def head(self) -> tuple[bytes, bytes, bytes, bytes] | None:
        """Method, target, version (b"1.1") and the whole head of the next request; None if it has not come.

        Raises BadFraming if this cannot become a request.
        """
        end = self._data.find(_END, self._at + self._searched) + len(_END)
        if end < len(_END):
            found = _BARE_END.search(self._data, self._at + self._searched)
            end = -1 if found is None else found.end()
        size = self.waiting if end < 0 else end - self._at
        if size > self._longest:
            raise BadFraming(f"the head of the request is larger than {self._longest} bytes")
        if size and self._data[self._at] <= _SPACE:
            raise BadFraming("a request begins with its method")
        if end < 0:
            self._searched = max(size - 3, 0)
            return None
        head = self._take(size)
        self._searched = 0
        line = _REQUEST_LINE.match(head)
        if line is None:
            raise BadFraming("the request does not begin with a request line of HTTP/1.1 or 1.0")
        return line[1], line[2], line[3], head

    def take(self, length: int) -> bytes | None:
        """Take the next `length` bytes; None, and nothing is taken, if they have not all come."""
        return None if self.waiting < length else self._take(length)

    def expect(self, length: int | None) -> None:
        """The head that was taken announces a body of `length` bytes, None: in chunks."""
        self._part = Part.SIZE if length is None else Part.BODY if length else Part.HEAD
        self._left = length or 0

    def body(self) -> bytes | None:
        """The next piece of the body; None if it has not come. Pieces of chunked bodies are chunks and lines between.

        Raises BadFraming for a line that is too long, and for one that is not the size of a chunk.
        """
        if self._part is Part.BODY or self._part is Part.CHUNK:
            return self._content()
        end = self._data.find(b"\n", self._at) + 1
        size = end - self._at if end else self.waiting
        if size > (self._left if self._part is Part.TRAILERS else self._longest):
            raise BadFraming(f"a line between chunks, or the trailers, are larger than {self._longest} bytes")
        if not end:
            return None
        line = self._take(size)
        if self._part is Part.SIZE:
            self._begin_chunk(line)
        else:
            self._left -= size
            if line == _BLANK_LINE:
                self._part = Part.HEAD
        return line

    def _content(self) -> bytes | None:
        piece = self._take(min(self._left, self.waiting))
        self._left -= len(piece)
        if not self._left:
            self._part = Part.HEAD if self._part is Part.BODY else Part.SIZE
        return piece or None

    def _begin_chunk(self, line: bytes) -> None:
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise BadFraming("the size of a chunk is not a hexadecimal number")
        size = int(found[1], 16)
        self._part = Part.CHUNK if size else Part.TRAILERS
        self._left = size + len(_BLANK_LINE) if size else self._longest

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece


LONGEST_HEAD_BYTES = 16_384
MOST_HEADS = 4
"""Blocks of headers that a connection remembers: a member sends heartbeats, commits and fetches on one, and their
lengths differ."""
NO_LINGER = struct.pack("ii", 1, 0)
INVALID = "this is not a valid HTTP request"

_POST = b"POST "
_VERSION = b" HTTP/1.1\r\n"
_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*(?=\r\n)", re.IGNORECASE)
_HEADER_NAME = re.compile(rb"\n([^\s:]+)[ \t]*:")


class _Parsed:
    """What the parser says of a head, or of a piece of a body in chunks."""

    def __init__(self) -> None:
        self.headers: Headers = []
        self.body = b""
        self.begun = 0
        self.has_headers = self.is_complete = self.stays_open = False
        self._parser = httptools.HttpRequestParser(self)

    def read(self, data: bytes) -> None:
        """Parse. Raises HttpParserError, or HttpParserUpgrade at the end of a head with that header."""
        self._parser.feed_data(data)

    def body_of(self, piece: bytes) -> bytes:
        """What a piece of a body in chunks contains. Raises HttpParserError."""
        self.body = b""
        self._parser.feed_data(piece)
        return self.body

    def end(self) -> None:
        """It is not used any more. It and its parser refer to each other."""
        del self._parser

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.begun += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers, which come after the body, are checked by the parser and dropped."""
        if not self.has_headers:
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """The end of the head."""
        self.has_headers = True
        self.stays_open = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self.body += body

    def on_message_complete(self) -> None:
        """The end of the request."""
        self.is_complete = True


class HttpProtocol(asyncio.Protocol):
    """One connection. The server watches it through `peers`; the other parameters are those of uvicorn."""

    def __init__(
        self,
        peers: HttpPeers,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self.application = config.loaded_app
        self.timeout_keep_alive = config.timeout_keep_alive
        self.loop = _loop or asyncio.get_running_loop()
        self.peer = Peer(peers.limits)
        self._peers = peers
        self._server = server_state
        self._state = {**app_state, PEER: self.peer}
        self._door: Door | None = app_state.get(DOOR)
        self._turnstile = None if self._door is None else self._door.admission.turnstile
        self._trusted = trusted_caller({"state": app_state})
        self._scope: dict[str, Any] = {}
        self._cut = Cutter(LONGEST_HEAD_BYTES)
        self._parsed: _Parsed | None = None
        """Of a body in chunks, as long as it comes."""
        self._heads: dict[bytes, Head] = {}
        """What remembered blocks of headers say; all have a length."""
        self._last: Head | None = None
        self._content = bytearray()
        """Of the body of an operation, what has come."""
        self._is_queued = False
        """A request has come, or part of one, and waits for its turn to be read."""
        self._held = b""
        """What came meanwhile."""
        self._receipt: Receipt | None = None
        """Of the request that waits; None: it is read when it comes."""
        self.request: Asked | Cycle | None = None
        """The one that is being answered, or was last, while its body still comes."""
        self._started = 0.0
        self._span: Any = None
        self._has_answered = self._is_parsing = self._is_closing = False
        self._reads = True
        self._writable = Writable()
        self._idle_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._own = copy_context()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Watch it, or refuse it if too many are open."""
        self.transport = cast(asyncio.Transport, transport)
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        if not self._peers.admit(self, client[0] if client else ""):
            self.transport.set_protocol(asyncio.Protocol())
            self.transport.write(TOO_MANY)
            self.transport.close()
            return
        self._server.connections.add(self)  # type: ignore[arg-type]
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "server": (str(own[0]), int(own[1])) if isinstance(own, tuple) else None,
            "client": client,
            "scheme": "http",
            "root_path": "",
            "state": self._state,
        }

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._server.connections.discard(self)  # type: ignore[arg-type]
        self._peers.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        self._is_closing = True
        self._forget_parsed()
        request, self.request = self.request, None
        if request is not None:
            request.gone()
        self._writable.resume()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, in its turn if it begins a request, and update what we expect from the peer."""
        begins = not (self._is_queued or self._is_busy() or self._cut.in_body or self._cut.waiting)
        if self._is_queued or (begins and not self._is_free()):
            self._held += data
            if len(self._held) > HIGH_WATER_BYTES:
                self._pause()
            if begins:
                self._queue()
        else:
            self._take(data, has_turn=begins)

    def _take(self, data: bytes, *, has_turn: bool) -> None:
        if self.peer.phase is Phase.WORK and self._is_repeated(data):
            return
        self._cut.received(data)
        self._parse(has_turn=has_turn)
        self.peer.received(len(data))

    def _is_free(self) -> bool:
        """One more request may be read now."""
        return self._turnstile is None or self._turnstile.is_free(Kind.READ)

    def _queue(self) -> None:
        """Wait for the turn to read a request, which is as old as it is now."""
        assert self._door is not None
        assert self._turnstile is not None
        self._is_queued = True
        self._receipt = self._door.admission.runtime.db.request_age.receive()
        self.peer.enter(Phase.WORK)
        holder = "" if self._last is None else self._last.token
        self._turnstile.later(Kind.READ, self._go_on, holder, again=self._has_answered)

    def _go_on(self) -> None:
        """It is the turn of a request that waited."""
        self._is_queued = False
        data, self._held = self._held, b""
        if self.transport.is_closing():
            return
        if data:
            self._take(data, has_turn=True)
        else:
            self._parse(has_turn=True)
        self._receipt = None
        if self._is_closing and not self._is_busy():
            self.transport.close()

    def _is_repeated(self, data: bytes) -> bool:
        """Begin a request that came alone and whole, with headers that were sent before: nothing has to be cut."""
        door = self._door
        if door is None or self.request is not None or self._writable.is_paused or self._cut.waiting:
            return False
        at = data.find(_VERSION)
        body = data.find(_END, at) + len(_END)
        said = self._heads.get(data[at + len(_VERSION) : body])
        if said is None or body + said.length != len(data) or not data.startswith(_POST):  # type: ignore[operator]
            return False
        route = door.operations.find(b"POST", data[len(_POST) : at])
        if route is None or not runtimes.is_running():
            return False
        self._last = said
        self._is_parsing = True
        try:
            self._ask(route, said, b"", data[body:])
        finally:
            self._is_parsing = False
        return True

    def eof_received(self) -> None:
        """The peer sends no more; the transport closes the connection."""

    def pause_writing(self) -> None:
        """Too much of what was sent is unread."""
        self._writable.pause()

    def resume_writing(self) -> None:
        """The peer has read most of it."""
        self.peer.has_read()
        self._writable.resume()
        self._parse()

    # Of the server

    def shutdown(self) -> None:
        """The server stops: close, after the answer to the request that has come, if there is one."""
        self._is_closing = True
        if self._is_busy() or self._is_queued:
            if isinstance(self.request, Cycle):
                self.request.close_after()
        elif not self.transport.is_closing():
            self.transport.close()

    # Of `kcoord.door.http.peers`

    def unread(self) -> int:
        """Bytes that could not be sent yet."""
        return self.transport.get_write_buffer_size()

    def is_our_turn(self) -> bool:
        """Reading is paused, or the peer waits for `100 Continue`, which is sent when the body is asked for."""
        if self.transport.is_closing() or not self._reads:
            return True
        return isinstance(self.request, Cycle) and self.request.waits_for_100_continue

    def give_up(self, reason: Reason) -> None:
        """Close it; what a peer does not read is dropped, by the kernel too."""
        if reason is Reason.WRITE:
            with contextlib.suppress(OSError):  # the peer may have just closed it
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self.transport.abort()
            return
        owed = self.peer.phase
        self._end(TOO_LATE[reason] if owed in (Phase.HEAD, Phase.BODY) else b"")

    def _refuse(self, reason: Reason, detail: str) -> None:
        """End the connection with 400, or without an answer if that of the same request was sent."""
        self._peers.note_closed(reason)
        is_answered = self.request is not None and self.request.is_answered
        self._end(b"" if is_answered else refusal(HTTPStatus.BAD_REQUEST, Error.INVALID_REQUEST, detail))

    def _end(self, answer: bytes) -> None:
        """End the connection, with `answer` unless another one has begun."""
        request, self.request = self.request, None
        self._is_closing = True
        if request is not None and not request.is_answered:
            if isinstance(request, Cycle) and request.is_begun:
                answer = b""
            request.gone()
        self.transport.write(answer)
        self.transport.close()

    # Requests

    def _is_busy(self) -> bool:
        return self.request is not None and not self.request.is_answered

    def _parse(self, *, has_turn: bool = False) -> None:
        """Begin the requests that have come, until one has to be waited for. `has_turn`: the first one may be read."""
        if self._is_parsing or self._is_queued:
            return
        self._is_parsing = True
        try:
            while not self.transport.is_closing():
                if self._cut.in_body:
                    piece = self._cut.body()
                    if piece is None:
                        break
                    self._take_body(piece)
                elif self._is_busy() or self._writable.is_paused:
                    if self._cut.waiting:
                        self._pause()
                    break
                elif self._cut.waiting and not has_turn and not self._is_free():
                    self._queue()
                    break
                else:
                    has_turn = False
                    self._resume()
                    found = self._cut.head()
                    if found is None:
                        break
                    self._begin(*found)
        except BadFraming as error:
            self._refuse(Reason.FRAMING if error.ambiguous else Reason.INVALID, str(error))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._refuse(Reason.INVALID, f"{INVALID}: {error}")
        finally:
            self._is_parsing = False
        self.peer.enter(self._phase())

    def _begin(self, method: bytes, target: bytes, version: bytes, head: bytes) -> None:
        """Begin to answer a request."""
        path, _, query = target.partition(b"?")
        route = None if self._door is None else self._door.operations.find(method, path)
        block = head[len(method) + 1 + len(target) + len(_VERSION) :]
        said = self._heads.get(block) if version == b"1.1" else None
        if said is None:
            said = self._read(method, version, head)
            if route is not None and said.length is not None and version == b"1.1":
                if len(self._heads) == MOST_HEADS:
                    del self._heads[next(iter(self._heads))]
                self._heads[block] = said
        self._last = said
        length = said.length
        if route is None or not runtimes.is_running():
            self._cut.expect(length)
            self._begin_asgi(said, method, path, query, version)
            if length == 0 and isinstance(self.request, Cycle):
                self.request.end_body()
            return
        body = None if length is None or route.operation.decoder is None else self._cut.take(length)
        self._cut.expect(length if body is None else 0)
        self._ask(route, said, query, body)

    def _ask(self, route: Route, said: Head, query: bytes, body: bytes | None) -> None:
        """Begin a request for an operation."""
        door = self._door
        assert door is not None
        admission, operation, scope = door.admission, route.operation, said.scope
        self._started = time.perf_counter()
        scope["path"], scope["raw_path"] = route.path, route.raw
        request_id = said.request_id or current.new_request_id()
        audited = None if self._trusted else scope
        about = current.RequestContext(request_id, route.template, scope=audited, is_hot=operation.is_hot)
        own = self._own.copy()
        if door.spans is not None:
            self._span = door.spans.begin(operation.endpoint.method, scope, own)
        self.request = asked = Asked(
            admission,
            route,
            query,
            said,
            about,
            self._received(said.patience_ms),
            own,
            self._server.tasks,
            self._answered,
            self._send_100_continue if said.expects else None,
            again=self._has_answered,
            trusted=self._trusted,
        )
        if body is None:
            self._content = bytearray()
            body = b"" if operation.decoder is None else None
        asked.begin(body)

    def _received(self, patience_ms: float) -> Receipt:
        receipt, self._receipt = self._receipt, None
        if receipt is not None:
            return receipt._replace(patience_ms=patience_ms)
        return runtimes.current().db.request_age.receive(patience_ms)

    def _send_100_continue(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _begin_asgi(self, said: Head, method: bytes, path: bytes, query: bytes, version: bytes) -> None:
        """Begin any other request."""
        receipt, self._receipt = self._receipt, None
        turnstile = self._turnstile
        is_free = turnstile is None or turnstile.is_free(Kind.PAGE)
        if receipt is None and not is_free and runtimes.is_running():  # its age counts from now
            receipt = runtimes.current().db.request_age.receive()
        scope = {
            **said.scope,
            "path": unquote(path.decode()),
            "raw_path": path,
            "query_string": query,
            "http_version": version.decode(),
            "method": method.decode(),
            "state": self._state.copy(),
            RECEIPT: receipt,
        }
        self.request = cycle = Cycle(
            scope,
            self.transport,
            self._writable,
            self._server.default_headers,
            self._resume,
            self._cycle_ended,
            keeps_alive=said.keeps_alive and not self._is_closing,
            expects=said.expects,
        )
        if turnstile is None or is_free:
            self._start(cycle)
        else:
            turnstile.later(Kind.PAGE, partial(self._start, cycle), said.token, again=self._has_answered)

    def _start(self, cycle: Cycle) -> None:
        task = self.loop.create_task(cycle.run(self.application), context=self._own.copy())
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    def _read(self, method: bytes, version: bytes, head: bytes) -> Head:
        """Parse a head. Raises BadFraming or HttpParserError."""
        if method == b"CONNECT":
            raise BadFraming("CONNECT is for proxies")
        self._parsed = parsed = _Parsed()
        try:
            parsed.read(head)
        except httptools.HttpParserUpgrade:
            # We stay with HTTP/1.1, but the parser would take a body for something else (RFC 9110, 7.8).
            self._forget_parsed()
            self._parsed = parsed = _Parsed()
            parsed.read(_UPGRADE.sub(b"", head))
        except httptools.HttpParserError:
            ambiguity = ambiguous_framing(version, (name.lower() for name in _HEADER_NAME.findall(head)))
            if ambiguity is not None:
                raise BadFraming(ambiguity, ambiguous=True) from None
            raise
        headers = parsed.headers
        length = body_length(version, headers)
        if parsed.begun != 1 or not parsed.has_headers or parsed.is_complete != (length == 0):
            raise BadFraming(INVALID)
        if length is not None:
            self._forget_parsed()
        scope = {**self._scope, "method": method.decode(), "http_version": version.decode(), "headers": headers}
        if any(name.startswith(b"x-forwarded-") for name, _ in headers):
            self._peers.proxies.tell(scope)
        return Head.of(
            scope,
            length,
            keeps_alive=version == b"1.1" and parsed.stays_open,
            expects=version == b"1.1" and any(n == b"expect" and v.lower() == b"100-continue" for n, v in headers),
            last=self._last,
        )

    def _forget_parsed(self) -> None:
        if self._parsed is not None:
            self._parsed.end()
            self._parsed = None

    def _take_body(self, piece: bytes) -> None:
        """A piece of a body, as the cutter finds it."""
        has_come = not self._cut.in_body
        if self._parsed is not None:
            piece = self._parsed.body_of(piece)
            if self._parsed.begun != 1 or self._parsed.is_complete != has_come:
                raise BadFraming(INVALID)
            if has_come:
                self._forget_parsed()
        request = self.request
        if request is None or request.is_answered:
            if has_come:
                self.request = None
            return
        if isinstance(request, Cycle):
            request.take(piece)
            if request.unread > HIGH_WATER_BYTES:
                self._pause()
            if has_come:
                request.end_body()
            return
        if request.operation.decoder is None:
            return
        self._content += piece
        if len(self._content) > request.longest_body:
            self._content = bytearray()
            request.too_large()
        elif has_come:
            body, self._content = bytes(self._content), bytearray()
            request.came(body)

    # Answers

    def _answered(self, asked: Asked, status: int, headers: Headers | None, content: bytes) -> None:
        """An operation has its answer: count it, write its line, and send it."""
        route, door, seconds = asked.route, self._door, time.perf_counter() - self._started
        assert door is not None
        method = route.operation.endpoint.method
        if status == 200:
            route.answered.inc()
        else:
            metrics.requests(route.template, method, status).inc()
        route.seconds.observe(seconds)
        if door.spans is not None:
            door.spans.end(self._span, method, asked.about, route.name)
        if not door.lines.skips(asked.about):
            door.lines.write(method, route.raw, asked.about, seconds)
        transport = self.transport
        if transport.is_closing() or asked is not self.request:
            return
        stays_open = asked.head.keeps_alive and not self._is_closing
        request_id = asked.about.request_id.encode()
        if headers is None:
            start = door.success(self._server.default_headers)
            end = b"\r\n\r\n" if stays_open else b"\r\nconnection: close\r\n\r\n"
            transport.write(
                b"%b%d\r\ncontent-type: application/json\r\nx-request-id: %b%b%b"
                % (start, len(content), request_id, end, content)
            )
        else:
            close = (b"connection", b"close")
            stays_open = stays_open and close not in headers
            found = [*self._server.default_headers, *headers, (current.HEADER, request_id)]
            if not stays_open and close not in headers:
                found.append(close)
            transport.write(answer_head(status, found) + content)
        if not stays_open:
            transport.close()
        self._rest()

    def _cycle_ended(self) -> None:
        if not self.transport.is_closing():
            self._rest()

    def _rest(self) -> None:
        """The peer may continue with its next request, which may have arrived already."""
        self._has_answered = True
        self._idle_since = self.loop.time()
        if self._timer is None:
            self._timer = self.loop.call_later(self.timeout_keep_alive, self._look_at_rest)
        cut = self._cut
        if not cut.in_body:
            self.request = None
        if not self._is_parsing and (cut.in_body or cut.waiting or not self._reads):
            self._resume()
            self._parse()

    def _look_at_rest(self) -> None:
        """Close it if nothing has come for a while. Restarting the timer with each request would take longer."""
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if self._is_queued or self._is_busy() or self._cut.in_body or self._cut.waiting:
            left = self.timeout_keep_alive
        if left <= 0:
            self._timer = None
            self.transport.close()
        else:
            self._timer = self.loop.call_later(left, self._look_at_rest)

    def _pause(self) -> None:
        if self._reads:
            self._reads = False
            self.transport.pause_reading()

    def _resume(self) -> None:
        if not self._reads and not self.transport.is_closing():
            self._reads = True
            self.transport.resume_reading()

    def _phase(self) -> Phase:
        """What is expected of the peer."""
        if self.transport.is_closing() or self._is_queued:
            return Phase.WORK
        if self._cut.in_body:
            return Phase.BODY if self._is_busy() else Phase.REST
        if self._is_busy() or not self._reads:
            return Phase.WORK
        if self._cut.waiting:
            return Phase.HEAD
        return Phase.WORK if self._has_answered else Phase.SILENT
