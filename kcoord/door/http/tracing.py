"""Traces over OTLP/HTTP. Imported only if the setting `otlp.endpoint` names a collector.

One span for each request, child of the caller's `traceparent`, and one for each transaction. A transaction of a group
decides all commands that wait for it; its span belongs to the request that began it. If that one has been answered
already, the span begins a trace of its own. OpenTelemetry's own variables choose the rest: `OTEL_TRACES_SAMPLER`,
`OTEL_EXPORTER_OTLP_HEADERS`.

Source: W3C Trace Context; OpenTelemetry semantic conventions for HTTP servers.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from opentelemetry.context import Context, attach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from kcoord import __version__
from kcoord.config import Config
from kcoord.database.pool import Database, Work
from kcoord.door.http.middleware import METHODS
from kcoord.protocol.errors import ProtocolError
from kcoord.requests import current
from kcoord.requests.current import QUIET_ROUTES, Receipt

T = TypeVar("T")

EXPORT_SECONDS = 2.0
"""How long a collector may take for a batch."""

LAST_SECONDS = 1.0
"""The same for the last spans of a process that stops; its supervisor waits for three seconds in all."""

CALLER = TraceContextTextMapPropagator()


class Traces:
    """The spans of a process, sent to a collector in the background."""

    def __init__(self, config: Config) -> None:
        endpoint = f"{config.str('otlp.endpoint').rstrip('/')}/v1/traces"
        resource = Resource.create({"service.name": "kcoord", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=EXPORT_SECONDS)))
        self.tracer = self._provider.get_tracer("kcoord", __version__)
        self.names_groups = config.bool("otlp.group.ids")

    def database(self, *arguments: Any) -> Database:
        """A database whose transactions are traced; takes what `Database` takes."""
        return TracedDatabase(self.tracer, *arguments)

    def middleware(self) -> Middleware:
        """Traces the requests that are not for operations."""
        return Middleware(RequestSpans, traces=self)

    def begin(self, method: str, scope: Mapping[str, Any], own: contextvars.Context) -> Span:
        """See `kcoord.door.http.door.Spans`."""
        span = self.tracer.start_span(method, _caller(scope), SpanKind.SERVER)
        own.run(attach, set_span_in_context(span))
        return span

    def end(self, span: Span, method: str, request: current.RequestContext, name: bytes | None) -> None:
        """See `kcoord.door.http.door.Spans`."""
        if span.is_recording():
            _describe(span, method, request)
            if self.names_groups and name is not None and "{group_id}" in request.route:
                span.set_attribute("kcoord.group_id", unquote_to_bytes(name).decode("utf-8", "replace"))
        span.end()

    async def stop(self) -> None:
        """Send what is left, for LAST_SECONDS at most: a collector that does not answer must not delay the stop."""
        last = threading.Thread(target=self._provider.shutdown, name="kcoord-traces", daemon=True)
        last.start()
        await asyncio.to_thread(last.join, LAST_SECONDS)


class RequestSpans:
    """ASGI middleware inside `RequestLog`: one span for each request of the application that is not a probe."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self.app = app
        self._tracer = traces.tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = current.request()
        if scope["type"] != "http" or request is None or scope["path"] in QUIET_ROUTES:
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        with self._tracer.start_as_current_span(method, _caller(scope), SpanKind.SERVER) as span:
            try:
                await self.app(scope, receive, send)
            finally:
                if span.is_recording():
                    _describe(span, method, request)


def _describe(span: Span, method: str, request: current.RequestContext) -> None:
    span.update_name(f"{method} {request.route}")
    span.set_attributes(
        {
            "http.request.method": method,
            "http.route": request.route,
            "http.response.status_code": request.status,
            "kcoord.request_id": request.request_id,
        }
    )
    if request.error is not None:
        span.set_attribute("error.type", request.error)
    if request.status >= 500:
        span.set_status(StatusCode.ERROR)


class TracedDatabase(Database):
    """A database with a span for each transaction, waits for its lock and repetitions included."""

    def __init__(self, tracer: Tracer, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._tracer = tracer

    async def transaction(
        self,
        work: Work[T],
        *,
        key: str = "",
        known: bool = True,
        long: bool = False,
        receipt: Callable[[], Receipt | None] = current.receipt,
    ) -> T:
        """As in `Database`."""
        # A request that has been answered gets no more children.
        parent = None if get_current_span().is_recording() else Context()
        kind, system = SpanKind.CLIENT, {"db.system.name": "postgresql"}
        with self._tracer.start_as_current_span(
            "transaction", parent, kind, system, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                return await super().transaction(work, key=key, known=known, long=long, receipt=receipt)
            except BaseException as error:
                told = error.error.name if isinstance(error, ProtocolError) else type(error).__name__
                span.set_attribute("error.type", told)
                span.set_status(StatusCode.ERROR)
                raise


def _caller(scope: Mapping[str, Any]) -> Context:
    """The caller's span, of the headers `traceparent` and `tracestate`; an empty context without a valid one."""
    wanted = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name.startswith(b"trace")}
    return CALLER.extract(wanted, Context())
