"""Which heartbeats are answered from memory. Every test of the core checks them all against `decide`, see `World`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from groups.core.commit_lane import SteadyCommit, steady_commit
from groups.core.model.commands import ConsumerHeartbeat, Heartbeat
from groups.core.model.group import Group
from groups.core.model.types import Env
from tests.groups.core.consumer.world import GROUP as CONSUMERS
from tests.groups.core.consumer.world import World as ConsumerWorld
from tests.groups.core.renewals import accepted
from tests.groups.core.world import GROUP, World

Change = Callable[[ConsumerHeartbeat], ConsumerHeartbeat]


def env_of(world: World) -> Env:
    return Env(world.now, str, world.config)


def test_heartbeats_of_a_stable_group_are_accepted() -> None:
    world = World()
    for member_id in world.stable(3):
        assert accepted(world.group, Heartbeat(GROUP, member_id, None, 1), env_of(world))


def test_static_member_may_leave_out_its_instance_id() -> None:
    world = World()
    (member_id,) = world.completed(world.join(instance_id="i"))
    world.synced(member_id)
    for given, expected in (("i", True), (None, True), ("j", False)):
        assert accepted(world.group, Heartbeat(GROUP, member_id, given, 1), env_of(world)) is expected


@pytest.mark.parametrize("command", [("a stranger", 1), (None, 0), (None, 2)])
def test_strangers_and_other_generations_are_decided(command: tuple[str | None, int]) -> None:
    world = World()
    (member_id,) = world.stable(1)
    heartbeat = Heartbeat(GROUP, command[0] or member_id, None, command[1])
    assert not accepted(world.group, heartbeat, env_of(world))


def test_heartbeats_during_a_rebalance_are_decided() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.enter()
    assert not accepted(world.group, Heartbeat(GROUP, member_id, None, 1), env_of(world))
    assert not accepted(None, Heartbeat(GROUP, member_id, None, 1), env_of(world))


def test_commits_of_members_and_of_programs_without_a_group_are_steady() -> None:
    world = World()
    (member_id,) = world.stable(1)
    assert world.group is not None
    member = world.group.members[member_id]
    session = SteadyCommit(member.client_id, member.session_timeout_ms)
    assert steady_commit(world.group, member_id, None, 1) == session
    assert steady_commit(world.group, "", None, -1) is None, "it has members"
    world.enter()
    assert steady_commit(world.group, member_id, None, 1) == session, "only its next heartbeat asks it to join"
    empty = World()
    empty.leave(*empty.stable(1))
    assert empty.group is not None
    assert steady_commit(empty.group, "", None, -1) == SteadyCommit("", None)
    consumers, heartbeat = consumer_world()
    assert consumers.group is not None
    assert steady_commit(consumers.group, "a", None, heartbeat.member_epoch) == SteadyCommit("client", None)
    assert steady_commit(consumers.group, "a", None, heartbeat.member_epoch, knows_epochs=False) is None
    assert steady_commit(consumers.group, "a", None, heartbeat.member_epoch - 1) is None, "it depends on the partitions"
    for member_id in ("a", "b"):
        consumers.send(replace(heartbeat, member_id=member_id, member_epoch=-1))
    assert steady_commit(consumers.group, "", None, -1) == SteadyCommit("", None)


def test_commits_of_static_members_are_steady() -> None:
    world = World()
    (member_id,) = world.completed(world.join(instance_id="i"))
    world.synced(member_id)
    assert world.group is not None
    for given, expected in (("i", True), (None, True), ("j", False)):
        assert (steady_commit(world.group, member_id, given, 1) is not None) is expected


def consumer_world() -> tuple[ConsumerWorld, ConsumerHeartbeat]:
    """A group at rest, and the heartbeat that its member sends from now on."""
    world = ConsumerWorld()
    world.set_topics(foo=4)
    world.stable("a", "b")
    return world, replace(
        ConsumerHeartbeat(CONSUMERS, "a", world.member("a").member_epoch), client_id="client", client_host="10.0.0.1"
    )


def test_consumer_heartbeats_that_say_nothing_new_are_accepted() -> None:
    world, command = consumer_world()
    assert accepted(world.group, command, world.env)
    assert accepted(world.group, replace(command, client_id=""), world.env), "it stays as it is"
    assert accepted(world.group, replace(command, rebalance_timeout_ms=5_000), world.env), "it is known"


@pytest.mark.parametrize(
    "change",
    [
        lambda command: replace(command, member_id="c"),
        lambda command: replace(command, member_epoch=command.member_epoch - 1),
        lambda command: replace(command, member_epoch=0),
        lambda command: replace(command, member_epoch=-1),
        lambda command: replace(command, instance_id="i"),
        lambda command: replace(command, rack_id="r"),
        lambda command: replace(command, client_id="another"),
        lambda command: replace(command, client_host="10.0.0.2"),
        lambda command: replace(command, rebalance_timeout_ms=6_000),
        lambda command: replace(command, subscribed_topic_names=frozenset({"foo"})),
        lambda command: replace(command, subscribed_topic_regex="f.*"),
        lambda command: replace(command, server_assignor="range"),
        lambda command: replace(command, topic_partitions={}),
        lambda command: replace(command, max_wait_ms=1),
        lambda command: replace(command, age_ms=2_501),
    ],
)
def test_consumer_heartbeats_that_say_more_are_decided(change: Change) -> None:
    world, command = consumer_world()
    assert not accepted(world.group, change(command), world.env)


def test_heartbeat_beside_one_that_waits_is_decided() -> None:
    world, command = consumer_world()
    world.send(replace(command, max_wait_ms=10_000))
    assert not accepted(world.group, command, world.env), "it takes back the time for which the other may wait"


def moved(change: Callable[[ConsumerWorld], object]) -> tuple[Group | None, ConsumerHeartbeat, Env]:
    world, command = consumer_world()
    change(world)
    return world.group, command, world.env


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.set_topics(foo=5),
        lambda world: world.join("c", "foo"),
        lambda world: world.heartbeat("b", -1),
        lambda world: world.jump(45_000),
    ],
    ids=["topics changed", "a member joined", "a member left", "sessions are over"],
)
def test_consumer_heartbeats_that_lead_to_something_are_decided(change: Callable[[ConsumerWorld], object]) -> None:
    assert not accepted(*moved(change))


def test_members_of_a_group_with_regular_expressions_are_accepted_until_the_next_resolution() -> None:
    world = ConsumerWorld()
    world.set_topics(foo=2)
    joined = world.join("a", subscribed_topic_names=None, subscribed_topic_regex="f.*")
    world.resolve_regexes()
    epoch = joined.epoch
    for _ in range(3):
        epoch = world.heartbeat("a", epoch, client_id="client").epoch
    command = replace(ConsumerHeartbeat(CONSUMERS, "a", epoch), client_id="client", client_host="10.0.0.1")
    assert accepted(world.group, command, world.env)
    for _ in range(14):
        world.jump(40_000)
        assert accepted(world.group, command, world.env)
        world.send(command)
    world.jump(44_000)
    assert not accepted(world.group, command, world.env), "what it matches is looked up again after ten minutes"
    world.send(command)
    assert world.resolutions
