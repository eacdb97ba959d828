"""Each fault alone, with what it must do and must not: three nodes, both protocols, members of our client.

The history of all of it is checked in the end, like that of a whole run.
"""

from __future__ import annotations

import functools
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.chaos import ending, nodes
from tests.chaos import schedule as faults
from tests.chaos.checker import check
from tests.chaos.crews import CrewProcesses, running_crews
from tests.chaos.history import Writer, of_kind, read
from tests.chaos.nemesis import Nemesis
from tests.chaos.run import FIRST_REST_S, LEASE_S, settle_bound_s
from tests.chaos.schedule import OUTAGE_S, SESSION_S, Fault
from tests.chaos.workload import SETTINGS, Workload, workload
from tests.chaos.world import CELERY, World, running_world

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("stack"),
    pytest.mark.whole("each kind of fault alone; the default has a kill and a freeze"),
]

SEED = 12
SIZE = {"seed": SEED, "members": 32, "groups": 4, "crews": 2}
RENEWAL_S = 1.0
SLACK_S = 4.0
"""What a busy machine with two cores may add to any of the times below."""

LONE_SESSION_MS = 6_000


@dataclass
class Stage:
    """The stack, its members and their history."""

    world: World
    work: Workload
    crews: CrewProcesses
    history: Writer
    nemesis: Nemesis
    directory: Path
    bound_s: float

    def fault(self, name: str, target: str = "", s: float = 0.0) -> None:
        """Carry out one fault."""
        self.nemesis.carry_out(Fault(0.0, name, target, s))

    def settle(self) -> float:
        """Wait until every group is at rest and every partition active, shared by all servers."""
        took = ending.wait_at_rest(self.world, self.work, self.bound_s)
        assert took is not None, f"not at rest within {self.bound_s:.0f} s"
        nodes.until(lambda: nodes.all_active(self.world, nodes=3), 30, "three nodes share all partitions")
        return took


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Three servers and 32 members of four groups, at rest."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-faults-"))
    work = workload(SIZE["seed"], SIZE["members"], SIZE["groups"], SIZE["crews"])
    history = Writer(directory / "nemesis.jsonl")
    history.write("start", wall=time.time() - time.monotonic(), lease_s=LEASE_S, seed=SEED)
    try:
        with running_world(3, SETTINGS) as world:
            for group in work.groups:
                world.create_topic(group.topic, group.partitions)
                fields = {"topic": group.topic, "partitions": group.partitions, "protocol": group.protocol}
                history.write("group", g=group.name, **fields)
            with running_crews(list(work.crews), SIZE, world.url, world.token, directory, history) as crews:
                first = ending.wait_at_rest(world, work, FIRST_REST_S)
                assert first is not None
                nemesis = Nemesis(world, crews, history)
                yield Stage(world, work, crews, history, nemesis, directory, settle_bound_s(first))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(autouse=True)
def at_rest(stage: Stage) -> None:
    """Each test begins with a stack that is at rest."""
    stage.settle()


@dataclass
class LoneMember:
    """A dynamic member of a classic group of its own that stops sending heartbeats."""

    group: str
    member_id: str

    def expired_at(self, world: World) -> int | None:
        """When the service removed it, by the service's clock."""
        query = """
        select at from groups_event where group_name = %(group)s and member_id = %(member)s and kind = 'member_expired'
        """
        found = world.sql(query, {"group": self.group, "member": self.member_id})
        return int(found[0][0]) if found else None


def join_alone(world: World, group: str) -> LoneMember:
    """A member with the shortest session joins, syncs, and is silent from now on."""
    with httpx.Client(base_url=f"{world.url}/v1/groups/{group}", headers=world.headers, timeout=30) as client:
        body = {
            "member_id": "",
            "group_instance_id": None,
            "session_timeout_ms": LONE_SESSION_MS,
            "rebalance_timeout_ms": 30_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "subscription": {"topics": ["alone"]}}],
            "max_wait_ms": 10_000,
        }
        body["member_id"] = client.post("/join", json=body).json()["member_id"]
        joined = client.post("/join", json=body)
        assert joined.status_code == 200, joined.text
        sync = {
            "member_id": body["member_id"],
            "generation_id": joined.json()["generation_id"],
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": body["member_id"], "partitions": {}}],
            "max_wait_ms": 10_000,
        }
        answer = client.post("/sync", json=sync)
        assert answer.status_code == 200, answer.text
    return LoneMember(group, str(body["member_id"]))


def partition_of(world: World, group: str) -> int:
    """The coordinator partition of a group."""
    return int(world.sql("select partition from groups_group where group_id = %(g)s", {"g": group})[0][0])


def server_that_owns(world: World, partition: int) -> str:
    """Which server runs the timers of a coordinator partition."""
    return f"server-{nodes.partitions(world)[partition].node.rpartition('-')[2]}"


class Disturbed(AssertionError):
    """A node that was left alone lost its lease: this machine did not let it run for two seconds."""


