"""What a classic member of a consumer group sends and gets, field by field: consumer.md 9.7."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.machine import decide
from groups.core.model.commands import SyncGroup
from groups.core.model.consumer_records import TimerCancelled
from groups.core.model.types import MigrationPolicy, Protocol
from kcoord.protocol.consumer_protocol import Subscription, decode_assignment, encode_subscription
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import (
    ALL,
    beat_classic,
    join_classic,
    migrating_world,
    sync_classic,
    synced,
)
from tests.groups.core.consumer.world import GROUP, World


def world() -> World:
    """m1, of the consumer protocol, shares foo and bar with the classic member c, which may not make it classic."""
    made = migrating_world(MigrationPolicy.DISABLED)
    made.set_topics(bar=2)
    made.join("m1", "foo")
    return made


def offer(name: str = "range", **fields: object) -> tuple[Protocol, ...]:
    return (Protocol(name, encode_subscription(Subscription(("foo",), **fields))),)  # type: ignore[arg-type]


def asking(made: World, protocol_type: str | None, protocol_name: str | None) -> Error:
    epoch = made.member("c").member_epoch
    return made.send(SyncGroup(GROUP, "c", None, epoch, protocol_type, protocol_name, {})).error


def test_a_join_replaces_what_the_member_said_before() -> None:
    made = world()
    join_classic(made, "c", ("foo",), protocols=offer(rack_id="r1"))
    fields = {"client_id": "other", "client_host": "10.0.0.9", "rebalance_timeout_ms": 7_000}
    join_classic(made, "c", ("bar",), session_timeout_ms=8_000, **fields)
    member = made.member("c")
    assert {name: getattr(member, name) for name in fields} == fields
    assert member.subscribed_topic_names == {"bar"}
    assert member.classic is not None
    assert member.classic.session_timeout_ms == 8_000
    assert member.rack_id == "r1", "a subscription without a rack leaves it"
    join_classic(made, "c", ("foo",), protocols=offer(rack_id="r2"))
    assert made.member("c").rack_id == "r2"


def test_an_instance_id_stays_with_a_member_that_joins_without_it() -> None:
    made = world()
    member_id = join_classic(made, "", ("foo",), instance_id="i").reply.member_id
    assert join_classic(made, member_id, ("foo",)).error is Error.NONE
    assert made.member(member_id).instance_id == "i"


def test_a_member_that_goes_back_to_the_classic_protocol_has_no_regular_expression_any_more() -> None:
    made = world()
    made.join("m2", "foo", subscribed_topic_regex="b.*")
    made.resolve_regexes()
    before = made.epochs[0]
    assert join_classic(made, "m2", ("foo",)).error is Error.NONE
    member = made.member("m2")
    assert (member.subscribed_topic_regex, member.topic_rights) == ("", "")
    assert not made.consumer.members.regexes
    assert made.epochs[0] == before + 1


def test_a_group_that_cannot_read_subscriptions_takes_no_classic_member() -> None:
    made = world()
    command = join_classic(made, "c", ("foo",)).command
    decision = decide(made.group, command, replace(made.env, consumer_protocol=None))
    assert decision.reply.error is Error.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[union-attr]
    assert not decision.records


def test_one_protocol_in_common_with_all_classic_members_is_enough() -> None:
    made = world()
    assert join_classic(made, "c", ("foo",), protocols=offer("range") + offer("sticky")).error is Error.NONE
    assert join_classic(made, "d", ("foo",), protocols=offer("sticky") + offer("mine")).error is Error.NONE
    assert join_classic(made, "e", ("foo",), protocols=offer("range")).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert join_classic(made, "e", ("foo",), protocols=offer("sticky")).error is Error.NONE


def test_owned_partitions_of_unknown_topics_are_left_out() -> None:
    made = world()
    call = join_classic(made, "c", ("foo",), {"gone": [0], "foo": []})
    assert call.error is Error.NONE
    assert sync_classic(made, "c", call.reply.generation_id).error is Error.NONE


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "error"),
    [
        (None, None, Error.NONE),
        ("consumer", "range", Error.NONE),
        ("connect", "range", Error.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "sticky", Error.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_names_the_protocol_of_the_join_or_none(
    protocol_type: str | None, protocol_name: str | None, error: Error
) -> None:
    made = world()
    join_classic(made, "c", ("foo",))
    assert asking(made, protocol_type, protocol_name) is error


@pytest.mark.parametrize("version", [0, 1, 3])
def test_an_assignment_has_the_version_of_the_subscription_and_its_partitions_in_order(version: int) -> None:
    made = world()
    join_classic(made, "c", ("foo",), protocols=offer(version=version))
    made.heartbeat("m1", -1)
    call = join_classic(made, "c", ("foo",), protocols=offer(version=version))
    answer = sync_classic(made, "c", call.reply.generation_id)
    assignment = decode_assignment(answer.reply.assignment)
    assert assignment is not None
    assert assignment.version == version
    assert assignment.partitions == {"foo": tuple(ALL)}


def test_a_topic_that_was_deleted_is_not_assigned() -> None:
    made = world()
    join_classic(made, "c", ("foo",))
    made.heartbeat("m1", -1)
    epoch = join_classic(made, "c", ("foo",)).reply.generation_id
    assert synced(sync_classic(made, "c", epoch)) == {"foo": ALL}
    made.set_topics(foo=None)
    assert synced(sync_classic(made, "c", epoch)) == {}


def test_each_request_says_until_when_the_session_lasts() -> None:
    made = world()
    call = join_classic(made, "c", ("foo",))
    epoch = call.reply.generation_id
    assert call.reply.session_deadline == made.now + 10_000
    assert made.consumer.timers.sync["c"].deadline == made.now + 5_000
    made.jump(100)
    assert sync_classic(made, "c", epoch).reply.session_deadline == made.now + 10_000
    made.jump(100)
    assert beat_classic(made, "c", epoch).reply.session_deadline == made.now + 10_000


def test_a_member_is_told_why_it_must_join_again() -> None:
    made = world()
    epoch = join_classic(made, "c", ("foo",)).reply.generation_id
    sync_classic(made, "c", epoch)
    made.join("m2", "foo")
    for call in (beat_classic(made, "c", epoch), sync_classic(made, "c", epoch)):
        assert call.error is Error.REBALANCE_IN_PROGRESS
        assert call.reply.detail == "the group has a new assignment for member c: join again"


def test_a_timer_that_does_not_run_is_not_cancelled() -> None:
    made = world()
    epoch = join_classic(made, "c", ("foo",)).reply.generation_id
    for cancelled in (1, 0):
        sync_classic(made, "c", epoch)
        assert made.last is not None
        assert sum(isinstance(record, TimerCancelled) for record in made.last.records) == cancelled


def test_without_time_to_sync_the_member_is_gone_at_once() -> None:
    made = world()
    join_classic(made, "c", ("foo",), rebalance_timeout_ms=0)
    assert set(made.consumer.members) == {"m1"}
