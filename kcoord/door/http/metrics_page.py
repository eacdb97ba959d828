"""/metrics: what this process counts, what the database knows of Celery, and the groups that the caller may describe.

Nobody needs a token, but without one no group or topic is named, unless `metrics.public.groups` allows it.
Source: http-api.md 5 and 7.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import prometheus_client
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kcoord import metrics
from kcoord.access.audit.refusals import note_error
from kcoord.access.rights import ALL_ALLOWED, Access, Principal, bearer
from kcoord.database import counters, task_health
from kcoord.database.sql import queries
from kcoord.door.http import problem
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Caller, Door

Q = queries("kcoord")
PATH = "/metrics"

ANYBODY = Principal(0, "anybody", ALL_ALLOWED)
"""Callers without a token where the operator lets them see every group."""

GroupSeries = Callable[[Runtime, Principal | None], Awaitable[bytes]]
"""Series about groups in the text format, by name only those that the caller may describe; None: no names at all."""

Look = Callable[[Runtime], None]
"""Sets gauges from what the process knows; asked at every scrape, whether the database is available or not."""


def route(group_series: GroupSeries, look: Look) -> Route:
    """The endpoint."""

    async def page(request: Request) -> Response:
        """All metrics in the text format; while the database is unavailable without those stored there."""
        about = current.request()
        if about is not None:
            about.route = PATH
        stored = b""
        if runtimes.is_running():
            runtime = runtimes.current()
            try:
                stored = await _stored(runtime, request, group_series)
            except ProtocolError as error:
                if error.error is not Error.COORDINATOR_NOT_AVAILABLE:
                    _note(runtime, request, error)
                    return problem.from_error(error)
                metrics.DATABASE_UP.set(0)  # the outage is logged, and /readyz reports it
            _look_at_pools(runtime)
            look(runtime)
        content = prometheus_client.generate_latest() + stored
        return Response(content, headers={"content-type": prometheus_client.CONTENT_TYPE_LATEST})

    return Route(PATH, page, methods=["GET"])


async def _stored(runtime: Runtime, request: Request, group_series: GroupSeries) -> bytes:
    """What the database knows. Raises SASL_AUTHENTICATION_FAILED, COORDINATOR_NOT_AVAILABLE."""
    caller = await _caller(runtime, request)
    began = time.monotonic()
    async with runtime.db.connection() as connection:
        lag_ms = await runtime.db.value(connection, Q.timer_lag, {"now": runtime.db.clock.override_ms})
        metrics.DATABASE_SECONDS.set(time.monotonic() - began)
        own_queue = not runtime.config.str("broker.url")
        tasks = await task_health.read(runtime.db, connection, own_queue=own_queue)
    metrics.DATABASE_UP.set(1)
    if lag_ms is not None:
        metrics.TICK_LAG_MS.set(lag_ms)
    counted = counters.exposed(await counters.stored(runtime.db))
    return counted + task_health.exposed(tasks) + await group_series(runtime, caller)


async def _caller(runtime: Runtime, request: Request) -> Principal | None:
    """A wrong token is refused rather than ignored, or nobody would notice that the groups are missing."""
    if "authorization" in request.headers:
        return await runtime.get(Access).authenticate(bearer(request.scope["headers"]))
    return ANYBODY if runtime.config.bool("metrics.public.groups") else None


def _note(runtime: Runtime, request: Request, error: ProtocolError) -> None:
    """Record in the audit that a wrong token was sent."""
    address = request.client.host if request.client else ""
    with current.calling(Caller(Door.HTTP, address=address, request_id=current.request_id())):
        note_error(runtime, "metrics", error)


def _look_at_pools(runtime: Runtime) -> None:
    for name, pool in runtime.db.usage().items():
        metrics.DATABASE_CONNECTIONS.labels(name, "used").set(pool.used)
        metrics.DATABASE_CONNECTIONS.labels(name, "idle").set(pool.idle)
        metrics.DATABASE_CONNECTIONS_MAX.labels(name).set(pool.most)
        metrics.DATABASE_WAITING.labels(name).set(pool.waiting)
