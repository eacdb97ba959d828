"""Fixtures of the services of this process, and of members that speak HTTP to the real application in virtual time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.support.api import Members, client_of
from tests.support.steady import wait_out_stalls
from tests.support.told import told

ClientWith = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
def service(runtime: Runtime) -> GroupService:
    """The group service of this process."""
    return runtime.get(GroupService)


@pytest.fixture
async def other(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[GroupService]:
    """The group service of another process on the same database: its own pool, cache, listener and parked requests."""
    runtime = wait_out_stalls(Runtime(config, database, clock))
    await runtime.start()
    await runtime.notifications.wait_listening()
    yield runtime.get(GroupService)
    await runtime.stop()


@pytest.fixture
def topics(runtime: Runtime) -> TopicService:
    """The topic service of this process."""
    return runtime.get(TopicService)


@pytest.fixture
def members(api: httpx.AsyncClient, service: GroupService, clock: VirtualClock) -> Members:
    """Joins and syncs that take their whole course."""
    return Members(api, service, clock)


@pytest.fixture
async def topic(runtime: Runtime) -> str:
    """A topic with three partitions."""
    return (await runtime.get(TopicService).create("orders", 3)).name


@pytest.fixture
async def job(runtime: Runtime) -> str:
    """A topic `job` of one partition, for share groups; its id."""
    return str((await runtime.get(TopicService).create("job", 1)).topic_id)


@pytest.fixture
async def client_with(runtime: Runtime) -> AsyncIterator[ClientWith]:
    """Make a client whose token has just these rules, written `operation:resource:name`."""
    async with AsyncExitStack() as clients:

        async def make(*rules: str, **token: Any) -> httpx.AsyncClient:
            secret = await asyncio.to_thread(_create, rules, token)
            await told(runtime)  # being told later would make the process look the token up again
            return await clients.enter_async_context(client_of(secret))

        yield make


def _create(rules: tuple[str, ...], token: dict[str, Any]) -> str:
    from django.db import connections

    from kcoord.access.tokens import create_token, parse_rule

    try:
        return create_token(f"limited-{secrets.token_hex(4)}", [parse_rule(rule) for rule in rules], **token).secret
    finally:
        connections.close_all()
