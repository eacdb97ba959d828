"""What a connection needs to know of a request, and one request for an operation, from its head to its answer.

A path is compared as it was sent: an encoded slash inside a name must not look like a different path, and any text
between prefix and suffix is taken as the name, so that an invalid one gets a proper error. A request that says in two
ways where it ends is answered 400 and its connection closed: a proxy in front may follow the other way, and take the
rest of a body for a request that it let through (request smuggling; RFC 9112, section 6.1 and 11.2).

The order of checks: token, connections, names in the path, query, content type, body, turn, quotas; then the operation,
which checks the rules of the token. Each step goes on where it is called if it can, so a request that has to wait for
nothing is answered while it is read. What it has to wait for is a task (an unknown token, a large body, an operation
that is a coroutine), or a future (`kcoord.process.off_loop.Later`), which costs no task.

All of it runs in the context of the request (`kcoord.requests.current`). A client that goes
away ends a request that only waits (`Operation.waits`); what any other one has begun is carried out.

Source: http-api.md 1.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import Context
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

import msgspec
import structlog
from starlette.responses import Response

from kcoord import metrics
from kcoord.access.audit.refusals import NOT_ALLOWED, note_error
from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.connections import Connections
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.quotas.throttled import HEARTBEATS_KEPT
from kcoord.access.rights import Access, Principal, bearer, digest
from kcoord.access.token_watch import Holder, TokenWatch
from kcoord.door.http import body as bodies
from kcoord.door.http import paths, problem
from kcoord.door.http.serving import NO_QUERY, Call, Operation
from kcoord.metrics import Durations, Tally
from kcoord.process import off_loop
from kcoord.process.off_loop import Later, settled, then
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import AccessLines, Caller
from kcoord.requests.turnstile import Kind, Turnstile

DOOR = "kcoord.door"
"""Key of a `Door` in the state that the application's lifespan gives to the server (ASGI, "Lifespan State")."""

JSON = b"application/json"

Headers = list[tuple[bytes, bytes]]

REMEMBERED = 32_768
"""Paths whose operation need not be looked for again."""

LONGEST_REMEMBERED = 300
"""Bytes of such a path; one with the longest group id is shorter."""

GROUP_ID = "{group_id}"
_PLACEHOLDER = re.compile(r"\{\w+\}")
_PLAIN = re.compile(rb"[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,254}")
"""Group ids that are in a path what they are: no escapes, nothing that a group id must not contain."""


PATIENCE = b"x-request-timeout-ms"
LONGEST_PATIENCE = 9
"""Digits."""


class Head(NamedTuple):
    """What a valid block of headers says.

    `length` of the body, None if it comes in chunks. `authorization`: that header, b"" if it is missing or there are
    several. `secret` of the token, "" if there is none that can be read, and `token`, its digest. `scope`: of ASGI, for
    the request of the connection that is answered at the moment. `patience_ms`: how long the client waits for the
    answer, apart from what it lets the server wait; NaN: it says so in a way that cannot be read.
    """

    headers: Headers
    length: int | None
    keeps_alive: bool
    expects: bool
    authorization: bytes
    secret: str
    token: str
    request_id: str | None
    is_json: bool
    client_host: str
    scope: dict[str, Any]
    patience_ms: float = math.inf

    @classmethod
    def of(
        cls,
        scope: dict[str, Any],
        length: int | None,
        *,
        keeps_alive: bool,
        expects: bool,
        last: Head | None,
    ) -> Head:
        """What the headers of a scope say. `last`: what those before said on the same connection."""
        headers: Headers = scope["headers"]
        by_name = dict(headers)
        is_plain = len(by_name) == len(headers)
        authorization = by_name.get(b"authorization", b"") if is_plain else b""
        if authorization and last is not None and last.authorization == authorization:
            secret, token = last.secret, last.token
        else:
            try:
                secret = bearer(headers)
                token = digest(secret)
            except ProtocolError:
                secret = token = ""
        client = scope.get("client")
        return cls(
            headers,
            length,
            keeps_alive,
            expects,
            authorization,
            secret,
            token,
            current.sane_request_id(headers) if current.HEADER in by_name else None,
            is_plain and by_name.get(b"content-type") == JSON and b"content-encoding" not in by_name,
            client[0] if client else "",
            scope,
            _patience(by_name.get(PATIENCE)),
        )


def _patience(value: bytes | None) -> float:
    if value is None:
        return math.inf
    return float(value) if value.isdigit() and len(value) <= LONGEST_PATIENCE else math.nan


