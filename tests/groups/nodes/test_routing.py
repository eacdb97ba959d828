"""Which node answers: FindCoordinator, and what the others say with `coordinator.routing=owner`. Over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from groups.core.model.group import partition_of
from groups.engine.agent import NodeAgent
from groups.nodes.hosting import Hosting
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from tests.groups.nodes.support import PARTITIONS, Cluster, beat
from tests.support.api import client_of

NODE = {"node.id": "here", "advertised.url": "http://testserver", "notifications.repair.interval.ms": 60_000}


@pytest.fixture(params=["any", "owner"])
def routing(request: pytest.FixtureRequest) -> str:
    """Both ways."""
    return str(request.param)


@pytest.fixture
def config(routing: str) -> Config:
    """The node behind `api`."""
    return Config({**NODE, "coordinator.routing": routing})


@pytest.fixture
async def other(runtime: Runtime, cluster: Cluster) -> NodeAgent:
    """Another node, which owns the other half."""
    here = runtime.get(NodeAgent)
    runtime.get(Hosting).is_node = True
    await here.beat()
    there = await cluster.start("there", advertised_url="https://there.example")
    await beat(there, here)
    return there


def groups_of(runtime: Runtime) -> tuple[str, str]:
    """A group of the node behind `api`, and one of the other."""
    own = runtime.get(Hosting).shards
    names = [f"g{number}" for number in range(200)]
    mine = next(name for name in names if partition_of(name, PARTITIONS) in own)
    return mine, next(name for name in names if partition_of(name, PARTITIONS) not in own)


def join(member_id: str = "") -> dict[str, Any]:
    return {
        "member_id": member_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
        "max_wait_ms": 30_000,
    }


@pytest.mark.usefixtures("other")
async def test_find_coordinator_names_the_owner_of_each_key(api: httpx.AsyncClient, runtime: Runtime) -> None:
    mine, theirs = groups_of(runtime)
    answer = await api.get("/v1/coordinator", params={"group_id": [mine, theirs]})
    found = {entry["key"]: entry for entry in answer.json()["coordinators"]}
    assert (found[mine]["node_id"], found[mine]["url"]) == ("here", "http://testserver")
    assert (found[theirs]["node_id"], found[theirs]["host"], found[theirs]["port"], found[theirs]["url"]) == (
        "there",
        "there.example",
        443,
        "https://there.example",
    )
    assert found[theirs]["partition"] == partition_of(theirs, PARTITIONS)


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "join", join()),
        ("POST", "heartbeat", {"member_id": "m", "generation_id": 1}),
        ("POST", "leave", {"members": [{"member_id": "m"}]}),
        ("POST", "offsets/fetch", {"topics": None}),
        ("GET", "", None),
        ("DELETE", "", None),
    ],
)
async def test_what_another_node_owns(
    api: httpx.AsyncClient, runtime: Runtime, routing: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    _, theirs = groups_of(runtime)
    answer = await api.request(method, f"/v1/groups/{theirs}/{path}".rstrip("/"), json=body)
    if routing == "any":
        assert answer.status_code != 421
        return
    problem = answer.json()
    assert (answer.status_code, problem["error"], problem["action"]) == (421, "NOT_COORDINATOR", "rediscover")
    assert problem["coordinator"] == {
        "node_id": "there",
        "host": "there.example",
        "port": 443,
        "url": "https://there.example",
    }


async def test_a_request_is_checked_before_its_owner_matters(
    api: httpx.AsyncClient, runtime: Runtime, other: NodeAgent, routing: str
) -> None:
    """consumer.md 2.2, row 14 before row 15; classic.md 3.1."""
    _, theirs = groups_of(runtime)
    joining = {
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
        "server_assignor": "none-such",
    }
    answer = await api.post(f"/v1/groups/{theirs}/consumer-heartbeat", json=joining)
    assert answer.json()["error"] == "UNSUPPORTED_ASSIGNOR"
    answer = await api.post(f"/v1/groups/{theirs}/join", json={**join(), "session_timeout_ms": 1})
    assert answer.json()["error"] == "INVALID_SESSION_TIMEOUT"


async def test_a_join_that_waits_when_its_partition_moves(
    api: httpx.AsyncClient, runtime: Runtime, other: NodeAgent, routing: str
) -> None:
    mine, _ = groups_of(runtime)
    member_id = (await api.post(f"/v1/groups/{mine}/join", json=join())).json()["member_id"]
    waiting = asyncio.create_task(api.post(f"/v1/groups/{mine}/join", json=join(member_id)))
    shown = f"/v1/groups/{mine}"
    while (await api.get(shown)).json().get("state") != "PreparingRebalance":  # noqa: ASYNC110 - of the server
        await asyncio.sleep(0.01)
    other.start()
    await other.leave()  # now this node has all
    here = runtime.get(NodeAgent)
    await beat(here)
    assert not waiting.done()
    hosting = runtime.get(Hosting)
    hosting.shards.resign(partition_of(mine, PARTITIONS), None)
    here._groups.refuse_waiters(partition_of(mine, PARTITIONS))
    if routing == "any":
        await asyncio.sleep(0)
        assert not waiting.done(), "any node can answer it"
        waiting.cancel()
        return
    answer = await waiting
    assert (answer.status_code, answer.json()["error"]) == (421, "NOT_COORDINATOR")
    assert answer.json()["member_id"] == member_id


async def test_nobody_owns_the_partition(
    api: httpx.AsyncClient, runtime: Runtime, other: NodeAgent, cluster: Cluster, routing: str
) -> None:
    _, theirs = groups_of(runtime)
    cluster.clock.advance(3_000)  # all leases have run out, and nobody has noticed
    runtime.get(NodeAgent)._directory._seen_at = 0.0
    (found,) = (await api.get("/v1/coordinator", params={"group_id": theirs})).json()["coordinators"]
    expected = ("NONE", "http://testserver") if routing == "any" else ("COORDINATOR_NOT_AVAILABLE", "")
    assert (found["error"], found["url"]) == expected
    assert other.incarnation is not None


@pytest.mark.usefixtures("other")
async def test_a_list_has_the_groups_of_the_node(api: httpx.AsyncClient, runtime: Runtime, token: str) -> None:
    mine, theirs = groups_of(runtime)
    both = [mine, theirs]
    runtime.get(Hosting).is_node = False  # as an operator's command
    async with client_of(token) as operator:
        for name in both:
            body = {"topics": [{"name": "t", "partitions": [{"partition": 0, "committed_offset": 1}]}]}
            await operator.post("/v1/topics", json={"name": "t", "partitions": 1})
            assert (await operator.post(f"/v1/groups/{name}/offsets/commit", json=body)).status_code == 200
    runtime.get(Hosting).is_node = True
    listed = [group["group_id"] for group in (await api.get("/v1/groups")).json()["groups"]]
    assert sorted(listed) == (sorted(both) if not runtime.get(Hosting).routes else [mine])
