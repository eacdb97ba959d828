"""From the bytes of a request to those of its answer: header, login, body, handler, errors.

The order is that of requests over HTTP (`kcoord.door.http.serving`): who asks, then what, then the handler, which
checks the rules of the token.

Quotas: requests are carried out, and their sender is silent for a while (KIP-124, KIP-219).

Source: Kafka's RequestHeader and ResponseHeader, versions 1 and 2, 0 and 1. The answer to ApiVersions always has the
header of version 0, because its client does not know yet what the server understands (KIP-511).
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, cast

import structlog

from kcoord import metrics
from kcoord.access.audit.refusals import SIGN_IN, is_refusal, note_error, note_refusals
from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import HOT, Quotas
from kcoord.access.rights import Access, Principal
from kcoord.door.kafka import session
from kcoord.door.kafka.api import (
    SUCCESS,
    UNSUPPORTED_VERSION,
    Answer,
    Api,
    Call,
    HangUp,
    Session,
    request_class,
    response_class,
)
from kcoord.door.kafka.codec import Fields, Frame, Malformed, read, shown, varint, write
from kcoord.process.off_loop import Later
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Caller, Door
from kcoord.requests.turnstile import Turnstile

API_VERSIONS = 18
SIZE = struct.Struct(">i")
_FIXED = struct.Struct(">hhih")


class Header(NamedTuple):
    """The part that all requests have in common. `body_at`: where that of a version with legacy headers begins."""

    key: int
    version: int
    correlation_id: int
    client_id: str
    body_at: int


def read_header(frame: Frame) -> Header:
    """The header of a request, without its tagged fields. Raises Malformed."""
    try:
        key, version, correlation_id, length = _FIXED.unpack_from(frame)
    except struct.error:
        raise Malformed("the header is cut off") from None
    at = _FIXED.size
    if length < -1 or at + length > len(frame):
        raise Malformed("the client id exceeds the frame")
    end = at + max(length, 0)
    return Header(key, version, correlation_id, shown(frame[at:end]), end)


def read_body(name: str, header: Header, frame: Frame) -> Fields:
    """The body of a request. Raises Malformed.

    What follows it is not looked at, as in Kafka: librdkafka asks for all topics with three bytes too many.
    """
    cls: Any = request_class(name, header.version)
    at = header.body_at
    try:
        if cls.__flexible__:
            at = _skip_tags(frame, at)
    except IndexError:
        raise Malformed("the header is cut off") from None
    return read(cls, frame, at)[0]


def _skip_tags(frame: Frame, at: int) -> int:
    count, at = varint(frame, at)
    for _ in range(count):
        _tag, at = varint(frame, at)
        length, at = varint(frame, at)
        at += length
        if at > len(frame):
            raise Malformed("a tagged field of the header exceeds the frame")
    return at


def encoded(key: int, name: str, version: int, correlation_id: int, body: Answer) -> bytes:
    """An answer with its size and header."""
    cls: Any = response_class(name, version)
    out = bytearray(4)
    out += SIZE.pack(correlation_id)
    if cls.__flexible__ and key != API_VERSIONS:
        out.append(0)
    write(cls, body, out)
    SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)


log = structlog.get_logger(__name__)

BIG_BYTES = 65_536
"""A larger request waits for a place (`kcoord.requests.turnstile`) while it is decoded."""

LONGEST_QUICK = 1_024
"""Bytes of a request that may be answered from memory; heartbeats are shorter."""
LONGEST_AT_ONCE = 4_096
"""Bytes of a request that is begun without a task."""
NO_CORRELATION = bytes(4)

Receipt = current.Receipt | None


@dataclass(slots=True)
class Request:
    """One request. `content`: its body, as far as it was decoded. `size` in bytes. `started` by `time.perf_counter`."""

    api: Api
    version: int
    correlation_id: int
    client_id: str
    size: int
    started: float
    content: Fields = field(default_factory=Fields)


Work = Callable[[Request], Awaitable[Answer | None]]
InTask = Coroutine[Any, Any, bytes | None]
"""What brings an answer, or None, in a task. It raises Malformed or HangUp: end the connection."""


class Waiting(NamedTuple):
    """A request that waits for nothing but a future. `finish` takes it when it is done, and raises as `InTask`."""

    future: asyncio.Future[Any]
    finish: Callable[[asyncio.Future[Any]], bytes | InTask]


def respond(gateway: Any, peer: Session, frame: bytes, receipt: Receipt) -> bytes | InTask | Waiting:
    """The answer to a request, with its size, if it needs no waiting; else what brings it.

    `receipt` None: it came just now.
    """
    runtime = gateway.runtime
    receipt = receipt or runtime.db.request_age.receive()
    api: Api | None = gateway.at_once.get(frame[:2])
    if api is None or not peer.token or gateway.is_stopping or gateway.requests.locked():
        return _read(gateway, peer, frame, receipt)
    caller: Principal | None = runtime.get(Access).known(peer.token)
    quotas = runtime.get(Quotas)
    if caller is None or len(frame) > (LONGEST_QUICK if api.is_quick else LONGEST_AT_ONCE):
        return _read(gateway, peer, frame, receipt)
    if quotas.is_hot and not (api.is_quick and quotas.has_room(caller, Budget.HEARTBEATS)):
        return _read(gateway, peer, frame, receipt)
    if not api.is_quick:
        return _begin(gateway, peer, api, frame, receipt, caller)
    started, correlation_id, answer = time.perf_counter(), frame[4:8], None
    try:
        found = gateway.decoded(frame[:4] + frame[8:])
    except Malformed:  # which is said where all of it is read
        return _read(gateway, peer, frame, receipt)
    entered = current.enter_receipt(receipt)
    try:
        body = found.api.handler(Call(runtime, gateway, peer, caller, found.version, found.client_id), found.content)
        if body is SUCCESS:
            answer = found.succeeded(correlation_id)
        elif isinstance(body, Mapping):
            answer = found.answer(correlation_id, body)
    except Exception as error:  # noqa: BLE001 - the task that answers it logs it
        body = _failed(error)
    finally:
        current.leave_receipt(entered)
    if answer is None:
        number = int.from_bytes(correlation_id, "big", signed=True)
        request = Request(found.api, found.version, number, found.client_id, len(frame), started, found.content)
        return _answer(gateway, peer, request, receipt, partial(_awaited, caller, body))
    if quotas.is_hot:
        quotas.spend(caller, found.api.budget, len(frame) + len(answer))
    found.requests.inc()
    found.seconds.observe(time.perf_counter() - started)
    return cast(bytes, answer)


def _begin(
    gateway: Any, peer: Session, api: Api, raw: bytes, receipt: current.Receipt, caller: Principal
) -> InTask | Waiting:
    """Begin a request of which nothing was read, and that mostly waits for nothing but a future."""
    started, frame = time.perf_counter(), Frame(raw)
    frame.items = gateway.most_items
    try:
        header = read_header(frame)
        content = read_body(api.name, header, frame) if api.serves(header.version) else None
    except Malformed:
        content = None
    if content is None or frame.unstorable:  # which is said where all of it is read
        return _read(gateway, peer, raw, receipt)
    request = Request(api, header.version, header.correlation_id, header.client_id, len(raw), started, content)
    own = copy_context()
    body: Any
    try:
        body = own.run(_carried_out, gateway, peer, request, receipt, caller)
    except Exception as error:  # noqa: BLE001 - the task that answers it logs it
        body = _failed(error)
    if type(body) is not Later:
        return _answer(gateway, peer, request, receipt, partial(_awaited, caller, body))
    finish = partial(_completed, gateway, peer, request, receipt, caller, body.finish)
    return Waiting(body.future, lambda future: own.run(finish, future))


def _carried_out(gateway: Any, peer: Session, request: Request, receipt: current.Receipt, caller: Principal) -> Any:
    """What the handler returns. The present context is that of the request from now on."""
    about = current.RequestContext(current.new_request_id(), route=request.api.name, is_api=True)
    current.enter_request(about)
    current.enter_receipt(receipt)
    current.enter_caller(Caller(Door.WIRE, address=peer.client_host, request_id=about.request_id))
    current.identify(caller.name, caller.token_id)
    call = Call(gateway.runtime, gateway, peer, caller, request.version, request.client_id)
    return request.api.handler(call, request.content)


def _completed(
    gateway: Any,
    peer: Session,
    request: Request,
    receipt: current.Receipt,
    caller: Principal,
    finish: Callable[[Any], Answer | Awaitable[Answer]],
    future: asyncio.Future[Any],
) -> bytes | InTask:
    """The answer to a request whose future is done, or what brings it after all."""
    try:
        body = finish(future.result())
    except Exception as error:  # noqa: BLE001 - it is answered, and logged
        body = _refused(gateway.runtime, request, error)
        error.__traceback__ = None  # its frames refer to the future that has the error
    if not isinstance(body, Mapping):
        return _answer(gateway, peer, request, receipt, partial(_awaited, caller, body))
    _count(request)
    answer = _packed(gateway.runtime, peer, request, body)
    assert answer is not None
    return answer


async def _failed(error: Exception) -> Answer:
    raise error


async def _awaited(caller: Principal, answer: Awaitable[Answer | None], _request: Request) -> Answer | None:
    """The answer to a request that was begun."""
    current.identify(caller.name, caller.token_id)
    return await answer


class Decoded:
    """A request without its correlation id, and what answers need. Members send the same heartbeat for hours.

    Raises Malformed, also for a version that is not served, and for lists with entries: they say something new, so the
    request is not answered at once, and would take up to 30 times its bytes if it were remembered.
    """

    __slots__ = ("_start", "_success", "api", "client_id", "content", "requests", "seconds", "version")

    def __init__(self, apis: Mapping[int, Api], raw: bytes) -> None:
        frame = Frame(raw[:4] + NO_CORRELATION + raw[4:])
        frame.items = 0
        header = read_header(frame)
        self.api = apis[header.key]
        self.version, self.client_id = header.version, header.client_id
        if not self.api.serves(header.version):
            raise Malformed("the version is not served")
        self.content = read_body(self.api.name, header, frame)
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
        (number,) = SIZE.unpack(correlation_id)
        return encoded(self.api.key, self.api.name, self.version, number, body)


@cache
def _success(key: int, name: str, version: int) -> bytes:
    return encoded(key, name, version, 0, SUCCESS)


def may_wait(gateway: Any, frame: bytes) -> bool:
    """Whether the request may be parked, and is of no use to anybody when its connection is gone."""
    api: Api | None = gateway.apis.get(int.from_bytes(frame[:2], "big"))
    return api is not None and api.waits


async def _read(gateway: Any, peer: Session, raw: bytes, receipt: Receipt) -> bytes | None:
    """The answer to a request of which nothing was read."""
    frame = raw if isinstance(raw, Frame) else Frame(raw)
    frame.items = gateway.most_items
    if peer.expects_token:
        return await _raw_token(gateway, peer, frame)
    header = read_header(frame)
    api: Api | None = gateway.apis.get(header.key)
    if api is None or not api.serves(header.version):
        return await _unsupported(gateway, peer, header)
    if api.needs_login and not peer.secret:
        raise HangUp(f"{api.name} before a login: the listener wants SASL/PLAIN with a token as password")
    started = time.perf_counter()
    request = Request(api, header.version, header.correlation_id, header.client_id, len(frame), started)
    return await _answer(gateway, peer, request, receipt, partial(_begun, gateway, peer, header, frame))


async def _answer(gateway: Any, peer: Session, request: Request, receipt: Receipt, work: Work) -> bytes | None:
    """The answer that `work` brings, which may be an error."""
    about = current.RequestContext(current.new_request_id(), route=request.api.name, is_api=True)
    tokens = current.enter_request(about), current.enter_receipt(receipt)
    try:
        with current.calling(Caller(Door.WIRE, address=peer.client_host, request_id=about.request_id)):
            body = await _body(gateway.runtime, request, work)
    finally:
        _count(request)
        current.leave_receipt(tokens[1])
        current.leave_request(tokens[0])
    return _packed(gateway.runtime, peer, request, body)


def _count(request: Request) -> None:
    """A request has ended."""
    metrics.kafka_requests(request.api.name, request.version).inc()
    metrics.kafka_latency(request.api.name).observe(time.perf_counter() - request.started)


def _packed(runtime: Runtime, peer: Session, request: Request, body: Answer | None) -> bytes | None:
    """The bytes of an answer, if there is one, after which the connection may have to be silent."""
    api = request.api
    throttle_ms = _throttled(runtime, peer, api, request.size)
    if body is None:
        return None
    if throttle_ms:
        body = {**body, "throttle_time": throttle_ms}
    return encoded(api.key, api.name, request.version, request.correlation_id, body)


def _throttled(runtime: Runtime, peer: Session, api: Api, size: int) -> int:
    """Count a request that was carried out: for how long its connection is silent after the answer, in ms (KIP-219).

    Its session was extended before that, and a client's next heartbeat is only so much later.
    """
    quotas = runtime.get(Quotas)
    if not quotas.is_hot and (api.budget is None or api.budget in HOT):
        return peer.throttle_ms
    caller = runtime.get(Access).known(peer.token) if api.needs_login else None
    if caller is None:
        return 0
    costs: dict[Budget, float] = {Budget.BYTES: size}
    if api.budget is not None:
        costs[api.budget] = 0 if api.budget is Budget.COMMITS else 1  # a commit was counted before it was carried out
    peer.throttle_ms = max(peer.throttle_ms, quotas.throttle_ms(caller, costs))
    return peer.throttle_ms


async def _body(runtime: Runtime, request: Request, work: Work) -> Answer | None:
    try:
        answer = await work(request)
        note_refusals(runtime, request.api.audit, request.content.get("group_id", ""), answer)
    except Exception as error:  # noqa: BLE001 - it is answered, and logged
        return _refused(runtime, request, error)
    return answer


def _refused(runtime: Runtime, request: Request, error: Exception) -> Answer:
    """The answer to a request that failed with `error`. Raises HangUp and Malformed."""
    api = request.api
    if isinstance(error, ProtocolError):
        if is_refusal(api.audit, error):
            note_error(runtime, api.name, error, api.audit)
        answer = api.refuse(request.content, request.version, error.error.code, error.detail)
        return answer if api.amend is None else api.amend(request.content, answer, error.fields)
    if isinstance(error, HangUp | Malformed):
        raise error
    log.error("request_failed", api=api.name, version=request.version, exc_info=error)
    return api.refuse(request.content, request.version, Error.UNKNOWN_SERVER_ERROR.code, "")


async def _begun(gateway: Any, peer: Session, header: Header, frame: Frame, request: Request) -> Answer | None:
    """The answer to a request whose body is still to be decoded."""
    runtime, api = gateway.runtime, request.api
    request.content = content = await _content(runtime, peer, api, header, frame)
    if frame.unstorable:
        raise ProtocolError(Error.INVALID_REQUEST, f"{frame.unstorable}: contains U+0000, which cannot be stored")
    if not api.is_hot:
        await runtime.get(Turnstile).pass_through(peer.who, again=True)
    caller = await _authenticated(runtime, peer, api) if api.needs_login else None
    if caller is not None:
        current.identify(caller.name, caller.token_id)
        if api.budget is Budget.COMMITS:
            runtime.get(Quotas).admit_commit(caller)
    found = api.handler(Call(runtime, gateway, peer, caller, header.version, header.client_id), content)
    return found if isinstance(found, Mapping) else await found


async def _authenticated(runtime: Runtime, peer: Session, api: Api) -> Principal:
    try:
        return await runtime.get(Access).authenticate(peer.secret)
    except ProtocolError as error:
        if error.error is not Error.SASL_AUTHENTICATION_FAILED:
            raise
        note_error(runtime, api.name, error, api.audit)
        raise HangUp(f"the token of the connection is no longer valid: {error.detail}") from None


async def _content(runtime: Runtime, peer: Session, api: Api, header: Header, frame: Frame) -> Fields:
    """The decoded body. Large ones take turns: they are many times larger then. How many may wait is bounded by the
    gateway.
    """
    if len(frame) <= BIG_BYTES:
        return read_body(api.name, header, frame)
    async with runtime.get(Turnstile).big.place(peer.who):
        return read_body(api.name, header, frame)


async def _raw_token(gateway: Any, peer: Session, frame: Frame) -> bytes:
    """The login after a SaslHandshake of version 0: a token without a header, an empty answer."""
    peer.expects_token = False
    try:
        await session.log_in(gateway.runtime, peer, frame)
    except ProtocolError as error:
        with current.calling(Caller(Door.WIRE, address=peer.client_host)):
            note_error(gateway.runtime, SIGN_IN, error)
        raise HangUp(error.detail) from None
    return SIZE.pack(0)


async def _unsupported(gateway: Any, peer: Session, header: Header) -> bytes:
    """UNSUPPORTED_VERSION. To ApiVersions with a version that its client can read (KIP-511)."""
    if header.key == API_VERSIONS:
        call = Call(gateway.runtime, gateway, peer, None, 0, header.client_id)
        served = session.versions_served(call, UNSUPPORTED_VERSION)
        return encoded(API_VERSIONS, "api_versions", 0, header.correlation_id, served)
    # kio's index takes a second to import.
    name = await asyncio.to_thread(_name_with_error, header.key, header.version) if peer.secret else None
    if name is None:
        raise HangUp(f"API key {header.key} version {header.version} is not served")
    body = {"error_code": UNSUPPORTED_VERSION}
    return encoded(header.key, name, header.version, header.correlation_id, body)


@lru_cache(1_000)  # versions are the client's to choose
def _name_with_error(key: int, version: int) -> str | None:
    """The name of an API that is not served, if its answer says its error at the top and its schema is known."""
    from kio.schema.index import api_key_map

    name = api_key_map.get(key)
    try:
        return name if name and "error_code" in response_class(name, version).__annotations__ else None
    except (ImportError, StopIteration):
        return None