class Admission:
    """What decides which requests are carried out, and when; one per runtime.

    `waiting`: requests that are held until something happens, which end early if their token does.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.access = runtime.get(Access)
        self.quotas = runtime.get(Quotas)
        self.connections = runtime.get(Connections)
        self.turnstile = runtime.get(Turnstile)
        self.longest_body = runtime.config.int("http.max.body.bytes")
        self.waiting: set[Holder] = set()
        self._watch = asyncio.create_task(TokenWatch(runtime, self.waiting).watch(), name="kcoord-waiting-tokens")
        runtime.on_stop(self._stop)

    async def _stop(self) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)


class Spans(Protocol):
    """Spans of requests, if traces are collected (`kcoord.door.http.tracing`)."""

    def begin(self, method: str, scope: Mapping[str, Any], own: Context) -> Any:
        """The span of a request, which is the current one in its context from now on."""

    def end(self, span: Any, method: str, request: current.RequestContext, name: bytes | None) -> None:
        """The request is answered. `name`: in its path, as it was sent."""


class Door:
    """What a server's connections need to answer operations. `lines`: the access log."""

    def __init__(self, runtime: Runtime, operations: Operations, spans: Spans | None = None) -> None:
        self.admission = runtime.get(Admission)
        self.operations = operations
        self.spans = spans
        self.lines = AccessLines(runtime.config.int("log.hot.requests"))
        self._defaults: Headers | None = None
        self._start = b""

    def success(self, defaults: Headers) -> bytes:
        """How a success begins, up to its length. The server renews its headers each second, as a new list."""
        if defaults is not self._defaults:
            lines = b"".join(b"%b: %b\r\n" % header for header in defaults)
            self._start, self._defaults = b"HTTP/1.1 200 OK\r\n" + lines + b"content-length: ", defaults
        return self._start


class Route(NamedTuple):
    """The operation of a request, and what its path says.

    `name`: in the path, as it was sent; None if the path has none. `group_id`: "" if the path names none, None if the
    name has to be read (`kcoord.door.http.paths`).
    """

    operation: Operation
    template: str
    name: bytes | None
    group_id: str | None
    raw: bytes
    path: str
    answered: Tally
    seconds: Durations


class Operations:
    """Parameters: `operations` of the process."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._by_end: dict[bytes, list[_Path]] = {}
        for path in _paths(operations):
            self._by_end.setdefault(path.end, []).append(path)
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._find)

    def find(self, method: bytes, raw: bytes) -> Route | None:
        """The operation of a request; None: it is none of these."""
        return self._remembered(method, raw) if len(raw) <= LONGEST_REMEMBERED else self._find(method, raw)

    def at(self, raw: bytes) -> tuple[str, dict[str, Operation]] | None:
        """The template of a path and its operations by method; None: there are none."""
        for path in self._by_end.get(_end(raw), ()):
            if path.pattern.fullmatch(raw):
                return path.template, path.methods
        return None

    def _find(self, method: bytes, raw: bytes) -> Route | None:
        for path in self._by_end.get(_end(raw), ()):
            found = path.pattern.fullmatch(raw)
            operation = None if found is None else path.methods.get(method.decode("latin-1"))
            if found is not None and operation is not None:
                name: bytes | None = found[1] if found.re.groups else None
                group_id = None
                if name is None:
                    group_id = ""
                elif GROUP_ID in path.template and _PLAIN.fullmatch(name):
                    group_id = name.decode("ascii")
                answered = metrics.requests(path.template, operation.endpoint.method, 200)
                return Route(
                    operation,
                    path.template,
                    name,
                    group_id,
                    raw,
                    raw.decode("latin-1"),
                    answered,
                    metrics.latency(path.template),
                )
        return None


class _Path:
    """One path with its operations. `end`: its last segment."""

    def __init__(self, template: str, methods: dict[str, Operation]) -> None:
        self.template = template
        self.methods = methods
        around = (re.escape(part) for part in _PLACEHOLDER.split(template, maxsplit=1))
        self.pattern = re.compile("(.*)".join(around).encode(), re.DOTALL)
        self.end = _end(template.encode())
        assert b"{" not in self.end, f"{template} ends with a name"


def _end(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _paths(operations: Iterable[Operation]) -> list[_Path]:
    """Several methods of one path make one."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        methods = by_path.setdefault(operation.endpoint.path, {})
        assert operation.endpoint.method not in methods, f"{operation.endpoint.operation_id} is bound twice"
        methods[operation.endpoint.method] = operation
    return [_Path(path, methods) for path, methods in by_path.items()]


