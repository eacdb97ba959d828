"""One request that is not for an operation, and its answer, over ASGI."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any

import structlog

from kcoord.door.http.door import Headers, answer_head

log = structlog.get_logger(__name__)

HIGH_WATER_BYTES = 65_536
"""Of a body that the application has not read, or of requests that wait: more is not read from the peer."""

CLOSING_SECONDS = 1.0
"""How long an application may continue after its answer before it learns that the client is gone. Django takes that for
an abort: it cancels what it still does for the request, and the error refers to the request in a cycle."""

_BAD_NAME = re.compile(rb"[^!#$%&'*+.^_`|~0-9A-Za-z-]")
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_NO_BODY = (204, 304)


class Writable:
    """Whether the peer reads what is sent. `is_paused`: too much is unread."""

    def __init__(self) -> None:
        self.is_paused = False
        self._event = asyncio.Event()
        self._event.set()

    def pause(self) -> None:
        """Too much is unread."""
        self.is_paused = True
        self._event.clear()

    def resume(self) -> None:
        """The peer has read most of it, or is gone."""
        self.is_paused = False
        self._event.set()

    async def wait(self) -> None:
        """Until it is not paused."""
        await self._event.wait()


class Cycle:
    """One request and its answer. Source: ASGI, "HTTP & WebSocket", 2.3.

    Parameters: `resume`, reads on; `ended`, called when the answer is complete. A client of HTTP/1.0 gets no chunks: a
    body without a length ends with the connection.
    """

    def __init__(
        self,
        scope: dict[str, Any],
        transport: asyncio.Transport,
        writable: Writable,
        defaults: Headers,
        resume: Callable[[], None],
        ended: Callable[[], None],
        *,
        keeps_alive: bool,
        expects: bool,
    ) -> None:
        self._scope = scope
        self._transport = transport
        self._writable = writable
        self._defaults = defaults
        self._resume = resume
        self._finished = ended
        self._keeps_alive = keeps_alive
        self.waits_for_100_continue = expects
        self._body = bytearray()
        self._has_come = self._is_gone = False
        self._something_came = asyncio.Event()
        self._has_ended = asyncio.Event()
        self.is_begun = self.is_answered = False
        self._is_chunked = False
        self._left: int | None = None
        """Bytes of the answer that are still to be sent; None: not known."""

    async def run(self, application: Any) -> None:
        """Let the application answer."""
        try:
            await application(self._scope, self._receive, self._send)
        except Exception:
            log.exception("request_failed", path=self._scope["path"])
        finally:
            self._has_ended.set()
            if not self.is_answered and not self._is_gone:
                self._fail()

    def _fail(self) -> None:
        """The application has not answered."""
        if not self.is_begun:
            log.error("request_not_answered", path=self._scope["path"])
            self.is_begun = True
            text = b"Internal Server Error"
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
            self._transport.write(answer_head(500, [*self._defaults, *headers, (b"connection", b"close")]) + text)
        self._keeps_alive = False
        self._complete()

    # What the connection says

    @property
    def unread(self) -> int:
        """Bytes of the body that the application has not read."""
        return len(self._body)

    def take(self, piece: bytes) -> None:
        """A part of the body."""
        if not self.is_answered:
            self.waits_for_100_continue = False
            self._body += piece
            self._something_came.set()

    def end_body(self) -> None:
        """The body has come to its end."""
        self._has_come = True
        self._something_came.set()

    def gone(self) -> None:
        """The client went away, or is given up."""
        self._is_gone = True
        self._something_came.set()

    def close_after(self) -> None:
        """The answer ends the connection."""
        self._keeps_alive = False

    # ASGI

    async def _receive(self) -> dict[str, Any]:
        if self.waits_for_100_continue and not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waits_for_100_continue = False
        if not self._is_gone and not self.is_answered:
            self._resume()
            await self._something_came.wait()
            self._something_came.clear()
        if self.is_answered and not self._is_gone:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._has_ended.wait()
        if self._is_gone or self.is_answered:
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body), bytearray()
        return {"type": "http.request", "body": body, "more_body": not self._has_come}

    async def _send(self, message: Any) -> None:
        if self._writable.is_paused and not self._is_gone:
            await self._writable.wait()
        if self._is_gone:
            return
        expected = "http.response.body" if self.is_begun else "http.response.start"
        if self.is_answered or message["type"] != expected:
            raise RuntimeError(f"{message['type']} was sent instead of {expected}")
        if self.is_begun:
            self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            self._send_head(message["status"], [(name.lower(), value) for name, value in message.get("headers", ())])

    def _send_head(self, status: int, headers: Headers) -> None:
        for name, value in headers:
            if _BAD_NAME.search(name) or _BAD_VALUE.search(value):
                raise RuntimeError(f"header {name!r} contains what no header may contain")
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection" and b"close" in [part.strip().lower() for part in value.split(b",")]:
                self._keeps_alive = False
        has_no_body = self._scope["method"] == "HEAD" or status in _NO_BODY
        if has_no_body:
            self._left = 0
        elif self._left is None:
            self._is_chunked = self._scope["http_version"] != "1.0"
            if self._is_chunked:
                headers.append((b"transfer-encoding", b"chunked"))
            else:
                self._keeps_alive = False
        if not self._keeps_alive and all(name != b"connection" for name, _ in headers):
            headers.append((b"connection", b"close"))
        self.is_begun = True
        self.waits_for_100_continue = False
        self._transport.write(answer_head(status, [*self._defaults, *headers]))

    def _send_body(self, body: bytes, *, more: bool) -> None:
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._transport.write(chunk if more else chunk + b"0\r\n\r\n")
        elif self._scope["method"] != "HEAD":
            if self._left is not None:
                self._left -= len(body)
                if self._left < 0 or (self._left and not more):
                    raise RuntimeError("the body of the answer is not as long as its content-length")
            self._transport.write(body)
        if not more:
            self._complete()

    def _complete(self) -> None:
        self.is_answered = True
        self._something_came.set()
        if not self._keeps_alive:
            self._transport.close()
        self._finished()
