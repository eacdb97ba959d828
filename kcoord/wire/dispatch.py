"""From the bytes of a request to those of its answer: header, login, body, handler, errors.

The order is that of requests over HTTP (`kcoord.http.serving`): who asks, then what, then the handler, which checks the
rules of the token.

Quotas: requests are carried out, and their sender is silent for a while (KIP-124, KIP-219).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import structlog

from kcoord import metrics
from kcoord.access.rights import Access
from kcoord.audit import caller as callers
from kcoord.audit.caller import Caller, Door
from kcoord.audit.operations import SIGN_IN, is_refusal, note_error, note_refusals
from kcoord.database import request_age
from kcoord.http import context
from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import Turnstile
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.quotas.budgets import Budget
from kcoord.quotas.quotas import Quotas
from kcoord.wire import frames, session
from kcoord.wire.api import SUCCESS, UNSUPPORTED_VERSION, Answer, Api, Call, HangUp, Session, response_class
from kcoord.wire.frames import API_VERSIONS, Header
from kcoord.wire.reading import Fields, Frame, Malformed

log = structlog.get_logger(__name__)

BIG_BYTES = 65_536
"""A larger request waits for a place (`kcoord.process.turnstile`) while it is decoded."""

LONGEST_AT_ONCE = 1_024
"""Bytes of a request that is answered without a task; heartbeats are shorter."""
NO_CORRELATION = bytes(4)

Receipt = request_age.Receipt | None


def at_once(gateway: Any, peer: Session, frame: bytes, receipt: Receipt) -> bytes | None:
    """The answer to a request that needs no waiting, with its size, without a task. `receipt` None: it came just now.

    None: `respond` has to answer it, and nothing has been done yet. Errors are answered there too.
    """
    if frame[:2] not in gateway.quick or not peer.token or gateway.is_stopping or gateway.requests.locked():
        return None
    runtime = gateway.runtime
    caller = runtime.get(Access).known(peer.token)
    if caller is None or len(frame) > LONGEST_AT_ONCE:
        return None
    quotas = runtime.get(Quotas)
    if quotas.is_hot and not quotas.has_room(caller, Budget.HEARTBEATS):
        return None
    started = time.perf_counter()
    entered = request_age.enter(receipt or runtime.db.request_age.receive())
    try:
        found = gateway.decoded(frame[:4] + frame[8:])
        api, version = found.api, found.version
        body = api.handler(Call(runtime, gateway, peer, caller, version, found.client_id), found.content)
        if not isinstance(body, Mapping):
            body.close()  # it has not begun: `respond` does it in a task
            return None
        correlation_id = frame[4:8]
        answer: bytes = found.succeeded(correlation_id) if body is SUCCESS else found.answer(correlation_id, body)
    except (Malformed, ProtocolError):
        return None
    except Exception:
        log.exception("request_failed", key=frame[:2].hex())
        return None
    finally:
        request_age.leave(entered)
    if quotas.is_hot:
        quotas.spend(caller, api.budget, len(frame) + len(answer))
    found.requests.inc()
    found.seconds.observe(time.perf_counter() - started)
    return answer


class Decoded:
    """A request without its correlation id, and what answers need. Members send the same heartbeat for hours.

    Raises Malformed, also for a version that is not served, and for lists with entries: they say something new, so the
    request is not answered at once, and would take up to 30 times its bytes if it were remembered.
    """

    __slots__ = ("_start", "_success", "api", "client_id", "content", "requests", "seconds", "version")

    def __init__(self, apis: Mapping[int, Api], raw: bytes) -> None:
        frame = Frame(raw[:4] + NO_CORRELATION + raw[4:])
        frame.items = 0
        header = frames.read_header(frame)
        self.api = apis[header.key]
        self.version, self.client_id = header.version, header.client_id
        if not self.api.serves(header.version):
            raise Malformed("the version is not served")
        self.content = frames.read_body(self.api.name, header, frame)
        if frame.unstorable:
            raise Malformed("a text cannot be stored")
        self.requests = metrics.kafka_requests(self.api.name, header.version)
        self.seconds = metrics.kafka_latency(self.api.name)
        success = _success(self.api.key, self.api.name, self.version)
        self._start, self._success = success[:4], success[8:]

    def succeeded(self, correlation_id: bytes) -> bytes:
        """The answer SUCCESS."""
        return self._start + correlation_id + self._success

    def answer(self, correlation_id: bytes, body: Answer) -> bytes:
        """Another answer."""
        (number,) = frames.SIZE.unpack(correlation_id)
        return frames.answer(self.api.key, self.api.name, self.version, number, body)


@cache
def _success(key: int, name: str, version: int) -> bytes:
    return frames.answer(key, name, version, 0, SUCCESS)


def may_wait(gateway: Any, frame: Frame) -> bool:
    """Whether the request may be parked, and is of no use to anybody when its connection is gone."""
    api: Api | None = gateway.apis.get(int.from_bytes(frame[:2], "big"))
    return api is not None and api.waits


async def respond(gateway: Any, peer: Session, frame: Frame, receipt: Receipt) -> bytes | None:
    """The answer to a request, with its size, or None. Raises Malformed or HangUp: end the connection."""
    if peer.expects_token:
        return await _raw_token(gateway, peer, frame)
    header = frames.read_header(frame)
    api: Api | None = gateway.apis.get(header.key)
    if api is None or not api.serves(header.version):
        return await _unsupported(gateway, peer, header)
    if api.needs_login and not peer.secret:
        raise HangUp(f"{api.name} before a login: the listener wants SASL/PLAIN with a token as password")
    request = context.RequestContext(context.new_request_id(), route=api.name, is_api=True)
    tokens = context.enter(request), request_age.enter(receipt)
    started = time.perf_counter()
    caller = Caller(Door.WIRE, address=peer.client_host, request_id=request.request_id)
    try:
        with callers.calling(caller):
            body = await _body(gateway, peer, api, header, frame)
    finally:
        metrics.kafka_requests(api.name, header.version).inc()
        metrics.kafka_latency(api.name).observe(time.perf_counter() - started)
        request_age.leave(tokens[1])
        context.leave(tokens[0])
    throttle_ms = _throttled(gateway.runtime, peer, api, len(frame))
    if body is None:
        return None
    if throttle_ms:
        body = {**body, "throttle_time": throttle_ms}
    return frames.answer(api.key, api.name, header.version, header.correlation_id, body)


def _throttled(runtime: Runtime, peer: Session, api: Api, size: int) -> int:
    """Count a request that was carried out: for how long its connection is silent after the answer, in ms (KIP-219).

    Its session was extended before that, and a client's next heartbeat is only so much later.
    """
    caller = runtime.get(Access).known(peer.token) if api.needs_login else None
    if caller is None:
        return 0
    costs: dict[Budget, float] = {Budget.BYTES: size}
    if api.budget is not None:
        costs[api.budget] = 0 if api.budget is Budget.COMMITS else 1  # a commit was counted before it was carried out
    peer.throttle_ms = max(peer.throttle_ms, runtime.get(Quotas).throttle_ms(caller, costs))
    return peer.throttle_ms


async def _body(gateway: Any, peer: Session, api: Api, header: Header, frame: Frame) -> Answer | None:
    runtime = gateway.runtime
    call: Call | None = None
    content = Fields()
    try:
        content = await _content(runtime, peer, api, header, frame)
        if frame.unstorable:
            raise ProtocolError(Error.INVALID_REQUEST, f"{frame.unstorable}: contains U+0000, which cannot be stored")
        if not api.is_hot:
            await runtime.get(Turnstile).pass_through(peer.who, again=True)
        caller = await runtime.get(Access).authenticate(peer.secret) if api.needs_login else None
        if caller is not None:
            callers.identify(caller.name, caller.token_id)
            if api.budget is Budget.COMMITS:
                runtime.get(Quotas).admit_commit(caller)
        call = Call(runtime, gateway, peer, caller, header.version, header.client_id)
        found = api.handler(call, content)
        answer = found if isinstance(found, Mapping) else await found
        note_refusals(runtime, api.name, content.get("group_id", ""), answer)
        return answer
    except ProtocolError as error:
        if is_refusal(api.name, error):
            note_error(runtime, api.name, error)
        if call is None and error.error is Error.SASL_AUTHENTICATION_FAILED:
            raise HangUp(f"the token of the connection is no longer valid: {error.detail}") from None
        return api.refuse(content, header.version, error.error.code, error.detail)
    except (HangUp, Malformed):
        raise
    except Exception:
        log.exception("request_failed", api=api.name, version=header.version)
        return api.refuse(content, header.version, Error.UNKNOWN_SERVER_ERROR.code, "")


async def _content(runtime: Runtime, peer: Session, api: Api, header: Header, frame: Frame) -> Fields:
    """The decoded body. Large ones take turns: they are many times larger then. How many may wait is bounded by the
    gateway.
    """
    if len(frame) <= BIG_BYTES:
        return frames.read_body(api.name, header, frame)
    async with runtime.get(Turnstile).big.place(peer.who):
        return frames.read_body(api.name, header, frame)


async def _raw_token(gateway: Any, peer: Session, frame: Frame) -> bytes:
    """The login after a SaslHandshake of version 0: a token without a header, an empty answer."""
    peer.expects_token = False
    try:
        await session.log_in(gateway.runtime, peer, frame)
    except ProtocolError as error:
        with callers.calling(Caller(Door.WIRE, address=peer.client_host)):
            note_error(gateway.runtime, SIGN_IN, error)
        raise HangUp(error.detail) from None
    return frames.SIZE.pack(0)


async def _unsupported(gateway: Any, peer: Session, header: Header) -> bytes:
    """UNSUPPORTED_VERSION. To ApiVersions with a version that its client can read (KIP-511)."""
    if header.key == API_VERSIONS:
        call = Call(gateway.runtime, gateway, peer, None, 0, header.client_id)
        served = session.versions_served(call, UNSUPPORTED_VERSION)
        return frames.answer(API_VERSIONS, "api_versions", 0, header.correlation_id, served)
    # kio's index takes a second to import.
    name = await asyncio.to_thread(_name_with_error, header.key, header.version) if peer.secret else None
    if name is None:
        raise HangUp(f"API key {header.key} version {header.version} is not served")
    body = {"error_code": UNSUPPORTED_VERSION}
    return frames.answer(header.key, name, header.version, header.correlation_id, body)


@lru_cache(1_000)  # versions are the client's to choose
def _name_with_error(key: int, version: int) -> str | None:
    """The name of an API that is not served, if its answer says its error at the top and its schema is known."""
    from kio.schema.index import api_key_map

    name = api_key_map.get(key)
    try:
        return name if name and "error_code" in response_class(name, version).__annotations__ else None
    except (ImportError, StopIteration):
        return None