def answer_head(status: int, headers: Headers) -> bytes:
    """The head of an answer."""
    try:
        phrase = HTTPStatus(status).phrase.encode()
    except ValueError:
        phrase = b""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, phrase, lines)


log = structlog.get_logger(__name__)

CLIENT_GONE_STATUS = 499
"""Status in the log and the metrics if the client did not wait for the answer; no client receives it."""

BYTES_PER_PARTITION = 10
"""Of a body: as many cost as much to decode as other work on one partition."""

BIG_BYTES = BYTES_PER_PARTITION * off_loop.ABOVE
"""Of a body: a larger one makes a request a big one, which waits for a place (`kcoord.requests.turnstile`)."""

TRANSACTIONAL_ID = "{transactional_id}"
CONNECTIONS = Budget.CONNECTIONS.key

Names = tuple[str, str, Mapping[str, Sequence[str]]]
"""Group id and transactional id of a path, "" for the absent one, and the values of each parameter of the query."""

Answered = Callable[["Asked", int, Headers | None, bytes], None]
"""Called once with a request, the status, the headers and the body of the answer. Headers None: it is a success."""


class Asked:
    """One request for an operation.

    Parameters: `own`, the context of the request, which is in no use; `tasks`, what requests wait for, which a server
    cancels that cannot wait any longer; `answered`, see there; `send_body`, called when the body is wanted and has not
    come; `again`: its connection was answered before; `trusted`, the caller if it is this process itself.
    """

    _body: bytes | None = None
    _principal: Principal | None = None
    _over: ProtocolError | None = None
    _task: asyncio.Task[Any] | None = None
    _ended = ""
    _is_gone = _is_underway = is_answered = False

    def __init__(
        self,
        admission: Admission,
        route: Route,
        query: bytes,
        head: Head,
        about: current.RequestContext,
        receipt: current.Receipt,
        own: Context,
        tasks: set[Any],
        answered: Answered,
        send_body: Callable[[], None] | None = None,
        *,
        again: bool = False,
        trusted: Principal | None = None,
    ) -> None:
        self._admission = admission
        self.operation = route.operation
        self.route = route
        self._query = query
        self.head = head
        self.about = about
        self.receipt = receipt
        self._own = own
        self._tasks = tasks
        self._answered = answered
        self._send_body = send_body
        self._again = again
        self._trusted = trusted

    def begin(self, body: bytes | None) -> None:
        """The head has come. `body`: None if its end has not; call `came` then."""
        self._body = body
        self._own.run(self._attempt, self._begin)

    def came(self, body: bytes) -> None:
        """All of the body is here."""
        self._body = body
        if not self._is_underway:  # else the task goes on with it
            self._own.run(self._attempt, self._identify)

    def too_large(self) -> None:
        """The body is larger than the limit."""
        if not self.is_answered:
            self._own.run(self._fail, bodies.TooLarge(self._admission.longest_body))

    def gone(self) -> None:
        """The client went away, or is given up."""
        self._is_gone = True
        if self.is_answered:
            return
        if self._task is not None and (self.operation.waits or self._body is None):
            self._task.cancel()
        elif self._body is None:
            self._own.run(self._fail, bodies.ClientGone())

    @property
    def longest_body(self) -> int:
        """In bytes."""
        return self._admission.longest_body

    # Of `kcoord.access.token_watch`

    @property
    def token(self) -> str:
        """The digest of the secret."""
        return self.head.token

    @property
    def secret(self) -> str:
        """The secret itself."""
        return self.head.secret

    def token_ended(self, reason: str) -> None:
        """The token is no longer valid."""
        if self._task is not None:
            self._ended = reason
            self._task.cancel()

    # Steps

    def _begin(self) -> None:
        current.enter_request(self.about)
        current.enter_receipt(self.receipt)
        if (self.head.length or 0) > self._admission.longest_body:
            raise bodies.TooLarge(self._admission.longest_body)
        if math.isnan(self.head.patience_ms):
            raise problem.invalid("X-Request-Timeout-Ms must be a number of milliseconds of up to nine digits")
        principal = self._trusted or self._admission.access.known(self.head.token)
        if principal is None:
            self._identify()
        else:
            self._identified(principal)

    def _attempt(self, step: Callable[..., None], *arguments: Any) -> None:
        """Do a step, unless the request is answered; an error is the answer."""
        if self.is_answered:
            return
        try:
            step(*arguments)
        except (ProtocolError, bodies.ClientGone, asyncio.CancelledError) as error:
            self._fail(error)
        except Exception:
            log.exception("request_failed", endpoint=self.operation.endpoint.operation_id)
            self.respond(problem.response(Error.UNKNOWN_SERVER_ERROR))

    def _identify(self) -> None:
        principal = self._trusted or self._admission.access.known(self.head.token)
        if principal is None:
            secret = self.head.secret or bearer(self.head.headers)  # which says what is wrong with it
            self._start(self._admission.access.authenticate(secret), self._identified)
        else:
            self._identified(principal)

    def _identified(self, principal: Principal) -> None:
        admission, operation = self._admission, self.operation
        if self._is_gone:
            raise bodies.ClientGone
        self._principal = principal
        if admission.quotas.limits_connections:
            self._over = self._claimed(principal)
        if operation.decoder is not None and not self.head.is_json:
            self._names_and_query()  # errors of those come first
            bodies.check_content_type(self.head.headers)
        if self._body is None:
            if self._send_body is not None:
                self._send_body()
            return
        kind = Kind.HOT if operation.is_hot else Kind.REQUEST
        if operation.is_quick or admission.turnstile.is_free(kind):
            self._carry_out()
        else:
            self._later(kind, partial(self._own.run, self._attempt, self._carry_out))

    def _later(self, kind: Kind, begin: Callable[[], object]) -> None:
        self._admission.turnstile.later(kind, begin, self.head.token, again=self._again)

    def _carry_out(self) -> None:
        """It is the turn of the request, which is whole."""
        if self._is_gone:
            raise bodies.ClientGone
        operation, body, principal = self.operation, self._body, self._principal
        assert body is not None
        assert principal is not None
        admission, group_id, transactional_id, query = self._admission, self.route.group_id, "", NO_QUERY
        if group_id is None or self._query:
            group_id, transactional_id, query = self._names_and_query()
        runtime, host, content = admission.runtime, self.head.client_host, None
        if operation.is_big or len(body) > BIG_BYTES:
            call = Call(runtime, principal, content, group_id, query, host, transactional_id)
            self._settle(self._big(call, body))
            return
        if operation.decoder is not None:
            content = bodies.decode(operation.decoder, body)
        call = Call(runtime, principal, content, group_id, query, host, transactional_id)
        if self._over is None and operation.is_hot and not admission.quotas.is_hot:
            result = operation.run(call)
            if isinstance(result, msgspec.Struct):
                self._succeed(result)
            else:
                self._settle(result)
        else:
            self._settle(self._within_quotas(call))

    def _settle(self, result: Any) -> None:
        """Answer with a result, or wait for it."""
        if isinstance(result, msgspec.Struct):
            self._succeed(result)
        elif type(result) is Later:
            self._tasks.add(result.future)
            result.future.add_done_callback(partial(self._completed, result.finish), context=self._own)
        else:
            self._start(result, self._settle)

    def _completed(self, finish: Callable[[Any], Any], future: asyncio.Future[Any]) -> None:
        """The future of a `Later` is done."""
        self._tasks.discard(future)
        self._attempt(lambda: self._settle(finish(future.result())))

    def _start(self, work: Any, go_on: Callable[[Any], None]) -> None:
        """Await something in a task, in its turn, and go on with what it returns."""
        self._is_underway = True
        kind = Kind.HOT_TASK if self.operation.is_hot else Kind.TASK
        if self._admission.turnstile.is_free(kind):
            self._start_task(work, go_on)
        else:
            self._later(kind, partial(self._start_task, work, go_on))

    def _start_task(self, work: Any, go_on: Callable[[Any], None]) -> None:
        if self._is_gone and (self.operation.waits or self._body is None):
            work.close()
            self._own.run(self._fail, bodies.ClientGone())
            return
        coroutine = work if asyncio.iscoroutine(work) else settled(work)
        self._task = task = asyncio.get_running_loop().create_task(coroutine, context=self._own)
        self._tasks.add(task)
        if self.operation.waits and self._trusted is None:
            self._admission.waiting.add(self)
        task.add_done_callback(partial(self._task_ended, go_on), context=self._own)

    def _task_ended(self, go_on: Callable[[Any], None], task: asyncio.Task[Any]) -> None:
        self._task, self._is_underway = None, False
        self._tasks.discard(task)
        self._admission.waiting.discard(self)
        self._attempt(lambda: go_on(task.result()))

    # Quotas

    def _claimed(self, principal: Principal) -> ProtocolError | None:
        """Count the connection; the refusal of one too many, if the request may keep a member in its group.

        Such a request is carried out first. Raises THROTTLING_QUOTA_EXCEEDED for all others.
        """
        try:
            if principal.token_id:
                self._admission.connections.claim_of(self.head.scope, principal)
        except ProtocolError as refusal:
            if not self.operation.metering.is_of_member:
                raise
            return refusal
        return None

    async def _big(self, call: Call[Any], body: bytes) -> msgspec.Struct:
        """The result of a request that waits for a place. `call` is still without its body."""
        operation, quotas = self.operation, self._admission.quotas
        if operation.is_big:  # what does not wait for a place need not be looked at again
            quotas.admit(call.principal, {Budget.CPU: 0, Budget.BYTES: 0})
        async with self._admission.turnstile.place(call.principal.token_id):
            with off_loop.charging(quotas.charger(call.principal) if operation.is_big else None):
                if operation.decoder is not None:
                    size = len(body) // BYTES_PER_PARTITION
                    content = await off_loop.run(size, bodies.decode, operation.decoder, body)
                    call = msgspec.structs.replace(call, body=content)
                if not operation.waits:
                    return await settled(self._within_quotas(call))
        # Others wait for the place, and what this one waits for may be another request.
        return await settled(self._within_quotas(call))

    def _within_quotas(self, call: Call[Any]) -> Any:
        """The result of a call, unless it is over a quota, or its connection is one too many.

        Raises THROTTLING_QUOTA_EXCEEDED.
        """
        over, metering = self._over, self.operation.metering
        if over is None:
            return self._metered(call)
        if metering.renew is not None:
            return _renewed(metering.renew(call), over)
        return then(self._metered(call), partial(self._refused_if_kept, call, over, 0))

    def _metered(self, call: Call[Any]) -> Any:
        """The result of a call whose weight is spent. Raises THROTTLING_QUOTA_EXCEEDED."""
        operation, quotas, principal = self.operation, self._admission.quotas, call.principal
        metering = operation.metering
        if metering.budget is None or not quotas.meter(principal):
            return operation.run(call)
        weight = metering.weight(call.body)
        if metering.keeps is not None:
            refusal = quotas.refused_heartbeat(principal, weight)
            result = operation.run(call)
            return result if refusal is None else then(result, partial(self._refused_if_kept, call, refusal, weight))
        try:
            quotas.admit(principal, {metering.budget: weight, Budget.BYTES: 0}, counts=metering.renew is not None)
        except ProtocolError as refusal:
            if metering.renew is None:
                raise
            return _renewed(metering.renew(call), refusal)
        return operation.run(call)

    def _refused_if_kept(
        self, call: Call[Any], refusal: ProtocolError, weight: int, result: msgspec.Struct
    ) -> msgspec.Struct:
        """The result of a heartbeat; `refusal` is raised if it says nothing but that the member is still there."""
        keeps = self.operation.metering.keeps
        if keeps is not None and keeps(call.body, result):
            HEARTBEATS_KEPT.inc(weight)
            raise refusal
        return result

    # What the request says

    def _names_and_query(self) -> Names:
        """Raises ProtocolError."""
        route, endpoint = self.route, self.operation.endpoint
        query = self._parsed_query() if self._query else NO_QUERY
        if route.group_id is not None:
            return route.group_id, "", query
        assert route.name is not None
        if TRANSACTIONAL_ID in endpoint.path:
            return "", paths.transactional_id_of(route.name), query
        return paths.group_id_of(route.name, may_be_empty=endpoint.takes_empty_group_id), "", query

    def _parsed_query(self) -> Mapping[str, Sequence[str]]:
        known = self.operation.parameters
        try:
            pairs = parse_qsl(self._query.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            raise problem.invalid("the query string is not percent-encoded UTF-8") from None
        found: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in known:
                raise problem.no_such_parameter(name, known)
            found.setdefault(name, []).append(value)
        return found

    # Answers

    def _succeed(self, result: msgspec.Struct) -> None:
        content = self.operation.encode(result)
        if self._admission.quotas.is_hot:
            self._spend(len(self._body or b"") + len(content))
        headers = None if self._over is None else [*_json(content), (b"connection", b"close")]
        self.about.status = 200
        self.is_answered = True
        self._answered(self, 200, headers, content)

    def _fail(self, error: BaseException) -> None:
        """Answer with an error."""
        if isinstance(error, asyncio.CancelledError):
            error = self._meant_by_cancelling()
        if isinstance(error, bodies.ClientGone):
            self._answer(CLIENT_GONE_STATUS, None, b"")
            return
        assert isinstance(error, ProtocolError)
        if error.error in NOT_ALLOWED:
            self._note(error)
        if self._principal is not None and error.error is not Error.THROTTLING_QUOTA_EXCEEDED:
            self._spend(len(self._body or b""))
        response = problem.from_error(error)
        if error.fields.get("budget") == CONNECTIONS:
            response.headers["connection"] = "close"
        error.__traceback__ = None  # its frames refer to the request, and to the future that has the error
        self.respond(response)

    def respond(self, response: Response) -> None:
        """Answer with a response."""
        self._answer(response.status_code, response.raw_headers, bytes(response.body))

    def _meant_by_cancelling(self) -> Exception:
        if self._is_gone:
            return bodies.ClientGone()
        if self._ended:
            return ProtocolError(Error.SASL_AUTHENTICATION_FAILED, self._ended)
        detail = "this server stopped before the request came to its end; the outcome is not known"
        return ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail)

    def _answer(self, status: int, headers: Headers | None, content: bytes) -> None:
        self.about.status = status
        self.is_answered = True
        self._answered(self, status, headers, content)

    def _spend(self, size: int) -> None:
        """The request and its answer have used this many bytes."""
        quotas = self._admission.quotas
        if quotas.is_hot and self._principal is not None:
            quotas.spend(self._principal, None, size)

    def _note(self, error: ProtocolError) -> None:
        """Record in the audit that the caller may not do this."""
        caller = Caller(current.Door.HTTP, address=self.head.client_host, request_id=self.about.request_id)
        with current.calling(caller):
            if error.error is not Error.SASL_AUTHENTICATION_FAILED and self._principal is not None:
                current.identify(self._principal.name, self._principal.token_id)
            note_error(self._admission.runtime, self.operation.endpoint.operation_id, error)


