"""What /readyz and /metrics say of this process as a node, without asking the database."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from groups.engine import standing
from groups.engine.agent import NodeAgent
from groups.nodes.hosting import Hosting
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.groups.nodes.support import LEASE_MS, PARTITIONS, Cluster, beat
from tests.support.api import client_of
from tests.support.members import eventually


@pytest.fixture
def config() -> Config:
    """This server is a node named here."""
    return Config({"node.id": "here", "advertised.url": "http://here:8000"})


@pytest.fixture
def agent(runtime: Runtime) -> NodeAgent:
    """The node of this server; it renews when the test says so."""
    runtime.get(Hosting).is_node = True
    return runtime.get(NodeAgent)


async def checks() -> dict[str, Any]:
    """What /readyz says of nodes."""
    async with client_of(None) as client:
        found = (await client.get("/readyz")).json()["checks"]
    return {name: (found[name]["ok"], found[name]["detail"]) for name in ("node", "owners") if name in found}


async def measured(api: httpx.AsyncClient) -> dict[str, float]:
    """The gauges of nodes."""
    return {
        sample.name.removeprefix("kcoord_") + "".join(f":{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families((await api.get("/metrics")).text)
        for sample in family.samples
        if sample.name.startswith(("kcoord_node", "kcoord_coordinator_partitions"))
    }


async def test_a_process_that_is_no_node_has_no_such_checks(runtime: Runtime, api: httpx.AsyncClient) -> None:
    assert await checks() == {}
    found = await measured(api)
    assert found["node_lease"] == 0
    assert math.isnan(found["nodes"])


async def test_not_ready_until_it_has_registered(agent: NodeAgent, api: httpx.AsyncClient) -> None:
    assert await checks() == {
        "node": (False, "here is not registered as a node yet"),
        "owners": (True, "unknown to this server, which is not a node now"),
    }
    found = await measured(api)
    assert math.isnan(found["node_renewal_age_seconds"])
    await agent.beat()
    assert await checks() == {
        "node": (True, f"here owns {PARTITIONS} of {PARTITIONS} coordinator partitions"),
        "owners": (True, ""),
    }
    found = await measured(api)
    assert (found["node_lease"], found["nodes"]) == (1, 1)
    assert 0 < found["node_renewal_age_seconds"] < 60
    assert [found[f"coordinator_partitions:{state}"] for state in standing.STATES] == [PARTITIONS, 0, 0]


@pytest.mark.parametrize("routing", ["any", "owner"])
async def test_a_server_that_is_refused_says_why(
    database: str, clock: VirtualClock, cluster: Cluster, routing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kcoord.process import runtime as runtimes

    await cluster.running("a")
    settings = {"node.id": "twin", "advertised.url": "http://a:8000", "coordinator.routing": routing}
    twin = Runtime(Config(settings), database, clock)
    await twin.start()
    runtimes.use(twin)
    try:
        twin.get(NodeAgent).start()
        await eventually(lambda: twin.get(NodeAgent).problem, "the refusal")
        ok, detail = (await checks())["node"]
    finally:
        runtimes.use(None)
        await twin.stop()
    assert ok is (routing == "any"), "with any it serves members all the same"
    assert "node a has the same advertised URL http://a:8000" in detail
    assert ("answers for no group" in detail) is (routing == "owner")


async def test_partitions_of_others_that_load_and_that_nobody_owns(
    agent: NodeAgent, cluster: Cluster, api: httpx.AsyncClient
) -> None:
    await agent.beat()
    [other] = await cluster.running("other")
    await beat(agent, other)
    seen = agent._directory.view
    assert seen is not None
    theirs = [found.partition for found in seen.partitions if found.owner == other.incarnation]
    states = {theirs[0]: {"state": "LOADING"}, theirs[1]: {"owner": 99}, theirs[2]: {"owner": None, "state": "CLOSED"}}
    changed = [found._replace(**states.get(found.partition, {})) for found in seen.partitions]
    agent._directory.adopt(replace(seen, partitions=changed))
    found = await measured(api)
    assert [found[f"coordinator_partitions:{state}"] for state in standing.STATES] == [PARTITIONS - 3, 1, 2]
    assert "2 of 50 coordinator partitions have no live owner" in (await checks())["owners"][1]


async def test_a_lapsed_lease_is_known_before_anybody_looks(
    agent: NodeAgent, cluster: Cluster, api: httpx.AsyncClient, runtime: Runtime
) -> None:
    await agent.beat()
    [other] = await cluster.running("other")
    await beat(agent, other)
    assert (await measured(api))["nodes"] == 2
    agent.lease.until -= LEASE_MS / 1000  # as if that much time had passed since
    found = await measured(api)
    assert (found["node_lease"], found["nodes"]) == (0, 0)
    assert [found[f"coordinator_partitions:{state}"] for state in standing.STATES] == [0, 0, PARTITIONS]
    assert found["node_renewal_age_seconds"] >= LEASE_MS / 1000
    node, owners = (await checks()).values()
    assert node[0]
    assert "here is not a node now; it serves members, but runs no timers" in node[1]
    assert owners[0], "a server less would not help"
    assert f"{PARTITIONS} of {PARTITIONS} coordinator partitions have no live owner" in owners[1]
    assert "members of their groups are served" in owners[1]


async def test_no_database_leaves_what_is_in_memory(agent: NodeAgent, api: httpx.AsyncClient, runtime: Runtime) -> None:
    await agent.beat()
    await runtime.db.close()
    found = await checks()
    assert found["node"][0]
    assert "owners" in found
    assert (await measured(api))["node_lease"] == 1
