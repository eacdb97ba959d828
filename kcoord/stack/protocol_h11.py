"""Uvicorn's HTTP/1.1 on h11: pure Python, slower than `kcoord.stack.protocol_httptools`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from kcoord.http.framing import ambiguous_framing
from kcoord.http.peers import Peers, Phase, Reason
from kcoord.stack.protocol import INVALID, LONGEST_HEAD_BYTES, PeerProtocol


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


class H11PeerProtocol(PeerProtocol, H11Protocol):
    """One connection."""

    conn: StrictConnection

    def __init__(self, peers: Peers, **of_uvicorn: Any) -> None:
        super().__init__(peers, **of_uvicorn)
        self.conn = StrictConnection(h11.SERVER, LONGEST_HEAD_BYTES)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, and update what we expect from the peer."""
        super().data_received(data)
        self.peer.enter(self._phase())
        self.peer.received(len(data))

    def on_response_complete(self) -> None:
        """The peer may continue with its next request, which may have arrived already."""
        super().on_response_complete()
        self.peer.enter(self._phase())

    def send_400_response(self, msg: str) -> None:
        """Like uvicorn's, in the same form as other errors, and also for a request whose response has begun."""
        ambiguity = self.conn.ambiguity
        self.refuse(Reason.INVALID if ambiguity is None else Reason.FRAMING, ambiguity or INVALID)

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