def _json(content: bytes) -> Headers:
    return [(b"content-length", b"%d" % len(content)), (b"content-type", JSON)]


async def _renewed(renewing: Any, refusal: ProtocolError) -> Any:
    """Extend the session that a refused request would have extended. Raises the refusal."""
    await renewing
    raise refusal


CHUNKED = b"chunked"


class BadFraming(Exception):
    """What a peer sent is not a request, or does not say where it ends; the text is for the peer.

    `ambiguous`: it says so in two ways.
    """

    def __init__(self, detail: str, *, ambiguous: bool = False) -> None:
        super().__init__(detail)
        self.ambiguous = ambiguous


def ambiguous_framing(http_version: bytes, names: Iterable[bytes]) -> str | None:
    """What is wrong with the framing of a request, None if nothing.

    Parameters: `http_version` such as b"1.1"; `names` of its headers, in lower case.
    """
    given = frozenset(names)
    if b"transfer-encoding" not in given:
        return None
    if b"content-length" in given:
        return "the request has both Content-Length and Transfer-Encoding; send one of them"
    if http_version < b"1.1":
        return f"HTTP/{http_version.decode('latin-1')} has no Transfer-Encoding; send Content-Length"
    return None


def body_length(http_version: bytes, headers: Collection[tuple[bytes, bytes]]) -> int | None:
    """Bytes of a request's body, 0 if it has none, None if it comes in chunks.

    Parameters: `headers` with names in lower case, among them at most one Content-Length, which consists of digits.
    Raises BadFraming for any transfer coding but chunked, and unless there is exactly one Host (HTTP/1.0: at most one).
    """
    hosts = length = 0
    codings: list[bytes] = []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            codings.append(value.lower())
    if hosts > 1 or (hosts == 0 and http_version >= b"1.1"):
        raise BadFraming("the request must have one Host header")
    if not codings:
        return length
    ambiguity = ambiguous_framing(http_version, (name for name, _ in headers))
    if ambiguity is not None:
        raise BadFraming(ambiguity, ambiguous=True)
    if codings != [CHUNKED]:
        raise BadFraming("the only Transfer-Encoding is chunked, and it is sent once")
    return None
