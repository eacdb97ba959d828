"""Spans of transactions whose request is over, or that fail."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, Tracer

from kcoord.config import Config
from kcoord.database.pool import Connection
from kcoord.door.http.tracing import TracedDatabase
from kcoord.protocol.errors import Error, ProtocolError


@pytest.fixture
def spans() -> InMemorySpanExporter:
    """What was traced."""
    return InMemorySpanExporter()


@pytest.fixture
def tracer(spans: InMemorySpanExporter) -> Tracer:
    """A tracer into memory."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider.get_tracer("test")


@pytest.fixture
async def traced(database: str, tracer: Tracer) -> AsyncIterator[TracedDatabase]:
    """A database whose transactions are traced."""
    database_of_test = TracedDatabase(tracer, database, Config({}))
    await database_of_test.open()
    yield database_of_test
    await database_of_test.close()


async def nothing(connection: Connection) -> int:
    return 7


def transaction(spans: InMemorySpanExporter) -> ReadableSpan:
    """The only span of a transaction."""
    (found,) = (span for span in spans.get_finished_spans() if span.name == "transaction")
    return found


async def test_a_request_under_way_is_the_parent(
    traced: TracedDatabase, tracer: Tracer, spans: InMemorySpanExporter
) -> None:
    with tracer.start_as_current_span("request") as request:
        assert await traced.transaction(nothing) == 7
    assert transaction(spans).parent == request.get_span_context()
    assert transaction(spans).status.status_code is StatusCode.UNSET


async def test_a_request_that_is_over_is_not(
    traced: TracedDatabase, tracer: Tracer, spans: InMemorySpanExporter
) -> None:
    """The task of a group goes on with the commands of others in the context of the request that started it."""
    with tracer.start_as_current_span("request") as request:
        request.end()
        await traced.transaction(nothing)
    assert transaction(spans).parent is None


async def test_what_failed_is_named_without_its_text(traced: TracedDatabase, spans: InMemorySpanExporter) -> None:
    async def refuse(connection: Connection) -> None:
        raise ProtocolError(Error.UNKNOWN_MEMBER_ID, "group billing has no member x")

    with pytest.raises(ProtocolError):
        await traced.transaction(refuse)
    found = transaction(spans)
    assert dict(found.attributes or {}) == {"db.system.name": "postgresql", "error.type": "UNKNOWN_MEMBER_ID"}
    assert (found.status.status_code, found.status.description, list(found.events)) == (StatusCode.ERROR, None, [])
