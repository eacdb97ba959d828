"""Uvicorn's HTTP/1.1 on h11, with the rules of `kcoord.http.peers` and `kcoord.http.framing`."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kcoord.http.framing import ambiguous_framing
from kcoord.http.peers import TOO_LATE, TOO_MANY, Peer, Peers, Phase, Reason, refusal
from kcoord.protocol.errors import Error

LONGEST_HEAD_BYTES = 16_384
NO_LINGER = struct.pack("ii", 1, 0)


class StrictConnection(h11.Connection):
    """h11 follows Transfer-Encoding even if Content-Length is present too; here that is an error of the peer.

    `ambiguity`: what was wrong, after next_event raised RemoteProtocolError for it.
    """

    ambiguity: str | None = None

    def next_event(self) -> Any:
        """As in h11. Raises RemoteProtocolError."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.ambiguity = ambiguous_framing(event.http_version, (name for name, _ in event.headers))
            if self.ambiguity is not None:
                raise h11.RemoteProtocolError(self.ambiguity, error_status_hint=HTTPStatus.BAD_REQUEST)
        return event


class PeerProtocol(H11Protocol):
    """One connection. The server watches it through `peers`."""

    conn: StrictConnection

    def __init__(self, peers: Peers, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._peers = peers
        self.peer = Peer(peers.limits)
        self.conn = StrictConnection(h11.SERVER, LONGEST_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch it, or refuse it if too many are open."""
        if self._peers.admit(self):
            super().connection_made(transport)
            return
        transport.set_protocol(asyncio.Protocol())
        transport.write(TOO_MANY)
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._peers.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, and update what we expect from the peer."""
        super().data_received(data)
        self.peer.enter(self._phase())
        self.peer.received(len(data))

    def on_response_complete(self) -> None:
        """The peer may continue with its next request, which may have arrived already."""
        super().on_response_complete()
        self.peer.enter(self._phase())

    def resume_writing(self) -> None:
        """The peer has read most of what was buffered."""
        self.peer.has_read()
        super().resume_writing()

    def unread(self) -> int:
        """Bytes that could not be sent yet."""
        return self.transport.get_write_buffer_size()

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
        self._close(TOO_LATE[reason] if owed in (Phase.HEAD, Phase.BODY) else b"")

    def send_400_response(self, msg: str) -> None:
        """Like uvicorn's, in the same form as other errors, and also for a request whose response has begun."""
        ambiguity = self.conn.ambiguity
        self._peers.note_closed(Reason.INVALID if ambiguity is None else Reason.FRAMING)
        answer = refusal(HTTPStatus.BAD_REQUEST, Error.INVALID_REQUEST, ambiguity or msg)
        self._close(b"" if self.peer.phase is Phase.REST else answer)

    def shutdown(self) -> None:
        """The server stops. Unlike uvicorn's, it leaves a connection alone that is already closing."""
        if not self.transport.is_closing():
            super().shutdown()

    def _close(self, answer: bytes) -> None:
        """End the connection, with `answer` unless another one has begun."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                answer = b""
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(answer)
        self.transport.close()

    def _phase(self) -> Phase:
        if self.transport.is_closing():
            return Phase.WORK
        theirs = self.conn.their_state
        if theirs is h11.SEND_BODY:
            return Phase.REST if self.cycle.response_complete else Phase.BODY
        if theirs is not h11.IDLE:
            return Phase.WORK
        if self.peer.phase is Phase.HEAD or self.conn.trailing_data[0]:
            return Phase.HEAD
        return Phase.SILENT if self.cycle is None else Phase.WORK
