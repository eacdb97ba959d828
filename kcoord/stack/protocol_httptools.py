"""Uvicorn's HTTP/1.1 on httptools, strictly, and with one request at a time.

Uvicorn parses whatever has come, with a queue of requests that has no bound, and has no bound for heads either; it lets
trailers change the headers of a request that is being answered, and takes the body of a request with `Upgrade` for
another request. So the parser is given what `kcoord.http.cutting` cuts off, and `kcoord.http.framing` checks more.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kcoord.database.request_age import RECEIPT, Receipt
from kcoord.http.cutting import Cutter
from kcoord.http.framing import BadFraming, ambiguous_framing, body_length
from kcoord.http.peers import Peers, Phase, Reason
from kcoord.http.pending import Pending
from kcoord.http.short_path import STATE, ShortPath
from kcoord.process import runtime as runtimes
from kcoord.process.turnstile import AGAIN
from kcoord.stack.cycle import Cycle
from kcoord.stack.protocol import INVALID, LONGEST_HEAD_BYTES, PeerProtocol
from kcoord.stack.shortcut import Held, Shortcut

_UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*(?=\r\n)", re.IGNORECASE)
_HEADER_NAME = re.compile(rb"\n([^\s:]+)[ \t]*:")


MOST_AT_ONCE = 16
"""Pipelined requests of one connection that the short path answers before others have their turn."""


class HttpToolsPeerProtocol(PeerProtocol, HttpToolsProtocol):
    """One connection."""

    def __init__(self, peers: Peers, **of_uvicorn: Any) -> None:
        super().__init__(peers, **of_uvicorn)
        self._cut = Cutter(LONGEST_HEAD_BYTES)
        self._shortcut: Shortcut | None = None
        self._held: Held | None = None
        self._is_queued = self._is_its_turn = False
        """The request that is held waits for its turn to begin; it has come."""
        self._has_answered = False
        self._repeated_at = 0.0
        self._is_declined = False
        """The short path has been asked already for the request that comes next."""
        self._renew_parser()

    on_url = None  # type: ignore[assignment]  # the cutter has found it already

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch it, or refuse it if too many are open."""
        super().connection_made(transport)
        path = self.app_state.get(STATE)
        if path is not None and not self.root_path:
            scope = {**self._scope(b"POST", b"1.1", []), "state": self.app_state}
            self._shortcut = Shortcut(path, self.app, scope)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._release()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: a request that is held is answered, though its body may still be coming."""
        has_come = self._is_queued
        self._release()
        if has_come:
            self._parse()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, and update what we expect from the peer."""
        if self.peer.phase is Phase.WORK and self._repeats(data):
            return
        self._unset_keepalive_if_required()
        self._cut.received(data)
        self._parse()
        self.peer.enter(self._phase())
        self.peer.received(len(data))

    def on_response_complete(self) -> None:
        """The peer may continue with its next request, which may have arrived already."""
        super().on_response_complete()
        self._parse()
        self.peer.enter(self._phase())

    def timeout_keep_alive_handler(self) -> None:
        """Nothing has come for a while, or since then a request that was like the one before."""
        left = self._repeated_at + self.timeout_keep_alive - self.loop.time()
        if self.cycle is not None and not self.cycle.response_complete:
            left = self.timeout_keep_alive
        if left <= 0:
            super().timeout_keep_alive_handler()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        """The parser saw the first byte of a request."""
        self._begun += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; trailers, which come after the body, are checked by the parser and dropped."""
        if not self._has_headers:
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """The parser saw the end of the head."""
        self._has_headers = True
        self._may_stay = self.parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or isinstance(cycle, Pending):
            return
        cycle.waiting_for_100_continue = False
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """The parser saw the end of the request."""
        self._is_complete = True

    def _renew_parser(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self._expect_head()

    def _expect_head(self) -> None:
        self.headers = []
        self._begun = 0
        self._has_headers = self._is_complete = self._may_stay = False

    def _parse(self) -> None:
        """Parse what is there, up to the end of the request that is being answered."""
        answered = 0
        try:
            while not self.transport.is_closing():
                if self._is_queued:
                    if self._cut.waiting > HIGH_WATER_LIMIT:
                        self.flow.pause_reading()
                    return
                if self._held is not None and self._shortcut is not None:
                    if not self._end_held(self._held, self._shortcut.path):
                        return
                    answered += 1
                    if answered >= MOST_AT_ONCE and self._cut.waiting:
                        self.flow.pause_reading()
                        self.loop.call_soon(self._continue)
                        return
                elif self._cut.in_body:
                    piece = self._cut.body()
                    if piece is None:
                        return
                    self._take_body(piece)
                elif self.cycle is not None and not self.cycle.response_complete:
                    if self._cut.waiting:
                        self.flow.pause_reading()
                    return
                else:
                    found = self._cut.head()
                    if found is None:
                        return
                    self._unset_keepalive_if_required()
                    self._begin(*found)
        except BadFraming as error:
            self.refuse(Reason.FRAMING if error.ambiguous else Reason.INVALID, str(error))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.refuse(Reason.INVALID, f"{INVALID}: {error}")

    def _repeats(self, data: bytes) -> bool:
        """Answer a request that came alone and whole, with the headers of the one before, if the short path can.

        The peer was expected to begin a request, or waits for an answer.
        """
        shortcut = self._shortcut
        if shortcut is None or self.flow.write_paused or (self.cycle is not None and not self.cycle.response_complete):
            return False
        found = shortcut.repeated(data)
        if found is None:
            return False
        route, said, body = found
        if route.served.can_begin and not self._peers.starts.is_free():
            return False  # it is held until it may begin
        answer = shortcut.path.answer(route, said, body, self.server_state.default_headers, None, self._wait)
        if answer is None:
            self._is_declined = True
            return False
        self._repeated_at = self.loop.time()  # restarting the timer would take longer
        if isinstance(answer, bytes):
            self.transport.write(answer)  # and it stays open: the one before said the same
            self.server_state.total_requests += 1
        return True

    def _wait(self, pending: Pending) -> None:
        """A request was begun, and is answered later."""
        self.cycle = pending
        pending.wait(self._answered, self.tasks)

    def _answered(self, pending: Pending, answer: bytes) -> None:
        """A request that was begun has its answer; the peer may continue."""
        pending.response_started = pending.response_complete = True
        self._has_answered = True
        if pending.disconnected or self.transport.is_closing():
            return
        self.transport.write(answer)
        if not pending.keep_alive:
            self.transport.close()
        if self._cut.waiting or self.timeout_keep_alive_task is None:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1
            self._repeated_at = self.loop.time()

    def _continue(self) -> None:
        """Others had their turn."""
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._parse()
            self.peer.enter(self._phase())

    def _begin(self, method: bytes, target: bytes, version: bytes, head: bytes) -> None:
        """Start to answer a request, or hold it for the short path."""
        shortcut, said = self._shortcut, None
        route = None if shortcut is None or self._is_declined else shortcut.route(method, target, version)
        self._is_declined = False
        if shortcut is None or route is None:
            self._start(method, target, version, self._parse_head(method, version, head))
            return
        said = shortcut.known(target, head)
        is_parsed = said is None
        if said is None:
            length = self._parse_head(method, version, head)
            said = shortcut.learn(target, head, self.headers, length, keeps_alive=self._may_stay)
            if said is None:
                self._start(method, target, version, length)
                return
        began = shortcut.path.begin() if self._cut.waiting < said.length else None
        self._held = Held(method, target, version, head, is_parsed, route, said, began)

    def _end_held(self, held: Held, path: ShortPath) -> bool:
        """Answer the request that is held, or let it go the usual way; False: the rest of its body has not come."""
        answer = body = None
        if not self.flow.write_paused:
            body = self._cut.begins_with(held.said.length)
            if body is not None:
                if self._queue(held, path):
                    return False
                headers = self.server_state.default_headers
                answer = path.answer(held.route, held.said, body, headers, held.began, self._wait)
            elif path.knows(held.said):
                return False
        if answer is None or body is None:
            self._release()
            return True
        self._held = None
        self._cut.skip(held.said.length)
        if held.is_parsed and body:
            self.parser.feed_data(body)
        self.peer.enter(Phase.WORK)
        if isinstance(answer, bytes):
            self._has_answered = True
            self.transport.write(answer)
            if not held.said.keeps_alive:
                self.transport.close()
            super().on_response_complete()
        return True

    def _queue(self, held: Held, path: ShortPath) -> bool:
        """A request that is held must wait for its turn to begin, with those that other connections have sent."""
        if not held.route.served.can_begin or self._is_its_turn or self._peers.starts.is_free():
            return False
        if held.began is None:
            self._held = held._replace(began=path.begin())
        self._is_queued = True
        self._peers.starts.later(self._take_turn)
        return True

    def _take_turn(self) -> None:
        """The request that is held may begin, unless it went the usual way meanwhile."""
        if not self._is_queued:
            return
        self._is_queued, self._is_its_turn = False, True
        try:
            self._parse()
        finally:
            self._is_its_turn = False
        self.peer.enter(self._phase())

    def _release(self) -> None:
        """A request that is held goes the usual way."""
        held = self._held
        self._is_queued = False
        if held is not None:
            self._held = None
            if not held.is_parsed:
                self._parse_head(held.method, held.version, held.head)
            began = None if held.began is None else held.began.receipt
            self._start(held.method, held.target, held.version, held.said.length, began)

    def _start(
        self, method: bytes, target: bytes, version: bytes, length: int | None, receipt: Receipt | None = None
    ) -> None:
        """Start the application for a request whose head was parsed. `receipt`: None if it has come just now."""
        path, _, query = target.partition(b"?")
        again = self.cycle is not None or self._has_answered
        self.scope = {
            **self._scope(method, version, self.headers),  # type: ignore[typeddict-item]
            "path": self.root_path + unquote(path.decode()),
            "raw_path": self.root_path.encode() + path,
            "query_string": query,
            "state": self.app_state.copy(),
            RECEIPT: receipt,
            AGAIN: again,
        }
        self.cycle = Cycle.of(self, self.scope, keep_alive=version == b"1.1" and self._may_stay)
        self._cut.expect(length)
        if self._is_complete:
            self._complete()
        is_hot = self._shortcut is not None and self._shortcut.path.is_hot(path)
        starts = self._peers.hot_starts if is_hot else self._peers.starts
        if starts.is_free():
            self._start_asgi_task(self.cycle, self.app)
            return
        if receipt is None and runtimes.is_running():  # its age counts from now
            self.scope[RECEIPT] = runtimes.current().db.request_age.receive()  # type: ignore[literal-required]
        starts.later(partial(self._start_asgi_task, self.cycle, self.app), again=again)

    def _scope(self, method: bytes, version: bytes, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
        """What ASGI says about a request, without its target."""
        return {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version.decode(),
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": method.decode(),
            "root_path": self.root_path,
            "headers": headers,
        }

    def _parse_head(self, method: bytes, version: bytes, head: bytes) -> int | None:
        """Parse a head; returns the length of the body, None if it comes in chunks.

        Raises BadFraming or HttpParserError.
        """
        if method == b"CONNECT":
            raise BadFraming("CONNECT is for proxies")
        self._expect_head()
        try:
            self.parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            # We stay with HTTP/1.1, but the parser would take a body for something else (RFC 9110, 7.8).
            self._renew_parser()
            self.parser.feed_data(_UPGRADE.sub(b"", head))
        except httptools.HttpParserError:
            ambiguity = ambiguous_framing(version, (name.lower() for name in _HEADER_NAME.findall(head)))
            if ambiguity is not None:
                raise BadFraming(ambiguity, ambiguous=True) from None
            raise
        length = body_length(version, self.headers)
        if self._begun != 1 or not self._has_headers or self._is_complete != (length == 0):
            raise BadFraming(INVALID)
        return length

    def _take_body(self, piece: bytes) -> None:
        """Parse a piece of the body."""
        self.parser.feed_data(piece)
        if self._begun != 1 or self._is_complete == self._cut.in_body:
            raise BadFraming(INVALID)
        if self._is_complete:
            self._complete()

    def _complete(self) -> None:
        """The request has come to its end."""
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.message_event.set()

    def _phase(self) -> Phase:
        if self.transport.is_closing():
            return Phase.WORK
        answered = self.cycle is None or self.cycle.response_complete
        if self._held is not None:
            return Phase.WORK if self._is_queued else Phase.BODY
        if self._cut.in_body:
            return Phase.REST if answered else Phase.BODY
        if not answered:
            return Phase.WORK
        if self.peer.phase is Phase.HEAD or self._cut.waiting:
            return Phase.HEAD
        return Phase.SILENT if self.cycle is None and not self._has_answered else Phase.WORK