def if_undisturbed(test: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """Repeat a test that was disturbed, twice at most. A fault that itself costs other nodes their leases fails."""

    @functools.wraps(test)
    def repeated(stage: Stage) -> None:
        for left in (2, 1, 0):
            try:
                return test(stage)
            except Disturbed as disturbance:
                if not left:
                    raise
                print(f"again: {disturbance}")
                stage.settle()
        raise AssertionError("not reached")

    return repeated


def require_undisturbed(world: World, before: Mapping[str, int], *without: str) -> None:
    """Raises Disturbed if a node of `before`, except those `without`, is another incarnation now."""
    wanted = {name: incarnation for name, incarnation in before.items() if name not in without}
    found = {name: incarnation for name, incarnation in nodes.live(world).items() if name in wanted}
    if found != wanted:
        raise Disturbed(f"incarnations were {wanted}, are {found}")


@if_undisturbed
def test_a_killed_node_is_replaced_as_owner_within_lease_renewal_and_slack(stage: Stage) -> None:
    world = stage.world
    alive, name = nodes.live(world), nodes.node_of(world, "server-2")
    dead = alive[name]
    before, event, change = nodes.partitions(world), nodes.last_event(world), nodes.last_change(world)
    lost = {number for number, owned in before.items() if owned.incarnation == dead}
    assert lost
    world.pause_supervisor()
    try:
        stage.fault(faults.KILL, "server-2")
        took = nodes.until(
            lambda: nodes.all_active(world, without=dead), LEASE_S + RENEWAL_S + SLACK_S, "active elsewhere"
        )
        after = nodes.partitions(world)
        require_undisturbed(world, alive, name)
    finally:
        world.resume_supervisor()
    assert took > LEASE_S - RENEWAL_S - 0.5, "nobody may take over while the lease lasts"
    assert {number for number, *_ in nodes.changes_since(world, change)} >= lost
    assert {reason for *_, reason, _, _ in nodes.changes_since(world, change)[: len(lost)]} == {"lapsed"}
    for number, owned in after.items():
        assert owned.epoch == before[number].epoch + (number in lost), number
        assert owned.gap == before[number].gap + 1, "a death is a gap of every partition"
    stage.settle()
    assert nodes.removals_since(world, event) == []
    print(f"killed: active elsewhere after {took:.2f} s")


def test_a_node_frozen_beyond_its_lease_writes_nothing_as_owner_and_comes_back_as_another(stage: Stage) -> None:
    """A silent member of its partition is due while it is frozen: the thawed node must not remove it."""
    world = stage.world
    member = join_alone(world, "alone-frozen")
    number = partition_of(world, member.group)
    server = server_that_owns(world, number)
    before = nodes.partitions(world)[number]
    time.sleep(1.0)
    stage.fault(faults.FREEZE, server, LONE_SESSION_MS / 1000)
    thawed = nodes.now_ms(world)
    taken = nodes.partitions(world)[number]
    assert taken.epoch > before.epoch
    assert taken.gap > before.gap
    nodes.until(lambda: nodes.all_active(world, nodes=3), 30, "the thawed server takes part again")
    name = before.node
    assert nodes.live(world)[name] > (before.incarnation or 0), "another incarnation"
    ended, reason = world.sql(
        "select ended_at, end_reason from groups_coordinatornode where id = %(id)s", {"id": before.incarnation}
    )[0]
    assert (reason, ended < thawed) == ("lapsed", True)
    nodes.until(lambda: member.expired_at(world), LONE_SESSION_MS / 1000 + 30, "its session ends in the end")
    assert (member.expired_at(world) or 0) >= ended + LONE_SESSION_MS, "the whole session from when somebody counted"
    stage.settle()


@if_undisturbed
def test_cut_connections_cost_no_member_and_no_lease(stage: Stage) -> None:
    world = stage.world
    event, before = nodes.last_event(world), nodes.live(world)
    gaps = {number: owned.gap for number, owned in nodes.partitions(world).items()}
    stage.fault(faults.CUT)
    time.sleep(LEASE_S + RENEWAL_S)
    require_undisturbed(world, before)
    assert {number: owned.gap for number, owned in nodes.partitions(world).items()} == gaps
    stage.settle()
    assert nodes.removals_since(world, event) == []


def test_postgres_restarts_and_crashes_and_nobody_is_removed(stage: Stage) -> None:
    """And then a whole session with all partitions active: all members are still there."""
    world = stage.world
    event, before = nodes.last_event(world), nodes.members(world)
    for name in (faults.RESTART, faults.CRASH):
        stage.fault(name)
        nodes.until(lambda: nodes.all_active(world, nodes=3), 30, "all partitions active")
    require_nobody_removed(stage, event, before)


def require_nobody_removed(stage: Stage, event: int, before: set[tuple[str, str]]) -> None:
    """Wait for a whole session: all members of `before` are still there, and none was removed after `event`."""
    world = stage.world
    time.sleep(SESSION_S + RENEWAL_S)
    stage.settle()
    assert nodes.removals_since(world, event) == []
    assert nodes.members(world) == before


@if_undisturbed
def test_a_graceful_stop_hands_over_at_once_and_leaves_no_gap(stage: Stage) -> None:
    world = stage.world
    alive, name = nodes.live(world), nodes.node_of(world, "server-3")
    gone = alive[name]
    before, event, change = nodes.partitions(world), nodes.last_event(world), nodes.last_change(world)
    mine = {number for number, owned in before.items() if owned.incarnation == gone}
    stage.fault(faults.HAND_OVER, "server-3")
    took = nodes.until(lambda: nodes.all_active(world, without=gone), SLACK_S, "active elsewhere")
    told = nodes.changes_since(world, change)[: len(mine)]
    assert {number for number, *_ in told} == mine
    how = {(reason, bool(successor)) for _, _, successor, reason, _, _ in told}
    if how == {("lapsed", True)}:
        raise Disturbed("the lease ran out before the hand-over")
    assert how == {("stopped", True)}
    stage.settle()
    after = nodes.partitions(world)
    require_undisturbed(world, alive, name)
    assert {number: owned.gap for number, owned in after.items()} == {n: owned.gap for n, owned in before.items()}
    assert {reason for *_, reason, _, _ in nodes.changes_since(world, change)} == {"stopped", "balanced"}
    assert nodes.removals_since(world, event) == []
    print(f"handed over: active elsewhere after {took:.2f} s")


def test_an_outage_of_twice_the_session_removes_nobody(stage: Stage) -> None:
    """Everything is dead meanwhile. Everything is frozen in a whole run (`test_run.py`), which checks the same."""
    world = stage.world
    silent = join_alone(world, "alone-dead")
    event, before = nodes.last_event(world), nodes.members(world)
    assert (silent.group, silent.member_id) in before
    stage.fault(faults.KILL_ALL, s=OUTAGE_S)
    over = nodes.now_ms(world) - 60_000
    nodes.until(lambda: nodes.all_active(world, nodes=3), 60, "all partitions active")
    nodes.until(lambda: silent.expired_at(world), LONE_SESSION_MS / 1000 + 30, "the dead are removed in the end")
    assert (silent.expired_at(world) or 0) >= over + LONE_SESSION_MS, "but not before a whole session"
    time.sleep(max(0.0, SESSION_S - LONE_SESSION_MS / 1000) + RENEWAL_S)
    stage.settle()
    assert [removed for removed in nodes.removals_since(world, event) if removed[1] != silent.member_id] == []
    assert nodes.members(world) == before - {(silent.group, silent.member_id)}


def test_a_clock_that_leaps_over_all_sessions_removes_nobody(stage: Stage) -> None:
    event, before = nodes.last_event(stage.world), nodes.members(stage.world)
    stage.fault(faults.LEAP, s=3 * SESSION_S)
    nodes.until(lambda: nodes.all_active(stage.world, nodes=3), 30, "all partitions active")
    require_nobody_removed(stage, event, before)


@if_undisturbed
def test_sessions_end_in_time_without_celery(stage: Stage) -> None:
    world = stage.world
    alive = nodes.live(world)
    world.send(signal.SIGSTOP, *CELERY)
    try:
        member = join_alone(world, "alone-without-celery")
        joined = nodes.now_ms(world)
        time.sleep(LONE_SESSION_MS / 1000)
        require_undisturbed(world, alive)
        nodes.until(lambda: member.expired_at(world), RENEWAL_S + SLACK_S, "the owner of the partition removes it")
    finally:
        world.send(signal.SIGCONT, *CELERY)
    assert (member.expired_at(world) or 0) >= joined + LONE_SESSION_MS - 1_000


@if_undisturbed
def test_members_that_die_are_replaced_and_their_partitions_too(stage: Stage) -> None:
    """A static member of a classic group is replaced at once; all others are removed when their sessions end."""
    alive, event, before = nodes.live(stage.world), nodes.last_event(stage.world), nodes.members(stage.world)
    removed_by_session = [
        spec for spec in stage.work.crews["c0"] if spec.instance is None or spec.group.protocol == "consumer"
    ]
    assert removed_by_session
    stage.fault(faults.KILL_CREW, "c0")

    def removed() -> list[tuple[str, str, str | None]]:
        return nodes.removals_since(stage.world, event)

    time.sleep(SESSION_S)
    require_undisturbed(stage.world, alive)
    nodes.until(lambda: len(removed()) >= len(removed_by_session), RENEWAL_S + SLACK_S, "sessions of the dead end")
    stage.settle()
    assert {cause for _, _, cause in removed()} == {"session_expired"}
    assert len(removed()) == len(removed_by_session)
    assert {(group, member) for group, member, _ in removed()} <= before


def test_the_history_of_all_these_faults_keeps_every_promise(stage: Stage) -> None:
    stage.history.write("quiet")
    stage.settle()
    time.sleep(3.0)
    ending.write_groups(stage.world, stage.history)
    stage.history.write("finish")
    stage.crews.close()
    ending.write_rest(stage.world, stage.history)
    lines = read(stage.directory / "nemesis.jsonl", *stage.crews.histories())
    report = check(lines, stage.bound_s)
    assert report.violations == []
    assert len(of_kind(lines, "outage")) >= 2
    print(sum(report.checks.values()), "checks", report.figures)
