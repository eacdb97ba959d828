"""Several server processes share one group, and one of them may die at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import psycopg
import pytest

from tests.bench.revoking import PATIENCE_SECONDS, revocation
from tests.support.http_members import HttpMember
from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 1_000, "KCOORD_TOKEN_CACHE_MS": 600_000}

RULES = [{"operation": "describe", "resource": "group", "pattern": "prefix", "name": ""}]


@pytest.fixture
def servers(database: str) -> Iterator[list[Running]]:
    """Two servers on one database."""
    with start_server(database, env=SETTINGS) as first, start_server(database, env=SETTINGS) as second:
        for server in (first, second):
            server.wait_ready()
        yield [first, second]


@pytest.fixture
async def client(token: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that waits longer than any request is held."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=70) as client:
        yield client


async def test_members_at_different_servers_share_a_group(servers: list[Running], client: httpx.AsyncClient) -> None:
    members = [HttpMember(client, [server.url]) for server in servers]
    partitions = await asyncio.wait_for(asyncio.gather(*(member.become_stable() for member in members)), 60)
    assert sorted(partition["t"] for partition in partitions) == [[0], [1]]
    assert members[0].generation_id == members[1].generation_id
    assert [(await member.heartbeat())[0] for member in members] == [200, 200]


async def test_a_token_revoked_at_one_server_is_refused_by_both(servers: list[Running], token: str) -> None:
    """Long before they would look it up again. How soon is measured by the bench: this machine may be busy."""
    refused, deleted = await asyncio.to_thread(revocation, servers, token)
    assert deleted > 0
    assert refused < PATIENCE_SECONDS


@pytest.mark.whole("waits at two servers again; the default has a join that the other server completes")
async def test_a_join_held_by_one_server_ends_when_its_token_is_revoked_at_the_other(
    servers: list[Running], client: httpx.AsyncClient
) -> None:
    """Long before the answer of the rebalance, and before the server would look the token up again."""
    here, there = (server.url for server in servers)
    leader = HttpMember(client, [here], rebalance_timeout_ms=300_000, session_timeout_ms=300_000)
    await asyncio.wait_for(leader.become_stable(), 30)
    rules = [*RULES, {"operation": "read", "resource": "group", "pattern": "prefix", "name": ""}]
    made = (await client.post(f"{here}/v1/tokens", json={"name": "brief", "rules": rules})).json()
    headers = {"Authorization": f"Bearer {made['secret']}"}
    async with httpx.AsyncClient(headers=headers, timeout=70) as brief:
        newcomer = HttpMember(brief, [there])
        joining = asyncio.create_task(newcomer.join(attempts=2, max_wait_ms=60_000))
        while (await leader.heartbeat())[1].get("error") != "REBALANCE_IN_PROGRESS":
            assert not joining.done()
        assert (await client.delete(f"{here}/v1/tokens/{made['id']}")).status_code in (200, 204)
        with pytest.raises(AssertionError, match="no join after 2 requests"):
            await asyncio.wait_for(joining, 70)
    status, problem = newcomer.answers[-1]
    assert (status, problem["error"]) == (401, "SASL_AUTHENTICATION_FAILED")


async def test_join_held_by_one_server_is_completed_at_the_other(
    servers: list[Running], client: httpx.AsyncClient
) -> None:
    here, there = (HttpMember(client, [server.url]) for server in servers)
    await asyncio.wait_for(here.become_stable(), 30)
    generation = here.generation_id
    joining = asyncio.create_task(there.join())
    while (await here.heartbeat())[1].get("error") != "REBALANCE_IN_PROGRESS":
        assert not joining.done()
    await asyncio.wait_for(here.join(), 30)
    await asyncio.wait_for(joining, 30)
    assert here.generation_id == there.generation_id == generation + 1
    assert [status for status, _ in there.answers] == [409, 200], "one id, then one join that was held"


@pytest.mark.whole("waits at two servers again; the default has a join that the other server completes")
async def test_killed_server_with_parked_joins_costs_its_clients_one_retry(
    servers: list[Running], client: httpx.AsyncClient, database: str
) -> None:
    victim, survivor = servers
    watcher = HttpMember(client, [survivor.url])
    await asyncio.wait_for(watcher.become_stable(), 30)
    members = [HttpMember(client, [victim.url, survivor.url]) for _ in range(5)]
    tasks = [asyncio.create_task(member.become_stable()) for member in members]
    await parked(database, len(members))
    victim.kill()
    tasks.append(asyncio.create_task(watcher.become_stable()))
    partitions = await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert sorted(partition["t"] for partition in partitions) == [[n] for n in range(6)]
    assert len({member.generation_id for member in (*members, watcher)}) == 1
    for member in members:
        assert sum(status == 0 for status, _ in member.answers) == 1
    with psycopg.connect(database) as connection:
        assert connection.execute("select state from groups_group").fetchone() == ("Stable",)


async def parked(database: str, count: int) -> None:
    """Wait until `count` members wait in a join."""
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(400):
            row = connection.execute(
                "select count(*) from groups_member where join_parked_until is not null"
            ).fetchone()
            if row and row[0] >= count:
                return
            await asyncio.sleep(0.02)
    raise AssertionError(f"never {count} parked joins: {row}")
