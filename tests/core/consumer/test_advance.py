"""What a request of a member sets going: the cause of a new epoch, what it gives up, its timers (consumer.md 2.5)."""

from __future__ import annotations

import pytest

from groups.core.model.causes import Cause
from groups.core.model.consumer_records import ConsumerMemberReplaced, GroupEpochBumped, TimerCancelled
from groups.core.model.consumer_state import MemberState
from groups.core.model.types import GroupConfig, MigrationPolicy
from tests.core.consumer.classic_client import join_classic, migrating_world, sync_classic
from tests.core.consumer.world import World


def world(**fields: int) -> World:
    made = World(config=GroupConfig(**fields))
    made.set_topics(foo=6, bar=2)
    return made


def records(made: World, kind: type) -> list[object]:
    assert made.last is not None
    return [record for record in made.last.records if isinstance(record, kind)]


def bumps(made: World) -> list[tuple[Cause, str | None]]:
    return [(bump.cause, bump.member_id) for bump in records(made, GroupEpochBumped)]  # type: ignore[attr-defined]


def test_an_epoch_has_the_cause_and_the_member_that_made_it() -> None:
    made = world()
    made.join("m1", "foo")
    assert bumps(made) == [(Cause.GROUP_CREATED, "m1")]
    made.join("m2", "foo")
    assert bumps(made) == [(Cause.MEMBER_JOINED, "m2")]
    made.heartbeat("m2", 0, {}, rebalance_timeout_ms=5_000, subscribed_topic_names=frozenset({"bar"}))
    assert bumps(made) == [(Cause.SUBSCRIPTION_CHANGED, "m2")]
    made.join("m3")
    assert bumps(made) == []
    made.heartbeat("m3", made.member("m3").member_epoch, subscribed_topic_regex="b.*")
    made.resolve_regexes()
    made.join("m4", subscribed_topic_regex="b.*")
    assert bumps(made) == [(Cause.MEMBER_JOINED, "m4")]


@pytest.mark.parametrize("regex", [None, "f.*"])
def test_partitions_of_topics_no_longer_subscribed_are_given_up_before_there_is_a_target(regex: str | None) -> None:
    """consumer.md 6.3: names alone and a regular expression alone count as a change of the subscription."""
    made = world(consumer_assignment_interval_ms=20_000)
    if regex is None:
        made.join("m1", "foo", "bar")
        epoch = made.member("m1").member_epoch
        changed = {"subscribed_topic_names": frozenset({"bar"})}
    else:
        made.join("m0", subscribed_topic_regex=regex)
        made.resolve_regexes()
        made.join("m1", "bar", subscribed_topic_regex=regex)
        made.heartbeat("m0", -1)
        made.advance(20_000)
        made.heartbeat("m1", made.member("m1").member_epoch, made.assigned("m1"))
        epoch = made.member("m1").member_epoch
        changed = {"subscribed_topic_regex": ""}
    assert set(made.assigned("m1")) == {"foo", "bar"}
    target = made.epochs[1]
    made.heartbeat("m1", epoch, **changed)
    assert made.epochs == (target + 1, target)
    assert set(made.assigned("m1")) == {"bar"}
    assert made.member("m1").state is MemberState.UNREVOKED_PARTITIONS


def test_only_members_of_the_consumer_protocol_have_a_rebalance_timer() -> None:
    """A classic member that must give something up has to join again, which has a timer of its own."""
    made = migrating_world(MigrationPolicy.DISABLED)
    made.join("m1", "foo")
    join_classic(made, "c", ("foo",))
    made.heartbeat("m1", -1)
    call = join_classic(made, "c", ("foo",))
    sync_classic(made, "c", call.reply.generation_id)
    made.join("m2", "foo")
    join_classic(made, "c", ("foo",), {"foo": [0, 1, 2, 3, 4, 5]})
    assert made.member("c").state is MemberState.UNREVOKED_PARTITIONS
    assert not made.consumer.timers.rebalance


def test_the_rebalance_timer_is_cancelled_once() -> None:
    made = world()
    made.stable("m1")
    made.join("m2", "foo")
    for cancelled in (0, 1, 0):
        member = made.member("m1")
        made.heartbeat("m1", member.member_epoch, made.assigned("m1") if made.consumer.timers.rebalance else None)
        assert len(records(made, TimerCancelled)) == cancelled


def test_whoever_takes_the_place_of_a_static_member_has_no_epoch_before() -> None:
    """consumer.md 3.3."""
    made = world()
    made.stable("m1", instance_id="i")
    made.heartbeat("m1", made.member("m1").member_epoch, subscribed_topic_names=frozenset({"foo", "bar"}))
    assert made.member("m1").previous_member_epoch > 0
    made.heartbeat("m1", -2, instance_id="i")
    made.join("m2", "foo", instance_id="i")
    (replaced,) = records(made, ConsumerMemberReplaced)
    member = replaced.member  # type: ignore[attr-defined]
    assert (member.member_epoch, member.previous_member_epoch) == (0, 0)
