"""Serving an endpoint: from the ASGI scope to a typed call, from a struct or an error to a response.

The order of checks: token, group id, query, content type, body; then the handler, which checks the rules of the token.
A handler that waits is watched: when the client disconnects, or its token ends, it is cancelled, and the service undoes
its wait.
Source: http-api.md 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kcoord.access.rights import Access, Principal, bearer, digest, trusted_caller
from kcoord.audit import caller as callers
from kcoord.audit.caller import Caller, Door
from kcoord.audit.operations import NOT_ALLOWED, note_error
from kcoord.http import body as bodies
from kcoord.http import context, paths, problem
from kcoord.http.endpoint import Endpoint
from kcoord.http.waiting import Waiting, answered_or_gone
from kcoord.process import off_loop
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import AGAIN, Turnstile
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.quotas.budgets import UNMETERED, Budget, Metering
from kcoord.quotas.connections import PEER, Connections
from kcoord.quotas.quotas import Quotas
from kcoord.quotas.throttled import HEARTBEATS_KEPT

log = structlog.get_logger(__name__)

B = TypeVar("B")

CLIENT_GONE_STATUS = 499
"""Status in the log and the metrics if the client did not wait for the answer; no client receives it."""

BYTES_PER_PARTITION = 10
"""Of a body: as many cost as much to decode as other work on one partition."""

BIG_BYTES = BYTES_PER_PARTITION * off_loop.ABOVE
"""Of a body: a larger one makes a request a big one, which waits for a place (`kcoord.process.turnstile`)."""

TRANSACTIONAL_ID = "{transactional_id}"
NO_QUERY: Mapping[str, Sequence[str]] = {}


class Call(msgspec.Struct, Generic[B], frozen=True):
    """An authenticated request. `query` has every value of each parameter.

    `group_id` and `transactional_id` are "" on paths without one.
    """

    runtime: Runtime
    principal: Principal
    body: B
    group_id: str
    query: Mapping[str, Sequence[str]]
    client_host: str
    transactional_id: str = ""

    @property
    def max_wait_ms(self) -> int:
        """The maximum time one request may be held, whatever it asks for."""
        return self.runtime.config.int("http.max.wait.ms")


class Underway(NamedTuple):
    """A request that was begun. `finish` makes its result of what the future holds, or returns a coroutine that does.

    The caller waits until the future is done, and runs such a coroutine.
    """

    waits_for: asyncio.Future[Any]
    finish: Callable[[Any], msgspec.Struct | Coroutine[Any, Any, msgspec.Struct]]


Handler = Callable[[Call[Any]], Awaitable[msgspec.Struct]]
AtOnce = Callable[[Call[Any]], msgspec.Struct | None]
Begin = Callable[[Call[Any]], Underway | None]


class Operation:
    """An endpoint with the code that answers it; an ASGI application. Parameters: those of `serve`."""

    def __init__(
        self,
        endpoint: Endpoint,
        handler: Handler,
        waits: bool,
        is_hot: bool = False,
        at_once: AtOnce | None = None,
        begin: Begin | None = None,
        is_big: bool = False,
        metering: Metering = UNMETERED,
    ) -> None:
        assert at_once is None or begin is None, endpoint
        self.endpoint = endpoint
        self.metering = metering
        self.is_hot = is_hot
        self._is_big = is_big
        self._at_once = at_once
        self._begin = begin
        self._handler = handler
        self._waits = waits
        self._encoder = msgspec.json.Encoder()
        self._decoder: msgspec.json.Decoder[Any] | None = (
            None if endpoint.request is None else msgspec.json.Decoder(endpoint.request)
        )
        self._parameters = {parameter.name: parameter for parameter in endpoint.query}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            response = await self._answer(scope, receive)
        except ProtocolError as error:
            if error.error in NOT_ALLOWED:
                self._note(scope, error)
            response = problem.from_error(error)
            if error.fields.get("budget") == Budget.CONNECTIONS.key:
                response.headers["connection"] = "close"
        except bodies.ClientGone:
            request = context.current()
            if request is not None:
                request.status = CLIENT_GONE_STATUS
            return
        except bodies.TooLarge:
            raise
        except Exception:
            log.exception("request_failed", endpoint=self.endpoint.operation_id)
            response = problem.response(Error.UNKNOWN_SERVER_ERROR)
        await response(scope, receive, send)

    def _note(self, scope: Scope, error: ProtocolError) -> None:
        """Record in the audit that the caller may not do this."""
        if not runtimes.is_running():
            return
        client = scope.get("client")
        caller = Caller(Door.HTTP, address=client[0] if client else "", request_id=context.request_id())
        with callers.calling(caller):
            if error.error is not Error.SASL_AUTHENTICATION_FAILED:
                secret = "" if trusted_caller(scope) else digest(bearer(scope["headers"]))
                found = trusted_caller(scope) or runtimes.current().get(Access).known(secret)
                if found is not None:
                    callers.identify(found.name, found.token_id)
            note_error(runtimes.current(), self.endpoint.operation_id, error)

    @property
    def is_short(self) -> bool:
        """Some requests can be answered at once, or begun: see `at_once` and `begin`."""
        return self._at_once is not None or self._begin is not None

    @property
    def can_begin(self) -> bool:
        """Requests are begun, and answered when what they wait for has come: see `begin`."""
        return self._begin is not None

    def at_once(
        self, runtime: Runtime, principal: Principal, group_id: str, client_host: str, body: bytes
    ) -> bytes | None:
        """The body of a successful answer that needs no waiting, of a request without query; None: answer it as usual.

        Raises ProtocolError if it is not the body, or not the caller, that the endpoint wants; the usual way answers
        the same.
        """
        if self._at_once is None or self._decoder is None:
            return None
        content = bodies.decode(self._decoder, body)
        result = self._at_once(Call(runtime, principal, content, group_id, NO_QUERY, client_host))
        return None if result is None else self.encode(result)

    def begin(
        self, runtime: Runtime, principal: Principal, group_id: str, client_host: str, body: bytes
    ) -> Underway | None:
        """Begin a request without query, whose result is then encoded with `encode`; None: answer it as usual.

        Raises as `at_once`; nothing was begun then.
        """
        if self._begin is None or self._decoder is None or len(body) > BIG_BYTES:
            return None
        content = bodies.decode(self._decoder, body)
        return self._begin(Call(runtime, principal, content, group_id, NO_QUERY, client_host))

    async def carry_out(self, call: Call[Any]) -> msgspec.Struct:
        """The result of a call that came by another way than HTTP. Raises ProtocolError."""
        return await self._handler(call)

    def encode(self, result: msgspec.Struct) -> bytes:
        """The body of a successful answer."""
        return self._encoder.encode(result)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        runtime = current_runtime()
        if not self.is_hot:
            await runtime.get(Turnstile).pass_through(again=scope.get(AGAIN, False))
        headers = scope["headers"]
        principal = trusted_caller(scope) or await runtime.get(Access).authenticate(bearer(headers))
        quotas = runtime.get(Quotas)
        over = self._over(runtime, scope, principal) if quotas.limits_connections else None
        group_id, transactional_id = self._path_names(scope)
        query = self._query(scope["query_string"])
        body = b""
        if self._decoder is not None:
            bodies.check_content_type(headers)
            body = await bodies.read(receive)
        client = scope.get("client")
        host = client[0] if client else ""

        def called(content: Any) -> Call[Any]:
            return Call(runtime, principal, content, group_id, query, host, transactional_id)

        def watched(work: Awaitable[msgspec.Struct]) -> Awaitable[msgspec.Struct]:
            return self._watched(runtime, scope, receive, work)

        try:
            if self._is_big or len(body) > BIG_BYTES:
                result = await self._big(quotas, principal, body, called, watched, over)
            else:
                content = None if self._decoder is None else bodies.decode(self._decoder, body)
                work = self._carried_out(quotas, called(content), over)
                result = await (watched(work) if self._waits else work)
        except ProtocolError as error:
            if error.error is not Error.THROTTLING_QUOTA_EXCEEDED:
                quotas.spend(principal, None, len(body))
            raise
        answer = self._encoded(result)
        quotas.spend(principal, None, len(body) + len(answer.body))
        if over is not None:
            answer.headers["connection"] = "close"
        return answer

    def _over(self, runtime: Runtime, scope: Scope, principal: Principal) -> ProtocolError | None:
        """Count the connection; the refusal of one too many, if the request may keep a member in its group.

        Such a request is carried out first. Raises THROTTLING_QUOTA_EXCEEDED for all others.
        """
        try:
            if principal.token_id:
                claim(runtime, scope, principal)
        except ProtocolError as refusal:
            if not self.metering.is_of_member:
                raise
            return refusal
        return None

    async def _big(
        self,
        quotas: Quotas,
        principal: Principal,
        body: bytes,
        called: Callable[[Any], Call[Any]],
        watched: Callable[[Awaitable[msgspec.Struct]], Awaitable[msgspec.Struct]],
        over: ProtocolError | None,
    ) -> msgspec.Struct:
        """The result of a request that waits for a place. `watched`: see `_watched`."""
        if self._is_big:  # what does not wait for a place need not be looked at again
            quotas.admit(principal, {Budget.CPU: 0, Budget.BYTES: 0})
        async with current_runtime().get(Turnstile).place(principal.token_id):
            with off_loop.charging(quotas.charger(principal) if self._is_big else None):
                content = await self._decoded(body)
                if not self._waits:
                    return await self._carried_out(quotas, called(content), over)
        # Others wait for the place, and what this one waits for may be another request.
        return await watched(self._carried_out(quotas, called(content), over))

    @staticmethod
    async def _watched(
        runtime: Runtime, scope: Scope, receive: Receive, work: Awaitable[msgspec.Struct]
    ) -> msgspec.Struct:
        """The result of `work`. Raises ClientGone, or SASL_AUTHENTICATION_FAILED when the token of the request ends."""
        if trusted_caller(scope):
            return await answered_or_gone(work, receive)
        with runtime.get(Waiting).under(bearer(scope["headers"])) as ended:
            return await answered_or_gone(work, receive, ended)

    async def _carried_out(self, quotas: Quotas, call: Call[Any], over: ProtocolError | None) -> msgspec.Struct:
        """The result of a call. `over`: its connection is one too many, which refuses what would not be lost by it.

        Raises THROTTLING_QUOTA_EXCEEDED.
        """
        metering = self.metering
        if over is not None and metering.renew is not None:
            await metering.renew(call)
            raise over
        result = await self._metered(quotas, call)
        if over is not None and metering.keeps is not None and metering.keeps(call.body, result):
            raise over
        return result

    async def _metered(self, quotas: Quotas, call: Call[Any]) -> msgspec.Struct:
        """The result of a call whose weight is spent. Raises THROTTLING_QUOTA_EXCEEDED."""
        metering, principal = self.metering, call.principal
        if metering.budget is None or not quotas.meter(principal):
            return await self._handler(call)
        weight = metering.weight(call.body)
        if metering.keeps is not None:
            refusal = quotas.refused_heartbeat(principal, weight)
            result = await self._handler(call)
            if refusal is not None and metering.keeps(call.body, result):
                HEARTBEATS_KEPT.inc(weight)
                raise refusal
            return result
        try:
            quotas.admit(principal, {metering.budget: weight, Budget.BYTES: 0}, counts=metering.renew is not None)
        except ProtocolError:
            if metering.renew is not None:
                await metering.renew(call)
            raise
        return await self._handler(call)

    async def _decoded(self, body: bytes) -> Any:
        """The content of a large body."""
        if self._decoder is None:
            return None
        return await off_loop.run(len(body) // BYTES_PER_PARTITION, bodies.decode, self._decoder, body)

    def _encoded(self, result: msgspec.Struct) -> Response:
        return Response(self.encode(result), media_type="application/json")

    def _path_names(self, scope: Scope) -> tuple[str, str]:
        """Group id and transactional id of the path; "" for the absent one."""
        raw = scope.get("kcoord.path_name")
        if raw is None:
            return "", ""
        if TRANSACTIONAL_ID in self.endpoint.path:
            return "", paths.transactional_id_of(raw)
        return paths.group_id_of(raw, may_be_empty=self.endpoint.takes_empty_group_id), ""

    def _query(self, query_string: bytes) -> Mapping[str, list[str]]:
        if not query_string:
            return {}
        try:
            pairs = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            raise problem.invalid("the query string is not percent-encoded UTF-8") from None
        found: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in self._parameters:
                raise problem.no_such_parameter(name, self._parameters)
            found.setdefault(name, []).append(value)
        return found


def current_runtime() -> Runtime:
    """The running runtime. Raises COORDINATOR_NOT_AVAILABLE while the process starts or stops."""
    if not runtimes.is_running():
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "this server is starting or stopping; try again")
    return runtimes.current()


def claim(runtime: Runtime, scope: Scope, principal: Principal) -> None:
    """Count the connection of a request. Raises THROTTLING_QUOTA_EXCEEDED."""
    peer = (scope.get("state") or {}).get(PEER)
    if peer is not None:
        runtime.get(Connections).claim(peer, principal)


def serve(
    endpoint: Endpoint,
    *,
    waits: bool = False,
    is_hot: bool = False,
    at_once: AtOnce | None = None,
    begin: Begin | None = None,
    is_big: bool = False,
    metering: Metering = UNMETERED,
) -> Callable[[Handler], Operation]:
    """Decorator: the function answers `endpoint`.

    `waits`: it may hold the request, so the connection is watched. `is_hot`: members call it all the time, see the
    setting `log.hot.requests`. `at_once`: answers some requests without waiting, just as the function would
    (`kcoord.http.short_path`); None, or a ProtocolError: the function shall answer, and nothing has been done yet.
    `begin`: begins some requests in the same way, for which that is not possible because they have to wait. `is_big`:
    even a request with a small body waits for a place (`Turnstile.place`). `metering`: what quotas count.
    """

    def bind(handler: Handler) -> Operation:
        return Operation(endpoint, handler, waits, is_hot, at_once, begin, is_big, metering)

    return bind
