"""Composition root of a server process: the data plane on Starlette, everything else on Django.

Members' requests never pass through Django; both planes share request ids, the access log, the body limit and the
shape of errors.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from groups.api.routes import OPERATIONS as GROUPS
from groups.engine import standing
from groups.engine.agent import NodeAgent
from kcoord.access.quotas.stored import StoredQuotas
from kcoord.database.pool import Database
from kcoord.door.http import health, logs, metrics_page
from kcoord.door.http.body import BodyLimit
from kcoord.door.http.door import DOOR, Door, Operations
from kcoord.door.http.middleware import NotAnOperation, ProblemNet, RequestLog
from kcoord.door.http.serving import Endpoint, Operation
from kcoord.process import off_loop, runtime
from kcoord.process.garbage import GarbageSearch
from kcoord.requests import current
from offsets.api.routes import OPERATIONS as OFFSETS
from offsets.commits import acknowledged
from offsets.metrics import group_series

if TYPE_CHECKING:
    from kcoord.door.http.tracing import Traces
    from kcoord.door.kafka.gateway import Gateway

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
django_application = cast(ASGIApp, get_asgi_application())

OPERATIONS: tuple[Operation, ...] = (*GROUPS, *OFFSETS)
BY_PATH = Operations(OPERATIONS)
DATA_PLANE_ROUTES: tuple[Endpoint, ...] = tuple(operation.endpoint for operation in OPERATIONS)
"""What the OpenAPI document says about the data plane."""


def _traces() -> Traces | None:
    """None unless a collector is set: without one nothing of OpenTelemetry is imported."""
    if not settings.KCOORD.str("otlp.endpoint"):
        return None
    from kcoord.door.http.tracing import Traces

    return Traces(settings.KCOORD)


TRACES = _traces()


def _gateway(running: runtime.Runtime) -> Gateway | None:
    """The listener for Kafka clients; None unless its port is set: without it nothing of kio is imported."""
    if not running.config.int("kafka.port"):
        return None
    from groups.api.kafka.apis import APIS as OF_GROUPS
    from kcoord.door.kafka.gateway import Gateway
    from offsets.api.kafka.apis import APIS as OF_OFFSETS

    return Gateway(running, (*OF_GROUPS, *OF_OFFSETS))


def state() -> dict[str, object]:
    """What a server's connections need to answer operations (ASGI, "Lifespan State"); nothing without a runtime."""
    return {DOOR: Door(runtime.current(), BY_PATH, TRACES)} if runtime.is_running() else {}


@asynccontextmanager
async def lifespan(application: Starlette) -> AsyncIterator[dict[str, object]]:
    """Run the process's runtime; on shutdown answer parked requests and close connections."""
    database = Database if TRACES is None else TRACES.database
    running = runtime.Runtime(settings.KCOORD, settings.CONNINFO, database=database)
    await running.start()
    runtime.use(running)
    running.db.request_age.pulse.start()
    running.get(NodeAgent).start()
    running.get(StoredQuotas).start()
    running.get(acknowledged.AcknowledgedCommits)  # it reads what others found, also if no commit comes here
    current.is_service(running.get(NodeAgent).node_id)
    off_loop.share_interpreter()
    garbage = GarbageSearch()
    garbage.start()
    gateway = _gateway(running)
    try:
        if gateway is not None:
            gateway.start()
        yield state()
    finally:
        garbage.stop()
        if gateway is not None:
            await gateway.stop()
        running.db.request_age.pulse.stop()
        await running.stop()
        runtime.use(None)
        if TRACES is not None:
            await TRACES.stop()


def make_application() -> Starlette:
    """The ASGI application. Needs a current runtime (`lifespan` makes one) to answer anything but /livez."""
    all_routes: list[BaseRoute] = [
        *health.routes(lambda running: {**standing.checks(running), **acknowledged.checks(running)}),
        metrics_page.route(group_series, standing.measure),
    ]
    starlette = Starlette(
        routes=all_routes,
        lifespan=lifespan,
        middleware=[
            Middleware(RequestLog),
            *([] if TRACES is None else [TRACES.middleware()]),
            Middleware(NotAnOperation, operations=BY_PATH),
            Middleware(BodyLimit, max_bytes=settings.KCOORD.int("http.max.body.bytes")),
        ],
    )
    # Not a Mount: its pattern does not match a path with a line feed, and "%0A" in a group id needs a proper error.
    starlette.router.redirect_slashes = False
    starlette.router.default = ProblemNet(django_application)
    return starlette


logs.configure(settings.KCOORD.str("log.level"))
application = make_application()
# Imports the views. Django would do that within the first request, on the event loop: seconds on a machine that starts
# other processes, of the time that a write may take.
get_resolver().url_patterns  # noqa: B018
