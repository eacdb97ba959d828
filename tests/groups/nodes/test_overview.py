"""Nodes, partitions and hand-overs as the API shows them, and how long their history is kept."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg

from groups.engine.timers import DAY_MS, TimerService
from groups.nodes.overview import CHANGES_SHOWN
from kcoord import __version__
from kcoord.config import Config
from kcoord.database import counters
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.groups.nodes.support import LEASE_MS, PARTITIONS, Cluster, beat
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

RETENTION_MS = Config({}).int("events.retention.days") * DAY_MS


async def nodes(api: httpx.AsyncClient) -> list[dict[str, Any]]:
    response = await api.get("/v1/nodes")
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["nodes"]
    return found


async def partitions(api: httpx.AsyncClient) -> dict[str, list[dict[str, Any]]]:
    response = await api.get("/v1/coordinator-partitions")
    assert response.status_code == 200, response.text
    found: dict[str, list[dict[str, Any]]] = response.json()
    return found


async def test_before_the_first_node_there_is_nothing(api: httpx.AsyncClient) -> None:
    assert await nodes(api) == []
    assert await partitions(api) == {"partitions": [], "changes": []}


async def test_live_nodes_with_their_partitions(api: httpx.AsyncClient, cluster: Cluster) -> None:
    a, _ = await cluster.running("a", "b")
    cluster.clock.advance(700)
    await a.beat()
    cluster.clock.advance(100)
    found = await nodes(api)
    started = cluster.clock.now_ms() - 800
    assert sorted(found[0]["partitions"] + found[1]["partitions"]) == list(range(PARTITIONS))
    shown = {node["node_id"]: node for node in found}
    assert len(shown["a"].pop("partitions")) == 25
    assert shown["a"] == {
        "node_id": "a",
        "incarnation": a.incarnation,
        "url": "http://a:8000",
        "version": __version__,
        "started_at": rfc3339(started),
        "last_seen_at": rfc3339(started + 700),
        "lease_expires_at": rfc3339(started + 700 + LEASE_MS),
        "live": True,
        "ended_at": None,
        "end_reason": None,
    }
    assert shown["b"]["last_seen_at"] == rfc3339(started)


async def test_a_lapsed_node_owns_nothing_that_anybody_could_rely_on(api: httpx.AsyncClient, cluster: Cluster) -> None:
    _, b = await cluster.running("a", "b")
    began = cluster.clock.now_ms()
    cluster.clock.advance(LEASE_MS - 1)
    await b.beat()
    cluster.clock.advance(500)
    found = {node["node_id"]: node for node in await nodes(api)}
    assert (found["a"]["live"], found["b"]["live"]) == (False, True)
    assert (found["a"]["ended_at"], len(found["a"]["partitions"])) == (None, 25), "nobody has taken them yet"
    assert (await nodes(api))[0]["node_id"] == "b", "live ones come first"
    states = (await partitions(api))["partitions"]
    closed = [one for one in states if one["state"] == "CLOSED"]
    assert [one["partition"] for one in closed] == found["a"]["partitions"]
    assert {(one["node_id"], one["since"]) for one in closed} == {(None, rfc3339(began + LEASE_MS))}
    assert {one["node_id"] for one in states if one["state"] == "ACTIVE"} == {"b"}

    await beat(b)
    [_, dead] = await nodes(api)
    assert (dead["node_id"], dead["end_reason"], dead["live"], dead["partitions"]) == ("a", "lapsed", False, [])
    found_again = await partitions(api)
    assert {(one["node_id"], one["state"]) for one in found_again["partitions"]} == {("b", "ACTIVE")}
    newest = found_again["changes"][0]
    assert newest.pop("partition") in found["a"]["partitions"]
    assert newest == {
        "at": rfc3339(cluster.clock.now_ms()),
        "epoch": newest["epoch"],
        "gap": 2,
        "from_node_id": "a",
        "to_node_id": "b",
        "reason": "lapsed",
        "gap_ms": 499,
    }


async def test_an_address_that_is_not_known_is_null(api: httpx.AsyncClient, cluster: Cluster) -> None:
    await cluster.running("b", advertised_url="", host="0.0.0.0")
    assert [node["url"] for node in await nodes(api)] == [None]


async def test_partitions_say_how_long_they_loaded_and_changes_are_bounded(
    api: httpx.AsyncClient, cluster: Cluster
) -> None:
    agents = await cluster.running("a", "b", "c")
    found = await partitions(api)
    assert [one["partition"] for one in found["partitions"]] == list(range(PARTITIONS))
    assert {(one["state"], one["load_ms"]) for one in found["partitions"]} == {("ACTIVE", 0)}
    agents[2].start()
    await agents[2].leave()
    found = await partitions(api)
    loading = [one for one in found["partitions"] if one["state"] == "LOADING"]
    assert len(loading) in (16, 17)
    assert {one["node_id"] for one in loading} <= {"a", "b"}, "they have an owner already"
    assert len(found["changes"]) == CHANGES_SHOWN
    assert [one["at"] for one in found["changes"]] == sorted((one["at"] for one in found["changes"]), reverse=True)
    assert {(one["from_node_id"], one["reason"], one["gap_ms"]) for one in found["changes"][:16]} == {
        ("c", "stopped", None)
    }


async def test_a_change_to_nobody_names_nobody(api: httpx.AsyncClient, cluster: Cluster) -> None:
    [a] = await cluster.running("a")
    a.start()
    await a.leave()
    found = await partitions(api)
    assert {one["node_id"] for one in found["partitions"]} == {None}
    assert {one["to_node_id"] for one in found["changes"][:PARTITIONS]} == {None}
    assert {one["from_node_id"] for one in found["changes"][PARTITIONS:]} == {None}


async def test_who_may_look(client_with: ClientWith) -> None:
    allowed = await client_with("describe:cluster:kafka-cluster")
    stranger = await client_with("read:group:*")
    for path in ("/v1/nodes", "/v1/coordinator-partitions"):
        assert (await allowed.get(path)).status_code == 200
        assert_problem(await stranger.get(path), Error.CLUSTER_AUTHORIZATION_FAILED)
        assert_problem(await allowed.get(path, params={"limit": 1}), Error.INVALID_REQUEST)


async def test_history_is_trimmed_with_the_events(
    api: httpx.AsyncClient, runtime: Runtime, cluster: Cluster, database: str
) -> None:
    await cluster.running("a")
    cluster.clock.advance(LEASE_MS)
    await cluster.running("b")
    cluster.clock.advance(RETENTION_MS - LEASE_MS)
    assert await runtime.get(TimerService).trim_events() == 0, "nothing is older than that"
    cluster.clock.advance(1)
    assert await runtime.get(TimerService).trim_events() == PARTITIONS, "what a took"
    cluster.clock.advance(LEASE_MS)
    assert await runtime.get(TimerService).trim_events() == PARTITIONS + 1, "what b took from a, and a itself"
    assert [node["node_id"] for node in await nodes(api)] == ["b"], "a node that has not ended stays, however old"
    assert (await partitions(api))["changes"] == []
    with psycopg.connect(database, autocommit=True) as connection:  # ended, and yet named by partitions
        connection.execute("update groups_coordinatornode set ended_at = 1, end_reason = 'lapsed'")
    assert await runtime.get(TimerService).trim_events() == 0


async def test_changes_are_counted_by_reason_across_processes(runtime: Runtime, cluster: Cluster) -> None:
    before = await counters.stored(runtime.db)
    await cluster.running("a", "b")
    after = await counters.stored(runtime.db)
    assert {
        name: count - before.get(name, 0)
        for name, count in after.items()
        if name.startswith("partition_changes:") and count != before.get(name, 0)
    } == {"partition_changes:taken": PARTITIONS, "partition_changes:balanced": 25}
    text = counters.exposed(after).decode()
    assert f'kcoord_partition_changes_total{{reason="balanced"}} {float(after["partition_changes:balanced"])}' in text
    assert 'reason="lapsed"' in text, "its first increase would go unnoticed otherwise"
