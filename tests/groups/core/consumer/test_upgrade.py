"""A classic group becomes a consumer group (consumer.md 9.4 to 9.6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.machine import decide
from groups.core.model.events import EventKind
from groups.core.model.types import ClassicGroup, MigrationPolicy, Protocol
from kcoord.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import (
    ALL,
    join_classic,
    migrating_world,
    sync_classic,
)
from tests.groups.core.consumer.converting import classic, kinds
from tests.groups.core.consumer.world import World


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
