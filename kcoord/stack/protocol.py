"""The rules of `kcoord.http.peers` for a connection, mixed into uvicorn's protocol by `protocol_httptools`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from http import HTTPStatus
from typing import Any

from kcoord.http.peers import TOO_LATE, TOO_MANY, Peer, Peers, Phase, Reason, refusal
from kcoord.protocol.errors import Error
from kcoord.quotas.connections import PEER

LONGEST_HEAD_BYTES = 16_384
NO_LINGER = struct.pack("ii", 1, 0)
INVALID = "this is not a valid HTTP request"


class PeerProtocol(asyncio.Protocol):
    """One connection. The server watches it through `peers`. Mixed in before a protocol of uvicorn."""

    transport: Any
    flow: Any
    cycle: Any
    app_state: dict[str, Any]

    def __init__(self, peers: Peers, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._peers = peers
        self.peer = Peer(peers.limits)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch it, or refuse it if too many are open."""
        address = transport.get_extra_info("peername")
        if self._peers.admit(self, str(address[0]) if isinstance(address, tuple) else ""):
            self.app_state = {**self.app_state, PEER: self.peer}
            super().connection_made(transport)
            return
        transport.set_protocol(asyncio.Protocol())
        transport.write(TOO_MANY)
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._peers.forget(self)
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """The peer has read most of what was buffered."""
        self.peer.has_read()
        super().resume_writing()

    def unread(self) -> int:
        """Bytes that could not be sent yet."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def is_our_turn(self) -> bool:
        """Reading is paused, or the peer waits for `100 Continue`, which is sent when the body is asked for."""
        if self.transport.is_closing():
            return True
        return self.flow.read_paused or (self.cycle is not None and self.cycle.waiting_for_100_continue)

    def give_up(self, reason: Reason) -> None:
        """Close it; what a peer does not read is dropped, by the kernel too."""
        if reason is Reason.WRITE:
            with contextlib.suppress(OSError):  # the peer may have just closed it
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self.transport.abort()
            return
        owed = self.peer.phase
        self.end(TOO_LATE[reason] if owed in (Phase.HEAD, Phase.BODY) else b"")

    def refuse(self, reason: Reason, detail: str) -> None:
        """End the connection with 400, or without an answer if that of the same request has begun."""
        self._peers.note_closed(reason)
        answer = refusal(HTTPStatus.BAD_REQUEST, Error.INVALID_REQUEST, detail)
        self.end(b"" if self.peer.phase is Phase.REST else answer)

    def shutdown(self) -> None:
        """The server stops. Unlike uvicorn's, it leaves a connection alone that is already closing."""
        if not self.transport.is_closing():
            super().shutdown()  # type: ignore[misc]

    def end(self, answer: bytes) -> None:
        """End the connection, with `answer` unless another one has begun."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                answer = b""
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(answer)
        self.transport.close()
