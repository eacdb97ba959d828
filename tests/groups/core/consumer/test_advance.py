"""What a request of a member sets going: the cause of a new epoch, what it gives up, its timers (consumer.md 2.5)."""

from __future__ import annotations

import pytest

from groups.core.model.consumer_group import MemberState
from groups.core.model.consumer_records import (
    ConsumerMemberJoined,
    ConsumerMemberRemoved,
    ConsumerMemberReplaced,
    GroupEpochBumped,
    MetadataChecked,
    TimerCancelled,
)
from groups.core.model.types import Cause, GroupConfig, MigrationPolicy
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import join_classic, leave_classic, migrating_world, sync_classic
from tests.groups.core.consumer.world import World


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


def test_a_group_is_in_a_state_since_the_state_changed() -> None:
    """consumer.md 1.4."""
    made = world()
    started = made.now
    steps = [
        (lambda: made.join("m1", "foo"), "Stable", 0),
        (lambda: made.heartbeat("m1", 1), "Stable", 0),
        (lambda: made.join("m2", "foo"), "Reconciling", 20),
        (lambda: made.heartbeat("m1", 1), "Reconciling", 20),
        (lambda: made.heartbeat("m1", 1, {"foo": [0, 1, 2]}), "Reconciling", 20),
        (lambda: made.heartbeat("m2", 2), "Stable", 50),
        (lambda: made.heartbeat("m2", -1), "Assigning", 60),
        (lambda: made.heartbeat("m1", -1), "Empty", 70),
    ]
    for number, (act, state, since) in enumerate(steps):
        made.now = started + 10 * number
        act()
        assert (made.consumer.state.value, made.consumer.state_since - started) == (state, since)


def test_the_topics_are_looked_at_once_for_each_change_of_the_catalogue() -> None:
    """consumer.md 4.4: a bump looks at them too."""
    made = world()
    made.stable("m1")
    looked = []
    for _ in range(2):
        made.set_topics(foo=7)
        made.heartbeat("m1", made.member("m1").member_epoch)
        looked.append((len(records(made, GroupEpochBumped)), len(records(made, MetadataChecked))))
        made.heartbeat("m1", made.member("m1").member_epoch)
        assert not records(made, GroupEpochBumped)
        assert not records(made, MetadataChecked)
    assert looked == [(1, 0), (0, 1)]


def test_what_a_member_has_given_up_with_its_subscription_is_free_at_once() -> None:
    """consumer.md 6.3, where the new subscription says that it owns nothing of the topic any more."""
    made = world(consumer_assignment_interval_ms=20_000)
    made.join("m1", "foo", "bar")
    made.heartbeat("m1", 1, {"bar": [0, 1]}, subscribed_topic_names=frozenset({"bar"}))
    assert made.epochs == (2, 1)
    assert made.assigned("m1") == {"bar": [0, 1]}
    assert made.member("m1").state is MemberState.STABLE
    assert set(made.consumer.members.owners.values()) == {"m1"}
    assert len(made.consumer.members.owners) == 2


def test_a_member_starts_without_epochs() -> None:
    """consumer.md 3.1, row 2."""
    made = world()
    made.join("m1", "foo")
    (joined,) = records(made, ConsumerMemberJoined)
    member = joined.member  # type: ignore[attr-defined]
    assert (member.member_epoch, member.previous_member_epoch, member.state) == (0, -1, MemberState.STABLE)
    assert (member.assigned, member.pending_revocation, member.target) == ({}, {}, {})


def test_a_member_may_have_no_client_id() -> None:
    made = world()
    made.join("m1", "foo", client_id="")
    assert made.member("m1").client_id == ""


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
    assert not records(made, TimerCancelled), "a member that joins has none"
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


def test_what_a_request_does_not_say_stays_as_it_was() -> None:
    """consumer.md 2.5, step 1."""
    made = world()
    said = {"rack_id": "r", "client_id": "mine", "server_assignor": "range", "rebalance_timeout_ms": 5_000}
    made.heartbeat("m1", 0, {}, subscribed_topic_names=frozenset({"foo"}), **said)
    made.heartbeat("m1", 1, client_id="")
    assert {name: getattr(made.member("m1"), name) for name in said} == said


def test_a_member_that_takes_an_instance_id_keeps_what_it_has() -> None:
    made = world()
    made.stable("m1")
    epochs = made.epochs
    assert made.join("m1", "foo", instance_id="i").error is Error.NONE
    assert made.epochs == epochs, "consumer.md 4.1: an instance id is no reason for a new epoch"
    assert made.assigned("m1") == {"foo": [0, 1, 2, 3, 4, 5]}
    assert made.consumer.members.static == {"i": "m1"}


def test_a_leave_of_strangers_changes_nothing() -> None:
    made = world()
    made.stable("m1")
    before = made.group
    assert [entry.error for entry in leave_classic(made, ("x", None)).reply.members] == [Error.UNKNOWN_MEMBER_ID]
    assert made.group is before


def test_a_removal_says_who_did_it_and_which_session_ended() -> None:
    made = migrating_world(MigrationPolicy.DISABLED)
    made.join("m1", "foo")
    join_classic(made, "c", ("foo",), session_timeout_ms=8_000, rebalance_timeout_ms=60_000)
    made.advance(8_000)
    (removed,) = records(made, ConsumerMemberRemoved)
    assert (removed.member_id, removed.cause) == ("c", Cause.SESSION_EXPIRED)  # type: ignore[attr-defined]
    assert removed.session_timeout_ms == 8_000  # type: ignore[attr-defined]
    assert (removed.by, removed.detail) == ("", "")  # type: ignore[attr-defined]
    made.heartbeat("m1", -1)
    (removed,) = records(made, ConsumerMemberRemoved)
    assert (removed.by, removed.detail, removed.session_timeout_ms) == ("", "", None)  # type: ignore[attr-defined]
