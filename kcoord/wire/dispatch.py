"""From the bytes of a request to those of its answer: header, login, body, handler, errors.

The order is that of requests over HTTP (`kcoord.http.serving`): who asks, then what, then the handler, which checks the
rules of the token.
"""

from __future__ import annotations

import asyncio
import time
from functools import cache
from typing import Any

import structlog

from kcoord import metrics
from kcoord.database import request_age
from kcoord.http import context
from kcoord.process.turnstile import Turnstile
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.wire import frames, session
from kcoord.wire.api import Answer, Api, Call, HangUp, Session, response_class
from kcoord.wire.codes import UNSUPPORTED_VERSION
from kcoord.wire.frames import API_VERSIONS, Header
from kcoord.wire.reading import Fields, Frame, Malformed

log = structlog.get_logger(__name__)

BIG_BYTES = 65_536
"""A larger request waits for a place (`kcoord.process.turnstile`) while it is decoded."""

Receipt = request_age.Receipt | None


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
    try:
        body = await _body(gateway, peer, api, header, frame)
    finally:
        metrics.kafka_requests(api.name, header.version).inc()
        metrics.kafka_latency(api.name).observe(time.perf_counter() - started)
        request_age.leave(tokens[1])
        context.leave(tokens[0])
    if body is None:
        return None
    return frames.answer(api.key, api.name, header.version, header.correlation_id, body)


async def _body(gateway: Any, peer: Session, api: Api, header: Header, frame: Frame) -> Answer | None:
    runtime = gateway.runtime
    call: Call | None = None
    content = Fields()
    try:
        content = await _content(gateway, api, header, frame)
        if not api.is_hot:
            await runtime.get(Turnstile).pass_through(again=True)
        caller = await session.caller_of(runtime, peer.secret) if api.needs_login else None
        call = Call(runtime, gateway, peer, caller, header.version, header.client_id)
        return await api.handler(call, content)
    except ProtocolError as error:
        if call is None and error.error is Error.SASL_AUTHENTICATION_FAILED:
            raise HangUp("the token of the connection is no longer valid") from None
        return api.refuse(content, header.version, error.error.code, error.detail)
    except (HangUp, Malformed):
        raise
    except Exception:
        log.exception("request_failed", api=api.name, version=header.version)
        return api.refuse(content, header.version, Error.UNKNOWN_SERVER_ERROR.code, "")


async def _content(gateway: Any, api: Api, header: Header, frame: Frame) -> Fields:
    """The decoded body. Large ones take turns: they are many times larger then."""
    if len(frame) <= BIG_BYTES:
        return frames.read_body(api.name, header, frame)
    async with gateway.decoding:
        return frames.read_body(api.name, header, frame)


async def _raw_token(gateway: Any, peer: Session, frame: Frame) -> bytes:
    """The login after a SaslHandshake of version 0: a token without a header, an empty answer."""
    peer.expects_token = False
    try:
        peer.secret = await session.log_in(gateway.runtime, frame)
    except ProtocolError as error:
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


@cache
def _name_with_error(key: int, version: int) -> str | None:
    """The name of an API that is not served, if its answer says its error at the top and its schema is known."""
    from kio.schema.index import api_key_map

    name = api_key_map.get(key)
    try:
        return name if name and "error_code" in response_class(name, version).__annotations__ else None
    except (ImportError, StopIteration):
        return None
