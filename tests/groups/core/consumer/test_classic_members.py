"""Members of the classic protocol in a consumer group: consumer.md 9.7."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.model.commands import DeleteGroup
from groups.core.model.consumer_group import MemberState
from groups.core.model.types import ClassicGroup, MigrationPolicy, Protocol, TopicRights
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
from tests.groups.core.consumer.world import World


def alone() -> World:
    """A classic member c at generation 1 of a group that m1 made and left; it may not become a classic group."""
    made = migrating_world(MigrationPolicy.DISABLED)
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


UNREADABLE = {"protocols": (Protocol("range", b"\x00"),)}

UNREADABLE_JOINS: dict[str, tuple[dict[str, object], str]] = {
    "no id": ({"member_id": ""}, "MEMBER_ID_REQUIRED"),
    "an instance of nobody": ({"member_id": "new", "group_instance_id": "i"}, "UNKNOWN_MEMBER_ID"),
    "an instance of another": ({"member_id": "new", "group_instance_id": "s"}, "FENCED_INSTANCE_ID"),
    "a chosen id": ({"member_id": "new"}, "INCONSISTENT_GROUP_PROTOCOL"),
    "a member": ({"member_id": "c"}, "INCONSISTENT_GROUP_PROTOCOL"),
    "an instance without id": ({"member_id": "", "group_instance_id": "s"}, "INCONSISTENT_GROUP_PROTOCOL"),
    "a new instance without id": ({"member_id": "", "group_instance_id": "t"}, "INCONSISTENT_GROUP_PROTOCOL"),
}


@pytest.mark.parametrize(("fields", "error"), UNREADABLE_JOINS.values(), ids=UNREADABLE_JOINS)
def test_who_joins_is_checked_before_unreadable_metadata(fields: dict[str, object], error: str) -> None:
    """Differs from Kafka: UNKNOWN_SERVER_ERROR there."""
    test_classic_joins({**UNREADABLE, **fields}, error)


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
    refused = join_classic(made, "d", ("foo",))
    assert (refused.error, refused.reply.member_id) == (Error.GROUP_MAX_SIZE_REACHED, ""), "classic.md 2.2, row 6"
    assert join_classic(made, "c", ("foo",)).error is Error.NONE


def test_without_a_new_target_there_is_nothing_to_join_for() -> None:
    made = migrating_world()
    made.stable("m1", "m2")
    generation = join_classic(made, "c", ("foo",)).reply.generation_id
    sync_classic(made, "c", generation)
    made.heartbeat("m2", -1)
    assert made.epochs == (generation + 1, generation)
    assert beat_classic(made, "c", generation).error is Error.NONE
    assert sync_classic(made, "c", generation).error is Error.NONE
    assert not made.consumer.timers.join
    made.heartbeat("m1", 2)
    assert made.epochs == (generation + 1, generation + 1)
    assert beat_classic(made, "c", generation).error is Error.REBALANCE_IN_PROGRESS
    assert sync_classic(made, "c", generation).error is Error.REBALANCE_IN_PROGRESS


def test_classic_members_among_themselves_differ_from_kafka_in_computing_the_target() -> None:
    """Nobody of the consumer protocol is left to do it, and the group may not become a classic one."""
    made = alone()
    generation = join_classic(made, "d", ("foo",)).reply.generation_id
    for _ in range(2):
        generation = join_classic(made, "c", ("foo",)).reply.generation_id
        sync_classic(made, "c", generation)
    leave_classic(made, ("d", None))
    assert made.epochs == (generation + 1, generation)
    assert beat_classic(made, "c", generation).error is Error.NONE
    assert made.epochs == (generation + 1, generation + 1)
    assert beat_classic(made, "c", generation).error is Error.REBALANCE_IN_PROGRESS
    generation = join_classic(made, "c", ("foo",)).reply.generation_id
    assert synced(sync_classic(made, "c", generation)) == {"foo": ALL}


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
    static = join_classic(made, "", ("foo",), instance_id="i").reply.member_id
    made.join("m1", "foo")
    assert static in made.consumer.members
    epoch = made.epochs[0]
    call = leave_classic(made, ("c", None), ("c", None), ("x", None), ("", "i"), ("", "j"), ("d", "i"), ("", None))
    assert [(entry.member_id, entry.error.name) for entry in call.reply.members] == [
        ("c", "NONE"),
        ("c", "NONE"),
        ("x", "UNKNOWN_MEMBER_ID"),
        ("", "NONE"),
        ("", "UNKNOWN_MEMBER_ID"),
        ("d", "FENCED_INSTANCE_ID"),
        ("", "UNKNOWN_MEMBER_ID"),
    ]
    assert made.epochs[0] == epoch + 1
    assert set(made.consumer.members) == {"d", "m1"}


def test_members_of_the_consumer_protocol_are_removed_too() -> None:
    made = migrating_world()
    made.stable("m1", "m2")
    made.join("m3", "foo", instance_id="i3")
    made.join("m4", "foo", instance_id="i4")
    epoch = made.epochs[0]
    call = leave_classic(made, ("m2", None), ("", "i3"), ("m4", "i4"), ("m4", None))
    assert [entry.error.name for entry in call.reply.members] == ["NONE"] * 4
    assert made.epochs[0] == epoch + 1
    assert set(made.consumer.members) == {"m1"}
    assert made.heartbeat("m2", 2).error is Error.UNKNOWN_MEMBER_ID


def test_when_the_last_consumer_member_is_removed_the_group_is_classic_again() -> None:
    made = migrating_world()
    made.join("m1", "foo")
    join_classic(made, "c", ("foo",))
    leave_classic(made, ("m1", None))
    assert isinstance(made.group, ClassicGroup)
    assert set(made.group.members) == {"c"}


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


@pytest.mark.parametrize("classic", ["zc", "m1c"])
def test_a_classic_member_is_called_when_all_it_waits_for_is_free(classic: str) -> None:
    """zc waits for partitions of m2 alone, m1c for one of each."""
    made = migrating_world(MigrationPolicy.DISABLED)
    made.stable("m1", "m2")
    epoch = join_classic(made, classic, ("foo",)).reply.generation_id
    sync_classic(made, classic, epoch)
    assert beat_classic(made, classic, epoch).error is Error.NONE
    for member_id, has_all in (("m1", False), ("m2", True)):
        member = made.member(member_id)
        made.heartbeat(member_id, member.member_epoch)
        made.heartbeat(member_id, member.member_epoch, made.assigned(member_id))
        assert (beat_classic(made, classic, epoch).error is Error.REBALANCE_IN_PROGRESS) is has_all
    assert join_classic(made, classic, ("foo",)).reply.generation_id == epoch
    assert len(synced(sync_classic(made, classic, epoch))["foo"]) == 2


def test_a_member_that_turns_to_the_classic_protocol_has_no_expression_and_no_rights() -> None:
    """Both belong to the heartbeats of the consumer protocol (consumer.md 4.6)."""
    made = migrating_world()
    made.join("m1", "foo")
    made.join("m2", subscribed_topic_regex="f.*", instance_id="i", rights=TopicRights("all", lambda name: True))
    assert made.member("m2").regex_key == ("f.*", "all")
    member_id = join_classic(made, "", ("foo",), instance_id="i").reply.member_id
    assert (made.member(member_id).subscribed_topic_regex, made.member(member_id).topic_rights) == ("", "")


@pytest.mark.parametrize(("owned", "error"), [({"foo": ()}, Error.NONE), ({"foo": (0,)}, Error.FENCED_MEMBER_EPOCH)])
def test_a_topic_without_partitions_is_nothing_that_a_member_owns(
    owned: dict[str, tuple[int, ...]], error: Error
) -> None:
    """consumer.md 6.1: a member in an unknown state may go on when it owns nothing."""
    made = alone()
    unknown = replace(made.member("c"), state=MemberState.UNKNOWN)
    made.group = replace(made.consumer, members=made.consumer.members.put(unknown))
    assert join_classic(made, "c", ("foo",), owned).error is error


def test_a_classic_member_that_has_something_is_called_for_the_rest() -> None:
    made = migrating_world(MigrationPolicy.DISABLED)
    made.set_topics(bar=2)
    made.stable("m1")
    generation = join_classic(made, "c", ("foo", "bar")).reply.generation_id
    has = synced(sync_classic(made, "c", generation))
    assert has == {"bar": [0, 1]}
    assert beat_classic(made, "c", generation).error is Error.NONE
    epoch = made.member("m1").member_epoch
    made.heartbeat("m1", epoch)
    made.heartbeat("m1", epoch, made.assigned("m1"))
    assert beat_classic(made, "c", generation).error is Error.REBALANCE_IN_PROGRESS


def test_who_has_to_give_up_a_topic_must_join_before_the_new_target_is_there() -> None:
    made = migrating_world()
    made.set_topics(bar=2)
    made.join("m1", "foo")
    generation = join_classic(made, "c", ("bar",)).reply.generation_id
    assert synced(sync_classic(made, "c", generation)) == {"bar": [0, 1]}
    made.config = replace(made.config, consumer_assignment_inline_limit=0)
    joined = join_classic(made, "c", ("foo",), {"bar": [0, 1]}).reply.generation_id
    member = made.consumer.members["c"]
    assert (member.member_epoch, made.consumer.assignment_epoch) == (joined, joined), "its target is not computed yet"
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert beat_classic(made, "c", joined).error is Error.REBALANCE_IN_PROGRESS
