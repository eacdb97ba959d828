"""A consumer group becomes a classic group (consumer.md 9.4 to 9.6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.machine import decide
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.consumer_records import ConsumerMemberRemoved
from groups.core.model.events import EventKind, events_of
from groups.core.model.records import RebalanceStarted
from groups.core.model.types import Cause, ClassicGroup, GroupState, MigrationPolicy, Protocol
from kcoord.protocol.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import (
    ALL,
    beat_classic,
    join_classic,
    leave_classic,
    migrating_world,
    sync_classic,
    synced,
)
from tests.groups.core.consumer.converting import classic, kinds
from tests.groups.core.consumer.world import GROUP, World


def mixed(policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL) -> tuple[World, str]:
    """m1 of the consumer protocol and a classic member, whose id is returned."""
    made = migrating_world(policy)
    made.join("m1", "foo")
    asked = join_classic(made, "", ("foo",))
    assert asked.error is Error.MEMBER_ID_REQUIRED
    member_id: str = join_classic(made, asked.reply.member_id, ("foo",)).reply.member_id
    return made, member_id


def test_when_the_last_consumer_member_leaves_the_group_is_classic_again() -> None:
    made, member_id = mixed()
    made.heartbeat("m1", -1)
    assert isinstance(made.group, ClassicGroup)
    assert (made.group.generation_id, made.group.protocol_name) == (2, "range")
    assert made.group.state is GroupState.PREPARING_REBALANCE
    assert kinds(made, EventKind.MEMBER_LEFT, EventKind.GROUP_CONVERTED, EventKind.REBALANCE_STARTED) == [
        EventKind.MEMBER_LEFT,
        EventKind.GROUP_CONVERTED,
        EventKind.REBALANCE_STARTED,
    ]
    assert beat_classic(made, member_id, 2).error is Error.REBALANCE_IN_PROGRESS
    assert join_classic(made, member_id, ("foo",)).reply.generation_id == 3


def test_when_the_last_consumer_member_expires_the_group_is_classic_again() -> None:
    made, member_id = mixed()
    assert sync_classic(made, member_id, 2).error is Error.NONE
    for _ in range(45):
        made.advance(1_000)
        beat_classic(made, member_id, 2)
    assert isinstance(made.group, ClassicGroup)
    assert set(made.group.members) == {member_id}


def test_a_departed_member_still_makes_it_a_consumer_group() -> None:
    made = migrating_world()
    made.join("m1", "foo", instance_id="i1")
    join_classic(made, "c", ("foo",))
    made.heartbeat("m1", -2, instance_id="i1")
    assert isinstance(made.group, ConsumerGroup)


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DISABLED])
def test_without_a_downgrade_the_group_goes_on(policy: MigrationPolicy) -> None:
    made, member_id = mixed(policy)
    made.heartbeat("m1", -1)
    assert set(made.consumer.members) == {member_id}
    assert made.epochs[0] == 3


def test_a_group_too_large_for_a_classic_one_goes_on() -> None:
    made, _ = mixed()
    made.config = replace(made.config, max_size=0)
    made.heartbeat("m1", -1)
    assert isinstance(made.group, ConsumerGroup)


@pytest.mark.parametrize("owned", [None, {"foo": ALL, "bar": [0, 1]}], ids=["eager", "cooperative"])
@pytest.mark.parametrize(
    ("topics", "state"),
    [
        (("foo", "bar"), "Stable"),
        (("foo",), "PreparingRebalance"),
        (("foo", "bar", "baz"), "PreparingRebalance"),
        (("baz",), "PreparingRebalance"),
    ],
    ids=["equal", "smaller", "larger", "another"],
)
def test_a_classic_static_member_takes_the_last_place_of_the_consumer_protocol(
    topics: tuple[str, ...], state: str, owned: dict[str, list[int]] | None
) -> None:
    """Differs from Kafka: it answers generation 0 where the subscription changed; here it is always the group's."""
    made = migrating_world()
    made.set_topics(bar=2, baz=1)
    made.join("m1", "foo", "bar", instance_id="i1")
    call = join_classic(made, "", topics, owned, instance_id="i1")
    assert isinstance(made.group, ClassicGroup)
    assert made.group.state.value == state
    assert call.reply.generation_id == made.group.generation_id == (1 if state == "Stable" else 2)
    member_id = call.reply.member_id
    generation = call.reply.generation_id
    if state == "Stable":
        assert synced(sync_classic(made, member_id, 1, instance_id="i1")) == {"bar": [0, 1], "foo": ALL}
    else:
        assert sync_classic(made, member_id, generation, instance_id="i1").error is Error.REBALANCE_IN_PROGRESS
        assert beat_classic(made, member_id, generation, "i1").error is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("reason", [None, "moved"])
def test_the_rebalance_after_a_takeover_tells_the_reason_of_the_join(reason: str | None) -> None:
    made = migrating_world()
    made.join("m1", "foo", instance_id="i1")
    call = join_classic(made, "", ("bar",), instance_id="i1", reason=reason)
    assert made.last is not None
    (started,) = [record for record in made.last.records if isinstance(record, RebalanceStarted)]
    assert (started.cause, started.member_id) == (Cause.STATIC_MEMBER_REPLACED, call.reply.member_id)
    assert started.detail == (reason or "")


