"""One connection of a Kafka client: frames in, one request after the other, answers in their order.

What has to be bounded is bounded before it is read: the size of a frame, what is read ahead, what all connections
hold together. What a peer owes is in `kcoord.door.http.peers`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import structlog

from kcoord.door.http.peers import Peer, Phase, Reason
from kcoord.door.kafka.api import HangUp, Session
from kcoord.door.kafka.codec import Frame, Malformed
from kcoord.door.kafka.dispatch import SIZE, InTask, Receipt, Waiting, may_wait, respond
from kcoord.requests.turnstile import Kind, Turn

log = structlog.get_logger(__name__)

LARGEST_BEFORE_LOGIN = 16_384
"""Bytes of a request of a connection that has not logged in."""
SMALL = 4_096
"""Bytes of a request that every connection may have at any time, whatever others hold."""
READ_AHEAD = 65_536
"""Bytes of later requests that are read while one is being answered."""


class Connection(asyncio.Protocol):
    """The protocol object of one connection."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._buffer = bytearray()
        self._size = 0
        """Of the frame that is being read; 0: not known yet."""
        self._held = 0
        """Bytes reserved for it."""
        self._turn: Turn | None = None
        """It waits for room for them."""
        self._task: asyncio.Future[Any] | None = None
        """What the request that is being answered waits for."""
        self._transport: asyncio.Transport | None = None
        self._is_unread = False
        """Too much of what was sent."""
        self._reads = True
        self._said = False
        self._silence: asyncio.TimerHandle | None = None
        """Nothing is read until it ends."""
        self._is_queued = False
        """It waits for its turn to be read."""
        self._receipt: Receipt = None
        """Of the request that waited for its turn; None: it is read when it comes."""
        self.waits = False
        """The request that is being answered may be parked."""
        self.peer = Peer(gateway.peers.limits, Phase.LOGIN)
        self.session = Session(self.peer, "", 0, "", 0)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("", 0)
        own = transport.get_extra_info("sockname") or ("", 0)
        self.session = Session(self.peer, str(peer[0]), peer[1], str(own[0]), own[1])
        self._gateway.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """What the peer waits for is ended, what it only asked for is carried out."""
        self._gateway.closed(self)
        self._transport = None
        if self._silence is not None:
            self._silence.cancel()
        self._buffer.clear()
        if self._turn is not None:
            self._gateway.bytes.leave(self._turn)
            self._turn = None
        if self._task is None:
            self._release()
        elif self.waits:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes of the peer."""
        has_turn = False
        if self.peer.phase is Phase.IDLE and not self._buffer and self._silence is None:
            has_turn = self._gateway.turnstile.is_free(Kind.READ)
            if has_turn and self._is_whole(data):
                self._begin(data[SIZE.size :], None)
                self.peer.waited = 0.0
                return
        self._buffer += data
        if self._task is None and not self._is_queued:
            self._advance(has_turn=has_turn)
        elif len(self._buffer) > READ_AHEAD:
            self._pause()
        self.peer.received(len(data))

    def _is_whole(self, data: bytes) -> bool:
        """It is a small request that came alone, as most heartbeats do: nothing has to be kept."""
        size = len(data) - SIZE.size
        if self._is_unread or not 0 < size <= SMALL or size != int.from_bytes(data[: SIZE.size], "big"):
            return False
        return self._transport is not None and not self._transport.is_closing()

    def pause_writing(self) -> None:
        """The peer does not read what we send."""
        self._is_unread = True

    def resume_writing(self) -> None:
        """It has read most of it."""
        self._is_unread = False
        self.peer.has_read()
        if self._task is None:
            self._advance()

    # Requests

    def advance(self) -> None:
        """Others have given back what this connection waited for."""
        if self._task is None and self._transport is not None:
            self._advance()

    def _advance(self, *, has_turn: bool = False) -> None:
        """Answer what can be answered at once; begin the next request if all of it is here. `has_turn`: to be read."""
        while not self._is_queued and self._next(has_turn):
            has_turn = False

    def _queue(self) -> None:
        """Wait for the turn of the next request, which is as old as it is now."""
        self._is_queued = True
        self._receipt = self._gateway.runtime.db.request_age.receive()
        if len(self._buffer) > READ_AHEAD:
            self._pause()
        again = bool(self.session.token)
        self._gateway.turnstile.later(Kind.READ, self._go_on, self.session.who, again=again)

    def _go_on(self) -> None:
        """It is its turn."""
        self._is_queued = False
        if self._task is None and self._transport is not None:
            self._advance(has_turn=True)
        self._receipt = None

    def _next(self, has_turn: bool) -> bool:
        """Whether a request was answered at once, so that there may be another."""
        if self._transport is None or self._transport.is_closing() or self._is_unread:
            return False
        if self._silence is not None:
            return False
        if not self._size and not self._read_size():
            return False
        if self._size > SMALL and not self._held:
            if self._turn is None:
                self._turn = self._gateway.bytes.take(self.session.who, self._has_room, self._size)
            if self._turn is not None:
                self._pause()
                self._enter(Phase.WORK)
                return False
            self._held = self._size
        end = SIZE.size + self._size
        if len(self._buffer) < end:
            self._resume()
            self._enter(Phase.FRAME)
            return False
        if not has_turn and not self._gateway.turnstile.is_free(Kind.READ):
            self._enter(Phase.WORK)
            self._queue()
            return False
        frame = Frame(memoryview(self._buffer)[SIZE.size : end])
        del self._buffer[:end]
        self._enter(Phase.WORK)
        receipt, self._receipt = self._receipt, None
        if not self._begin(frame, receipt):
            return False
        self._size = 0
        self._release()
        return True

    def _begin(self, frame: bytes, receipt: Receipt) -> bool:
        """Answer a request, in a task if it has to wait for something. Whether it was answered at once."""
        answer = respond(self._gateway, self.session, frame, receipt)
        if isinstance(answer, bytes):
            assert self._transport is not None
            self._transport.write(answer)
            return True
        self._enter(Phase.WORK)
        if len(self._buffer) > READ_AHEAD:
            self._pause()
        if isinstance(answer, Waiting):
            self._gateway.requests.take(self.session.who, bool)  # there is a free place
            self._task = answer.future
            answer.future.add_done_callback(partial(self._completed, answer.finish))
        else:
            self._start(answer, may_wait=may_wait(self._gateway, frame))
        return False

    def _start(self, answer: InTask, *, may_wait: bool) -> None:
        self._task = asyncio.create_task(self._serve(answer, may_wait=may_wait), name="kcoord-kafka")

    def _completed(self, finish: Callable[[asyncio.Future[Any]], bytes | InTask], future: asyncio.Future[Any]) -> None:
        """What a request waited for is done."""
        self._gateway.requests.give()
        with self._answering():
            answer = finish(future)
            if not isinstance(answer, bytes):
                self._start(answer, may_wait=False)
                return
            self._send(answer)
        self._ended()

    def _has_room(self) -> bool:
        """There is room for the bytes of the request that comes next."""
        self._turn, self._held = None, self._size
        self.advance()
        return True

    def _read_size(self) -> bool:
        """Whether the size of the next frame is known; ends the connection if the size is not valid."""
        if len(self._buffer) < SIZE.size:
            self._resume()
            self._enter(Phase.FRAME if self._buffer else self._resting())
            return False
        (size,) = SIZE.unpack_from(self._buffer)
        longest = self._gateway.longest_frame
        if 0 < size <= (longest if self.session.secret else min(longest, LARGEST_BEFORE_LOGIN)):
            self._size = size
            return True
        self.hang_up(Reason.INVALID, _what_came(bytes(self._buffer[:5]), size))
        return False

    async def _serve(self, work: InTask, *, may_wait: bool) -> None:
        try:
            with self._answering():
                async with self._gateway.requests.place(self.session.who):
                    self.waits = may_wait
                    answer = await work
                self._send(answer)
        finally:
            work.close()  # if it has not begun
            self._ended()

    def _send(self, answer: bytes | None) -> None:
        if answer is not None and self._transport is not None:
            self._transport.write(answer)
        if self.session.throttle_ms:
            self._be_silent()
        if self.session.is_refused:
            self.hang_up(Reason.REFUSED, "the login failed: the password is not a token")

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        """End the connection if a request has no answer."""
        try:
            yield
        except Malformed as error:
            self.hang_up(Reason.INVALID, str(error))
        except HangUp as error:
            self.hang_up(Reason.REFUSED, str(error))
        except asyncio.CancelledError:
            if self._transport is not None:
                self._transport.abort()
        except Exception:
            log.exception("kafka_request_failed")
            self.hang_up(Reason.INVALID, "an answer could not be encoded")

    def _ended(self) -> None:
        """The request is answered, or never will be."""
        self._task = None
        self.waits = False
        self._size = 0
        self._release()
        if self._gateway.is_stopping:
            self.close()
        self._advance()

    def _be_silent(self) -> None:
        """A quota throttles the peer: read nothing for a while (KIP-219)."""
        seconds, self.session.throttle_ms = self.session.throttle_ms / 1000, 0
        if self._transport is not None and not self._gateway.is_stopping:
            self._pause()
            self._silence = asyncio.get_running_loop().call_later(seconds, self._speak)

    def _speak(self) -> None:
        """The peer has been silent for long enough."""
        self._silence = None
        self.advance()

    def _release(self) -> None:
        held, self._held = self._held, 0
        if held:
            self._gateway.bytes.give(held)

    def _resting(self) -> Phase:
        return Phase.IDLE if self.session.secret else Phase.LOGIN

    def _enter(self, phase: Phase) -> None:
        if not (phase is Phase.FRAME and self.peer.phase is Phase.LOGIN):
            self.peer.enter(phase)

    def _pause(self) -> None:
        if self._reads and self._transport is not None:
            self._reads = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not self._reads and self._transport is not None:
            self._reads = True
            self._transport.resume_reading()

    # Deadlines and ends

    @property
    def is_busy(self) -> bool:
        """A request is being answered, or waits for its turn."""
        return self._task is not None or self._is_queued

    @property
    def token(self) -> str:
        """The digest of the token that it logged in with; "" before that."""
        return self.session.token

    @property
    def secret(self) -> str:
        """The token that it logged in with."""
        return self.session.secret

    def token_ended(self, reason: str) -> None:
        """The token is no longer valid."""
        self.hang_up(Reason.REFUSED, f"the token of the connection is no longer valid: {reason}")

    def unread(self) -> int:
        """Bytes that could not be sent yet, once they are too many."""
        return self._transport.get_write_buffer_size() if self._transport is not None and self._is_unread else 0

    def is_our_turn(self) -> bool:
        """We are not reading from the peer at the moment."""
        return not self._reads

    def give_up(self, reason: Reason) -> None:
        """The peer has taken too long."""
        self.end(reason)

    def hang_up(self, reason: Reason, detail: str) -> None:
        """End the connection because of what its peer sent."""
        if not self._said:
            self._gateway.peers.note_closed(reason)
        self.end(reason, detail)

    def end(self, reason: Reason, detail: str = "") -> None:
        """End the connection because of its peer, with one line in the log."""
        if not self._said:
            self._said = True
            peer = f"{self.session.client_host}:{self.session.client_port}"
            log.info("kafka_connection_closed", peer=peer, reason=reason.value, detail=detail)
        self._buffer.clear()
        self.close(abort=reason.value.endswith("timeout"))

    def close(self, *, abort: bool = False) -> None:
        """End the connection after what was written is sent; `abort`: at once."""
        if self._transport is not None:
            if abort:
                self._transport.abort()
            else:
                self._transport.close()


def _what_came(start: bytes, size: int) -> str:
    """What the first bytes look like when they are not the size of a request."""
    if start[:2] == b"\x16\x03":
        return "TLS on a port without TLS"
    if start[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PRI "):
        return "HTTP on the port for Kafka clients"
    return f"{size} is not the size of a request"
