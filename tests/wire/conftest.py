"""A gateway of this process in virtual time, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from groups.api.kafka.apis import APIS as OF_GROUPS
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from offsets.api.kafka.apis import APIS as OF_OFFSETS
from tests.support.database import cloned_database
from tests.wire.client import WireClient
from tests.wire.kafka_workers import Listening, listening_on

Connect = Callable[..., Awaitable[WireClient]]


@pytest.fixture(scope="session")
def listening(postgres: str) -> Iterator[Listening]:
    """A server that Kafka clients use; for modules of the xdist group `kafka-clients`."""
    with cloned_database(postgres) as conninfo, listening_on(conninfo) as found:
        yield found


@pytest.fixture
async def gateway(runtime: Runtime) -> AsyncIterator[Gateway]:
    """It listens on a port of its own."""
    running = Gateway(runtime, (*OF_GROUPS, *OF_OFFSETS))
    running.start()
    yield running
    await running.stop()


@pytest.fixture
async def connect(gateway: Gateway, token: str) -> AsyncIterator[Connect]:
    """Open a connection, by default one that is logged in with a token that may do everything."""
    async with AsyncExitStack() as clients:

        async def make(secret: str | None = token, client_id: str = "t") -> WireClient:
            client = await clients.enter_async_context(WireClient(gateway.port, client_id=client_id))
            return client if secret is None else await client.log_in(secret)

        yield make


@pytest.fixture
async def wire(connect: Connect) -> WireClient:
    """A connection that is logged in with a token that may do everything."""
    return await connect()
