"""The software of members: named when a client connects, shown with its members, whoever is asked."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from frontend.pages.member.view import member_page
from groups.clients import KEPT_MS, Client, ClientSoftware, Software
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.frontend.viewers import ALL
from tests.support.api import Members
from tests.wire.client import WireClient
from tests.wire.conftest import Connect
from tests.wire.support import joined

NAMES = {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"}
UNKNOWN = dict.fromkeys(NAMES)


async def software_in(api: httpx.AsyncClient, group_id: str = "g") -> list[dict[str, Any]]:
    """The software of the members of a group, as `/v1` tells it."""
    group = (await api.get(f"/v1/groups/{group_id}")).json()
    return [{name: member[name] for name in NAMES} for member in group["members"]]


async def named(client: WireClient) -> None:
    assert (await client.ask("api_versions", 4, **NAMES)).error_code == 0


async def test_a_member_of_the_classic_protocol(
    connect: Connect, runtime: Runtime, service: GroupService, clock: VirtualClock, api: httpx.AsyncClient
) -> None:
    client = await connect()
    await named(client)
    answer = await joined(client, service, clock)
    assert await software_in(api) == [NAMES]
    page = await member_page(runtime.db, ALL, "g", answer.member_id)
    assert page.present is not None
    assert page.present.described.member.software == "apache-kafka-java 4.3.1"


@pytest.mark.parametrize("says", [True, False])
async def test_a_member_of_the_consumer_protocol(
    connect: Connect, topic: str, api: httpx.AsyncClient, says: bool
) -> None:
    """franz-go names itself on its first connection only, and joins on another one."""
    if says:
        await named(await connect())
    beat = {"member_id": str(uuid.uuid4()), "member_epoch": 0, "topic_partitions": []}
    beat |= {"subscribed_topic_names": [topic], "rebalance_timeout": 30_000}
    answer = await (await connect()).ask("consumer_group_heartbeat", 1, group_id="c", **beat)
    assert answer.error_code == 0
    assert await software_in(api, "c") == [NAMES if says else UNKNOWN]


async def test_a_member_over_http_has_named_nothing(members: Members, api: httpx.AsyncClient) -> None:
    await members.stable()
    assert await software_in(api) == [UNKNOWN]


async def test_what_is_stored_is_replaced_and_forgotten(runtime: Runtime, clock: VirtualClock) -> None:
    clients = runtime.get(ClientSoftware)
    old, new = Client("old", "10.0.0.1"), Client("new", "10.0.0.1")
    await clients.remember(old, Software("a", "1"))
    await clients.remember(old, Software("a", "2"))
    assert await clients.find([old, old, new]) == {old: Software("a", "2")}
    clock.advance(KEPT_MS + 1)
    await clients.remember(new, Software("b", "1"))
    assert await clients.find([old, new]) == {new: Software("b", "1")}
