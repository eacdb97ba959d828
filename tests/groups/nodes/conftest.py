"""Nodes in virtual time: each has a runtime of its own, and renews its lease when the test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from groups.engine.agent import NodeAgent
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.groups.nodes.support import Cluster, Store
from tests.support.steady import wait_out_stalls


@pytest.fixture
async def cluster(database: str, clock: VirtualClock) -> AsyncIterator[Cluster]:
    """Starts nodes by name."""
    async with AsyncExitStack() as running:

        async def start(name: str, **settings: Any) -> NodeAgent:
            values = {"node.id": name, "advertised.url": f"http://{name}:8000"}
            values |= {key.replace("_", "."): value for key, value in settings.items()}
            runtime = Runtime(Config(values), database, clock)
            wait_out_stalls(runtime)
            await runtime.start()
            running.push_async_callback(runtime.stop)
            await runtime.notifications.wait_listening()
            return runtime.get(NodeAgent)

        yield Cluster(start, clock)


@pytest.fixture
def store(database: str) -> Callable[[], Store]:
    """What the tables of nodes say."""

    def read() -> Store:
        with psycopg.connect(database) as connection:
            return Store.read(connection)

    return read
