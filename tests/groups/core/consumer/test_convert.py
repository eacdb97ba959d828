"""Groups that change their protocol: consumer.md 9.4 to 9.6."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.machine import decide
from groups.core.model.causes import Cause
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.consumer_records import ConsumerMemberRemoved
from groups.core.model.events import EventKind, events_of
from groups.core.model.records import RebalanceStarted
from groups.core.model.types import ClassicGroup, GroupState, MigrationPolicy, Protocol
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
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
from tests.groups.core.consumer.world import GROUP, World


def classic(made: World, instance_id: str | None = "i1", plan: dict[str, list[int]] | None = None) -> str:
    """A Stable classic group of one member that has foo 0 to 5; its id."""
    joined = join_classic(made, "", ("foo",), instance_id=instance_id)
    if joined.reply is not None and joined.error is Error.MEMBER_ID_REQUIRED:
        joined = join_classic(made, joined.reply.member_id, ("foo",), instance_id=instance_id)
    member_id: str = joined.reply.member_id
    assert sync_classic(made, member_id, 1, {member_id: plan or {"foo": ALL}}, instance_id).error is Error.NONE
    return member_id


def kinds(made: World, *wanted: EventKind) -> list[EventKind]:
    assert made.last is not None
    return [event.kind for event in events_of(None, made.last.records) if event.kind in wanted]


# -- upgrade


def test_a_consumer_member_upgrades_a_classic_group() -> None:
    made = migrating_world()
    old = classic(made)
    call = made.join("m1", "foo")
    assert (call.epoch, call.assignment) == (2, {})
    assert kinds(made, EventKind.GROUP_CONVERTED, EventKind.MEMBER_JOINED) == [
        EventKind.GROUP_CONVERTED,
        EventKind.MEMBER_JOINED,
    ]
    member = made.member(old)
    assert (member.member_epoch, member.previous_member_epoch, member.classic is not None) == (1, 1, True)
    assert made.assigned(old) == {"foo": ALL}
    assert made.consumer.timers.session[old].deadline == made.now + 10_000


def test_in_a_group_that_was_upgraded_no_target_was_computed_yet() -> None:
    """consumer.md 1.1 and 5.1: so the first one need not wait for the interval between two."""
    made = migrating_world(consumer_assignment_interval_ms=15_000)
    classic(made)
    assert made.join("m1").epoch == 1
    assert made.consumer.assignment_timestamp == 0
    assert made.join("m2", "foo").epoch == 2
    assert made.consumer.assignment_timestamp == made.now


def test_an_upgrade_leaves_out_partitions_that_the_topic_does_not_have() -> None:
    """A leader may assign whatever it likes; nobody else could ever get these back (consumer.md 9.4)."""
    made = migrating_world()
    old = classic(made, plan={"foo": [*ALL, len(ALL), 99]})
    made.join("m1", "foo")
    assert made.assigned(old) == {"foo": ALL}


def test_an_upgrade_leaves_out_topics_that_do_not_exist() -> None:
    made = migrating_world()
    old = classic(made, plan={"foo": ALL, "gone": [0]})
    made.join("m1", "foo")
    assert made.assigned(old) == {"foo": ALL}


def test_an_upgrade_reads_the_metadata_of_the_protocol_that_the_group_chose() -> None:
    """consumer.md 9.4: a member may prefer another one, under which it subscribes to something else."""
    made = migrating_world()
    old = classic(made)
    assert isinstance(made.group, ClassicGroup)
    preferred = Protocol("mine", encode_subscription(Subscription(("bar",))))
    member = made.group.members[old]
    changed = replace(member, protocols=(preferred, *member.protocols))
    made.group = replace(made.group, members=made.group.members.put(changed))
    made.join("m1", "foo")
    assert made.member(old).subscribed_topic_names == {"foo"}


def test_an_upgrade_remembers_the_topics_that_it_saw() -> None:
    """Otherwise the next change of any topic would look like one of theirs (consumer.md 4.4)."""
    made = migrating_world()
    classic(made)
    made.join("m1")
    epochs = made.epochs
    made.set_topics(bar=1)
    made.heartbeat("m1", made.member("m1").member_epoch)
    assert made.epochs == epochs


def test_an_upgrade_is_asked_for_by_a_valid_request() -> None:
    """consumer.md 2.2 comes before 2.3."""
    made = migrating_world(MigrationPolicy.DISABLED)
    classic(made)
    assert made.join("m1", "foo", rebalance_timeout_ms=-1).error is Error.INVALID_REQUEST


def test_a_group_as_large_as_a_consumer_group_may_be_is_upgraded_and_full() -> None:
    made = migrating_world(consumer_max_size=1)
    classic(made)
    assert made.join("m1", "foo").error is Error.GROUP_MAX_SIZE_REACHED


def test_without_a_reader_of_subscriptions_a_group_stays_classic() -> None:
    made = migrating_world()
    classic(made)
    command = made.join("m1", "foo", instance_id="i1").command
    made = migrating_world()
    classic(made)
    decision = decide(made.group, command, replace(made.env, consumer_protocol=None))
    assert decision.reply.error is Error.GROUP_ID_NOT_FOUND  # type: ignore[union-attr]
    assert decision.group is made.group


REFUSALS: dict[str, tuple[World, str]] = {
    "policy": (migrating_world(MigrationPolicy.DOWNGRADE), "migration.policy"),
    "disabled": (migrating_world(MigrationPolicy.DISABLED), "migration.policy"),
    "too large": (migrating_world(consumer_max_size=0), "max.size"),
}


@pytest.mark.parametrize(("made", "named"), REFUSALS.values(), ids=REFUSALS)
def test_upgrades_that_are_refused(made: World, named: str) -> None:
    made = replace(made)
    classic(made)
    before = made.group
    refused = made.join("m1", "foo")
    assert refused.error is Error.GROUP_ID_NOT_FOUND
    assert named in refused.reply.detail
    assert made.group is before


@pytest.mark.parametrize(
    "change",
    [
        {"protocol_type": "connect"},
        {"protocols": (Protocol("range", b"\x00"),)},
        {"assignment": b"\x00"},
        {"assignment": encode_assignment(Assignment({"foo": (0,)}, user_data=b"mine"))},
    ],
    ids=["type", "metadata", "assignment", "user data"],
)
def test_groups_of_another_kind_stay_classic(change: dict[str, object]) -> None:
    made = migrating_world()
    member_id = classic(made)
    assert isinstance(made.group, ClassicGroup)
    if "protocol_type" in change:
        made.group = replace(made.group, protocol_type="connect")
    else:
        member = replace(made.group.members[member_id], **change)  # type: ignore[arg-type]
        made.group = replace(made.group, members=made.group.members.put(member))
    before = made.group
    assert made.join("m1", "foo").error is Error.GROUP_ID_NOT_FOUND
    assert made.group is before


@pytest.mark.parametrize("epoch", [1, -1])
def test_a_classic_group_is_none_to_members_that_do_not_join(epoch: int) -> None:
    made = migrating_world()
    classic(made)
    assert made.heartbeat("m1", epoch).error is Error.GROUP_ID_NOT_FOUND


def test_joins_that_wait_are_told_to_join_again() -> None:
    made = migrating_world()
    first = classic(made)
    waits = join_classic(made, "", ("foo",), instance_id="i2")
    assert waits.parked is not None
    made.join("m1", "foo")
    assert waits.error is Error.REBALANCE_IN_PROGRESS
    assert set(made.consumer.members) == {first, waits.reply.member_id, "m1"}
    assert join_classic(made, waits.reply.member_id, ("foo",), instance_id="i2").error is Error.NONE


def test_syncs_that_wait_are_told_to_join_again() -> None:
    made = migrating_world()
    leader = classic(made)
    follower = join_classic(made, "", ("foo",), instance_id="i2")
    join_classic(made, leader, ("foo",), instance_id="i1")
    waits = sync_classic(made, follower.reply.member_id, 2, instance_id="i2")
    assert waits.parked is not None
    made.join("m1", "foo")
    assert waits.error is Error.REBALANCE_IN_PROGRESS
    assert follower.reply.member_id in made.consumer.members


def test_a_partition_that_a_leader_gave_twice_has_one_owner() -> None:
    made = migrating_world()
    one = classic(made)
    two = join_classic(made, "", ("foo",), instance_id="i2")
    join_classic(made, one, ("foo",), instance_id="i1")
    ids = [one, two.reply.member_id]
    sync_classic(made, one, 2, {member_id: {"foo": ALL} for member_id in ids}, "i1")
    made.join("m1", "foo")
    assert made.assigned(min(ids)) == {"foo": ALL}
    assert made.assigned(max(ids)) == {}


@pytest.mark.parametrize("policy", list(MigrationPolicy))
def test_an_empty_classic_group_is_replaced_under_every_policy(policy: MigrationPolicy) -> None:
    made = migrating_world(policy)
    made.commit("", -1)
    assert isinstance(made.group, ClassicGroup)
    assert made.join("m1", "foo").epoch == 1


def test_a_consumer_member_takes_over_a_classic_instance() -> None:
    made = migrating_world()
    old = classic(made)
    call = made.join("m1", "foo", instance_id="i1")
    assert call.assignment == {"foo": ALL}
    assert made.epochs == (1, 1), "the same subscription"
    assert old not in made.consumer.members
    assert made.member("m1").classic is None


# -- downgrade


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