def test_a_takeover_from_a_member_with_a_regular_expression_rebalances() -> None:
    made = migrating_world()
    made.join("m1", "foo", instance_id="i1", subscribed_topic_regex="b.*")
    made.resolve_regexes()
    join_classic(made, "", ("foo",), instance_id="i1")
    assert isinstance(made.group, ClassicGroup)
    assert made.group.state is GroupState.PREPARING_REBALANCE


def test_a_takeover_without_a_downgrade_stays_a_consumer_group() -> None:
    made = migrating_world(MigrationPolicy.UPGRADE)
    made.join("m1", "foo", instance_id="i1")
    call = join_classic(made, "", ("foo",), instance_id="i1")
    assert made.member(call.reply.member_id).classic is not None


def test_a_classic_member_that_restarts_changes_no_protocol() -> None:
    """consumer.md 9.6: it is the last member of the consumer protocol whose place must be taken."""
    made = migrating_world(MigrationPolicy.DISABLED)
    made.join("m1", "foo")
    join_classic(made, "", ("foo",), instance_id="i1")
    made.heartbeat("m1", -1)
    made.config = replace(made.config, consumer_migration_policy=MigrationPolicy.BIDIRECTIONAL)
    assert join_classic(made, "", ("foo",), instance_id="i1").error is Error.NONE
    assert isinstance(made.group, ConsumerGroup)


def test_without_a_reader_of_subscriptions_a_group_stays_a_consumer_group() -> None:
    made, member_id = mixed()
    command = ConsumerHeartbeat(GROUP, "m1", -1)
    decision = decide(made.group, command, replace(made.env, consumer_protocol=None))
    assert decision.reply.error is Error.NONE  # type: ignore[union-attr]
    assert isinstance(decision.group, ConsumerGroup)
    assert set(decision.group.members) == {member_id}


def test_an_empty_consumer_group_is_replaced_by_a_classic_join() -> None:
    made = migrating_world(MigrationPolicy.DISABLED)
    made.join("m1", "foo")
    made.heartbeat("m1", -1)
    before = made.group
    assert join_classic(made, "x", ("foo",)).error is Error.UNKNOWN_MEMBER_ID
    assert made.group is before, "a refused join replaces nothing"
    asked = join_classic(made, "", ("foo",))
    assert asked.error is Error.MEMBER_ID_REQUIRED
    assert isinstance(made.group, ClassicGroup)
    assert join_classic(made, asked.reply.member_id, ("foo",)).error


def test_a_group_that_is_replaced_starts_at_the_beginning() -> None:
    """consumer.md 2.3, row 3, and classic.md 2.2, row 3: nothing is left of the generation or epoch."""
    made = migrating_world()
    leave_classic(made, (classic(made), "i1"))
    before = made.group
    assert isinstance(before, ClassicGroup)
    assert before.generation_id == 2
    made.join("m1", "foo")
    assert made.last is not None
    told = events_of(before, made.last.records)
    assert [(event.kind, event.generation_id) for event in told][:3] == [
        (EventKind.GROUP_CONVERTED, 0),
        (EventKind.MEMBER_JOINED, 0),
        (EventKind.GROUP_EPOCH_BUMPED, 1),
    ]
    assert told[0].detail == {"protocol": "consumer"}
    made.heartbeat("m1", -1)
    before = made.group
    join_classic(made, "", ("foo",), instance_id="i1")
    told = events_of(before, made.last.records)
    assert (told[0].kind, told[0].generation_id) == (EventKind.GROUP_CONVERTED, 0)
    assert told[0].detail == {"protocol": "classic"}


def test_a_classic_member_that_leaves_a_mixed_group_changes_no_protocol() -> None:
    made, member_id = mixed()
    join_classic(made, "d", ("foo",))
    leave_classic(made, (member_id, None))
    assert set(made.consumer.members) == {"m1", "d"}


def test_a_downgrade_hands_out_the_target_in_order_and_in_the_version_of_the_subscription() -> None:
    made = migrating_world()
    made.set_topics(bar=2)
    made.join("m1", "foo")
    old = (Protocol("range", encode_subscription(Subscription(("foo", "bar"), version=1))),)
    join_classic(made, "c", ("foo",), protocols=old)
    made.set_topics(bar=None)
    leave_classic(made, ("m1", None))
    assert isinstance(made.group, ClassicGroup)
    member = made.group.members["c"]
    assert not member.is_new
    assignment = decode_assignment(member.assignment)
    assert assignment is not None
    assert assignment.version == 1
    assert assignment.partitions == {"foo": (0, 1, 2)}


@pytest.mark.parametrize(("limit", "kind"), [(1, ConsumerGroup), (2, ClassicGroup)])
def test_a_group_as_large_as_a_classic_group_may_be_becomes_one(limit: int, kind: type) -> None:
    made = migrating_world(max_size=limit)
    made.join("m1", "foo")
    for member_id in ("c", "d"):
        join_classic(made, member_id, ("foo",))
    leave_classic(made, ("m1", None))
    assert isinstance(made.group, kind)


def test_a_removal_that_changes_the_protocol_names_nobody_who_did_it() -> None:
    made, _ = mixed()
    made.heartbeat("m1", -1)
    assert made.last is not None
    removed = [record for record in made.last.records if isinstance(record, ConsumerMemberRemoved)]
    assert [(record.by, record.detail) for record in removed] == [("", "")]
