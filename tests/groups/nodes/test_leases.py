"""Leases of nodes: who owns what after a start, a hand-over, a crash, a freeze and a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest
from structlog.testing import capture_logs

from groups.engine.agent import LEAST_PAUSE_SECONDS
from groups.nodes.membership import NodeRefused
from kcoord.database.clock import VirtualClock
from tests.groups.nodes.support import LEASE_MS, PARTITIONS, Cluster, Store, beat
from tests.support.members import PATIENCE_SECONDS, eventually

Read = Callable[[], Store]


async def test_the_first_node_takes_everything(cluster: Cluster, store: Read) -> None:
    await cluster.running("a")
    found = store()
    assert found.shares == {"a": PARTITIONS}
    assert set(found.epochs.values()) == {1}
    assert found.gaps == {1}, "before, nobody counted sessions"
    assert set(found.changes) == {("", "a", "taken")}


async def test_nodes_share_evenly_and_move_no_more_than_needed(cluster: Cluster, store: Read) -> None:
    [a] = await cluster.running("a")
    b = await cluster.start("b")
    await beat(b, a)
    two = store()
    assert two.shares == {"a": 25, "b": 25}
    assert len(two.changes) == PARTITIONS + 25
    assert two.gaps == {1}, "sessions were counted all the time"
    c = await cluster.start("c")
    await beat(c, b, a)
    three = store()
    assert sorted(three.shares.values()) == [16, 17, 17]
    moved = three.changes[len(two.changes) :]
    assert len(moved) == 16 or len(moved) == 17
    assert {(to, reason) for _, to, reason in moved} == {("c", "balanced")}
    assert all(three.epochs[p] >= two.epochs[p] for p in range(PARTITIONS))


async def test_a_node_that_stops_names_its_successors(cluster: Cluster, store: Read) -> None:
    a, b = await cluster.running("a", "b")
    before = store()
    a.start()  # only a node that runs leaves
    await a.leave()
    found = store()
    assert {owner for owner, _, _, _ in found.partitions.values()} == {"b"}, "nobody waits for the lease to run out"
    assert found.gaps == before.gaps
    assert found.nodes["a"] == ["stopped"]
    assert set(found.changes[-25:]) == {("a", "b", "stopped")}
    await beat(b)
    assert store().shares == {"b": PARTITIONS}


async def test_a_node_stops_although_it_is_told_of_a_change_at_the_same_time(cluster: Cluster, store: Read) -> None:
    a = await cluster.start("a", coordinator_renewal_interval_ms=30_000)
    a.start()
    await eventually(lambda: store().shares == {"a": PARTITIONS}, "it is a node")
    await asyncio.sleep(2 * LEAST_PAUSE_SECONDS)  # it waits for its next renewal, or for a change
    a._changed.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await a.leave()
    assert store().nodes["a"] == ["stopped"]


async def test_the_last_node_leaves_nobody(cluster: Cluster, store: Read) -> None:
    [a] = await cluster.running("a")
    a.start()
    await a.leave()
    gone = store()
    assert {(owner, state) for owner, _, _, state in gone.partitions.values()} == {(None, "CLOSED")}
    [b] = await cluster.running("b")
    assert store().shares == {"b": PARTITIONS}
    assert min(store().gaps) > 1, "nobody counted sessions meanwhile"
    assert b.incarnation is not None


async def test_partitions_of_a_dead_node_are_taken_when_its_lease_has_run_out(
    cluster: Cluster, store: Read, clock: VirtualClock
) -> None:
    _, b = await cluster.running("a", "b")
    before = store()
    clock.advance(LEASE_MS - 1)
    await b.beat()
    assert store().partitions == before.partitions, "the lease of the other lasts"
    clock.advance(1)
    with capture_logs() as logged:
        await beat(b)
    assert {"event": "node_lapsed", "node": "a", "log_level": "warning"} in logged
    found = store()
    assert found.shares == {"b": PARTITIONS}
    assert found.nodes["a"] == ["lapsed"]
    assert found.gaps == {2}, "what the dead node had not written yet is lost on every partition"
    taken = {p for p, (owner, _, _, _) in before.partitions.items() if owner == "a"}
    assert {p for p in range(PARTITIONS) if found.epochs[p] > before.epochs[p]} == taken
    assert set(found.changes[-25:]) == {("a", "b", "lapsed")}


async def test_a_lease_that_ran_out_is_not_renewed_although_nobody_took_anything(
    cluster: Cluster, store: Read, clock: VirtualClock
) -> None:
    [a] = await cluster.running("a")
    first = a.incarnation
    clock.advance(LEASE_MS)
    await beat(a)
    assert a.incarnation != first
    found = store()
    assert found.nodes["a"] == ["lapsed", None]
    assert found.shares == {"a": PARTITIONS}
    assert found.gaps == {2}
    assert set(found.epochs.values()) == {2}


async def test_a_server_that_is_started_again_waits_for_the_lease_of_its_predecessor(
    cluster: Cluster, store: Read, clock: VirtualClock
) -> None:
    await cluster.running("a")
    again = await cluster.start("a")
    clock.advance(LEASE_MS - 1)
    with pytest.raises(NodeRefused, match="a lease of node a runs"):
        await again.beat()
    clock.advance(1)
    await beat(again)
    found = store()
    assert found.nodes["a"] == ["lapsed", None]
    assert found.shares == {"a": PARTITIONS}
    assert found.gaps == {2}


async def test_after_a_graceful_stop_nobody_waits(cluster: Cluster, store: Read) -> None:
    [first] = await cluster.running("a")
    first.start()
    await first.leave()
    await cluster.running("a")
    assert store().nodes["a"] == ["stopped", None]


async def test_a_node_with_the_name_of_another_is_told_and_harms_nobody(cluster: Cluster, store: Read) -> None:
    [first] = await cluster.running("a")
    before = store()
    second = await cluster.start("a", advertised_url="http://elsewhere:8000")
    for _ in range(3):
        with pytest.raises(NodeRefused, match=r"a lease of node a runs.*give each its own KCOORD_NODE_ID"):
            await second.beat()
        await first.beat()
    assert store() == before
    assert first.holds_lease
    assert second.incarnation is None


async def test_two_nodes_with_one_url(cluster: Cluster, store: Read) -> None:
    await cluster.running("a")
    before = store()
    b = await cluster.start("b", advertised_url="http://a:8000")
    with pytest.raises(NodeRefused, match="node a has the same advertised URL http://a:8000: give each"):
        await b.beat()
    assert store() == before


async def test_nodes_that_do_not_know_their_url_do_not_collide(cluster: Cluster, store: Read) -> None:
    settings = {"advertised_url": "", "host": "0.0.0.0"}
    await cluster.running("a", "b", **settings)
    assert store().shares == {"a": 25, "b": 25}


async def test_another_number_of_partitions(cluster: Cluster, store: Read) -> None:
    await cluster.running("a")
    before = store()
    b = await cluster.start("b", offsets_topic_num_partitions=10)
    remedy = r"is 10 here, but the database has 50 .* KCOORD_OFFSETS_TOPIC_NUM_PARTITIONS=50"
    with pytest.raises(NodeRefused, match=remedy):
        await b.beat()
    assert store() == before


@pytest.mark.parametrize(("other", "works"), [("0.2.9", True), ("0.3.0", True), ("0.4.0", False), ("1.0.0", False)])
async def test_releases_side_by_side(
    cluster: Cluster, store: Read, monkeypatch: pytest.MonkeyPatch, other: str, works: bool
) -> None:
    monkeypatch.setattr("groups.engine.agent.__version__", "0.2.0")
    await cluster.running("a")
    monkeypatch.setattr("groups.engine.agent.__version__", other)
    b = await cluster.start("b")
    if works:
        await beat(b)
        assert store().nodes.keys() == {"a", "b"}
        return
    with pytest.raises(NodeRefused, match=f"release {other} does not work beside release 0.2.0 of node a"):
        await b.beat()
    assert store().nodes.keys() == {"a"}


async def test_a_partition_that_went_away_and_came_back_between_two_looks_is_loaded_again(
    cluster: Cluster, store: Read, database: str
) -> None:
    [a] = await cluster.running("a")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "update groups_coordinatorpartition set epoch = epoch + 2, state = 'LOADING' where partition = 7"
        )
    await a.beat()
    assert store().partitions[7] == ("a", 3, 1, "ACTIVE")


async def test_timers_that_take_long_put_off_a_hand_over_and_no_renewal(cluster: Cluster, store: Read) -> None:
    [a] = await cluster.running("a", coordinator_renewal_interval_ms=100)
    b = await cluster.start("b")
    await b.beat()
    a._timing = asyncio.create_task(asyncio.sleep(60))
    await a.beat()
    assert a.holds_lease
    assert store().shares == {"a": PARTITIONS}
    a._timing.cancel()
    await beat(a, b)
    assert store().shares == {"a": 25, "b": 25}


async def test_the_clock_is_set_ahead(cluster: Cluster, store: Read, clock: VirtualClock) -> None:
    a, b = await cluster.running("a", "b")
    clock.advance(3_600_000)
    await beat(a, b)
    found = store()
    assert found.shares == {"a": 25, "b": 25}
    assert min(found.gaps) >= 2
