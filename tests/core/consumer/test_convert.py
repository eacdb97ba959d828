"""Groups that change their protocol, and classic members in consumer groups: section 9."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.commands import DeleteGroup
from groups.core.consumer.group import ConsumerGroup
from groups.core.events import EventKind, events_of
from groups.core.types import ClassicGroup, GroupConfig, GroupState, MigrationPolicy, Protocol
from kcoord.consumer_protocol import Assignment, encode_assignment
from kcoord.errors import Error
from tests.core.consumer.classic_client import beat_classic, join_classic, leave_classic, sync_classic, synced
from tests.core.consumer.world import World

ALL = [0, 1, 2, 3, 4, 5]


def world(policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL, **fields: int) -> World:
    made = World(config=GroupConfig(consumer_migration_policy=policy, initial_rebalance_delay_ms=0, **fields))
    made.set_topics(foo=6)
    return made


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
    made = world()
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


REFUSALS: dict[str, tuple[World, str]] = {
    "policy": (world(MigrationPolicy.DOWNGRADE), "migration.policy"),
    "disabled": (world(MigrationPolicy.DISABLED), "migration.policy"),
    "too large": (world(consumer_max_size=0), "max.size"),
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
    made = world()
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
    made = world()
    classic(made)
    assert made.heartbeat("m1", epoch).error is Error.GROUP_ID_NOT_FOUND


def test_joins_and_syncs_that_wait_are_told_to_join_again() -> None:
    made = world()
    first = classic(made)
    waits = join_classic(made, "", ("foo",), instance_id="i2")
    assert waits.parked is not None
    made.join("m1", "foo")
    assert waits.error is Error.REBALANCE_IN_PROGRESS
    assert set(made.consumer.members) == {first, waits.reply.member_id, "m1"}
    assert join_classic(made, waits.reply.member_id, ("foo",), instance_id="i2").error is Error.NONE


def test_a_partition_that_a_leader_gave_twice_has_one_owner() -> None:
    made = world()
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
    made = world(policy)
    made.commit("", -1)
    assert isinstance(made.group, ClassicGroup)
    assert made.join("m1", "foo").epoch == 1


def test_a_consumer_member_takes_over_a_classic_instance() -> None:
    made = world()
    old = classic(made)
    call = made.join("m1", "foo", instance_id="i1")
    assert call.assignment == {"foo": ALL}
    assert made.epochs == (1, 1), "the same subscription"
    assert old not in made.consumer.members
    assert made.member("m1").classic is None


# -- downgrade


def mixed(policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL) -> tuple[World, str]:
    """m1 of the consumer protocol and a classic member, whose id is returned."""
    made = world(policy)
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
    made = world()
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


@pytest.mark.parametrize(("topics", "state"), [(("foo",), "Stable"), (("bar",), "PreparingRebalance")])
def test_a_classic_static_member_takes_the_last_place_of_the_consumer_protocol(
    topics: tuple[str, ...], state: str
) -> None:
    made = world()
    made.join("m1", "foo", instance_id="i1")
    call = join_classic(made, "", topics, instance_id="i1")
    assert isinstance(made.group, ClassicGroup)
    assert made.group.state.value == state
    assert call.reply.generation_id == made.group.generation_id
    member_id = call.reply.member_id
    if state == "Stable":
        assert synced(sync_classic(made, member_id, 1, instance_id="i1")) == {"foo": ALL}
    else:
        assert sync_classic(made, member_id, 2, instance_id="i1").error is Error.REBALANCE_IN_PROGRESS


def test_an_empty_consumer_group_is_replaced_by_a_classic_join() -> None:
    made = world(MigrationPolicy.DISABLED)
    made.join("m1", "foo")
    made.heartbeat("m1", -1)
    before = made.group
    assert join_classic(made, "x", ("foo",)).error is Error.UNKNOWN_MEMBER_ID
    assert made.group is before, "a refused join replaces nothing"
    asked = join_classic(made, "", ("foo",))
    assert asked.error is Error.MEMBER_ID_REQUIRED
    assert isinstance(made.group, ClassicGroup)
    assert join_classic(made, asked.reply.member_id, ("foo",)).error


# -- classic members of a consumer group


def alone() -> World:
    """A classic member c at generation 1 of a group that m1 made and left; it may not become a classic group."""
    made = world(MigrationPolicy.DISABLED)
    made.join("m1", "foo", instance_id="s")
    join_classic(made, "c", ("foo",), instance_id=None)
    made.heartbeat("m1", -1, instance_id="s")
    call = join_classic(made, "c", ("foo",))
    assert call.reply.generation_id == 3
    assert synced(sync_classic(made, "c", 3)) == {"foo": ALL}
    return made


def test_a_classic_member_is_answered_at_once_and_leads_nobody() -> None:
    made = alone()
    call = join_classic(made, "c", ("foo",))
    assert (call.reply.leader, call.reply.members, call.reply.protocol_name) == ("", (), "range")
    assert set(made.consumer.timers.sync) == {"c"}
    sync_classic(made, "c", 3)
    assert not made.consumer.timers.sync


JOINS: dict[str, tuple[dict[str, object], str]] = {
    "another protocol type": ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
    "no protocol": ({"protocols": ()}, "INCONSISTENT_GROUP_PROTOCOL"),
    "a protocol of nobody": ({"protocols": (Protocol("x", b""),)}, "INCONSISTENT_GROUP_PROTOCOL"),
    "bytes that are none": ({"protocols": (Protocol("range", b"\x00"),)}, "INCONSISTENT_GROUP_PROTOCOL"),
    "a session out of bounds": ({"session_timeout_ms": 1}, "INVALID_SESSION_TIMEOUT"),
    "a chosen id": ({"member_id": "new"}, "NONE"),
    "no id": ({"member_id": ""}, "MEMBER_ID_REQUIRED"),
    "an instance of nobody": ({"member_id": "new", "group_instance_id": "i"}, "UNKNOWN_MEMBER_ID"),
    "an instance of another": ({"member_id": "new", "group_instance_id": "s"}, "FENCED_INSTANCE_ID"),
    "an instance without id": ({"member_id": "", "group_instance_id": "s"}, "NONE"),
    "a new instance without id": ({"member_id": "", "group_instance_id": "t"}, "NONE"),
}


@pytest.mark.parametrize(("fields", "error"), JOINS.values(), ids=JOINS)
def test_classic_joins(fields: dict[str, object], error: str) -> None:
    made = alone()
    join_classic(made, "", ("foo",), instance_id="s")
    before = made.group
    call = join_classic(made, str(fields.pop("member_id", "new")), ("foo",), **fields)  # type: ignore[arg-type]
    assert call.error.name == error
    assert error == "NONE" or made.group is before


def test_a_full_group_takes_no_classic_member() -> None:
    made = alone()
    made.config = replace(made.config, consumer_max_size=1)
    assert join_classic(made, "d", ("foo",)).error is Error.GROUP_MAX_SIZE_REACHED
    assert join_classic(made, "c", ("foo",)).error is Error.NONE


CLASSIC_MEMBERS = {
    "beats": (lambda w: beat_classic(w, "c", 3), "NONE"),
    "beats with another generation": (lambda w: beat_classic(w, "c", 2), "ILLEGAL_GENERATION"),
    "a stranger beats": (lambda w: beat_classic(w, "x", 3), "UNKNOWN_MEMBER_ID"),
    "an instance of nobody beats": (lambda w: beat_classic(w, "c", 3, "i"), "UNKNOWN_MEMBER_ID"),
    "a consumer member beats": (lambda w: (w.join("m1"), beat_classic(w, "m1", 3))[1], "UNKNOWN_MEMBER_ID"),
    "syncs": (lambda w: sync_classic(w, "c", 3), "NONE"),
    "syncs with another generation": (lambda w: sync_classic(w, "c", 4), "ILLEGAL_GENERATION"),
    "syncs when a new epoch is there": (
        lambda w: (w.join("m1", "foo"), sync_classic(w, "c", 3))[1],
        "REBALANCE_IN_PROGRESS",
    ),
    "beats when a new epoch is there": (
        lambda w: (w.join("m1", "foo"), beat_classic(w, "c", 3))[1],
        "REBALANCE_IN_PROGRESS",
    ),
}


@pytest.mark.parametrize(("ask", "error"), CLASSIC_MEMBERS.values(), ids=CLASSIC_MEMBERS)
def test_classic_members(ask, error: str) -> None:  # type: ignore[no-untyped-def]
    assert ask(alone()).error.name == error


def test_a_cooperative_member_gives_up_in_two_rounds() -> None:
    made = alone()
    made.join("m1", "foo")
    assert beat_classic(made, "c", 3).error is Error.REBALANCE_IN_PROGRESS
    assert join_classic(made, "c", ("foo",), {"foo": ALL}).reply.generation_id == 3
    kept = synced(sync_classic(made, "c", 3))
    assert len(kept["foo"]) == 3
    assert beat_classic(made, "c", 3).error is Error.REBALANCE_IN_PROGRESS
    assert join_classic(made, "c", ("foo",), kept).reply.generation_id == 4
    assert synced(sync_classic(made, "c", 4)) == kept
    assert beat_classic(made, "c", 4).error is Error.NONE
    gets = made.heartbeat("m1", 4).assignment
    assert gets is not None
    assert sorted(gets["foo"] + kept["foo"]) == ALL


def test_who_does_not_join_again_in_time_is_removed() -> None:
    made = alone()
    made.join("m1", "foo")
    beat_classic(made, "c", 3)
    made.advance(4_000)
    beat_classic(made, "c", 3)
    made.advance(999)
    assert "c" in made.consumer.members, "the limit runs from the first time it is told"
    made.advance(1)
    assert set(made.consumer.members) == {"m1"}


def test_who_does_not_sync_in_time_is_removed() -> None:
    made = alone()
    join_classic(made, "c", ("foo",))
    made.advance(5_000)
    assert not made.consumer.members


def test_a_classic_member_ends_with_its_own_session() -> None:
    made = alone()
    made.advance(10_000)
    assert not made.consumer.members


def test_a_leave_of_several_bumps_once() -> None:
    made = alone()
    join_classic(made, "d", ("foo",))
    join_classic(made, "", ("foo",), instance_id="i")
    made.join("m1", "foo")
    epoch = made.epochs[0]
    call = leave_classic(made, ("c", None), ("c", None), ("m1", None), ("x", None), ("", "i"), ("", "j"))
    assert [entry.error.name for entry in call.reply.members] == [
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_MEMBER_ID",
        "NONE",
        "UNKNOWN_MEMBER_ID",
    ]
    assert made.epochs[0] == epoch + 1
    assert set(made.consumer.members) == {"d", "m1"}


def test_a_group_with_classic_members_is_deleted_when_they_are_gone() -> None:
    made = alone()
    assert made.send(DeleteGroup("orders")).error is Error.NON_EMPTY_GROUP
    leave_classic(made, ("c", None))
    assert made.send(DeleteGroup("orders")).error is Error.NONE


def test_who_joins_again_in_time_stays() -> None:
    made = alone()
    made.join("m1")
    made.join("m1", "foo")
    beat_classic(made, "c", 3)
    made.advance(4_000)
    call = join_classic(made, "c", ("foo",))
    sync_classic(made, "c", call.reply.generation_id)
    made.advance(4_000)
    assert "c" in made.consumer.members


def test_a_classic_member_is_called_when_all_it_waits_for_is_free() -> None:
    made = world(MigrationPolicy.DISABLED)
    made.stable("m1", "m2")
    epoch = join_classic(made, "zc", ("foo",)).reply.generation_id
    sync_classic(made, "zc", epoch)
    assert beat_classic(made, "zc", epoch).error is Error.NONE
    for member_id, has_all in (("m1", False), ("m2", True)):
        member = made.member(member_id)
        made.heartbeat(member_id, member.member_epoch)
        made.heartbeat(member_id, member.member_epoch, made.assigned(member_id))
        assert (beat_classic(made, "zc", epoch).error is Error.REBALANCE_IN_PROGRESS) is has_all
    assert join_classic(made, "zc", ("foo",)).reply.generation_id == epoch
    assert len(synced(sync_classic(made, "zc", epoch))["foo"]) == 2


def test_a_classic_member_that_leaves_a_mixed_group_changes_no_protocol() -> None:
    made, member_id = mixed()
    join_classic(made, "d", ("foo",))
    leave_classic(made, (member_id, None))
    assert set(made.consumer.members) == {"m1", "d"}
