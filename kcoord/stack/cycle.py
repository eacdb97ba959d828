"""One request and its answer over ASGI, for the parser of httptools."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle


class Cycle(RequestResponseCycle):
    """One request and its answer. Unlike uvicorn's, it does not send chunks to a client of HTTP/1.0."""

    _until_close = False

    @classmethod
    def of(cls, protocol: HttpToolsProtocol, scope: HTTPScope, *, keep_alive: bool) -> Cycle:
        """A request on a connection."""
        return cls(
            scope=scope,
            transport=protocol.transport,
            flow=protocol.flow,
            logger=protocol.logger,
            access_logger=protocol.access_logger,
            access_log=protocol.access_log,
            default_headers=protocol.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=scope["http_version"] == "1.1"
            and any(name == b"expect" and value.lower() == b"100-continue" for name, value in scope["headers"]),
            keep_alive=keep_alive,
            on_response=protocol.on_response_complete,
        )

    async def send(self, message: Any) -> None:
        """As in ASGI."""
        if self.scope["http_version"] == "1.0":
            self._measure(message)
        await super().send(message)

    def _measure(self, message: Any) -> None:
        """A body whose length was not announced ends with the connection: each part is all that is expected."""
        if message["type"] == "http.response.start":
            self._until_close = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self._until_close:
                self.chunked_encoding = False
        elif self._until_close:
            self.expected_content_length = len(message.get("body", b""))
