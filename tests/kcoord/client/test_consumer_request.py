"""What heartbeats of a consumer group's member say, and when they are due: consumer.md 11.2."""

from __future__ import annotations

from typing import Any

import pytest

from kcoord.client import ConsumerConfig
from kcoord.client.core.consumer_group.membership import ConsumerMembership, TopicIdPartition
from kcoord.client.core.consumer_group.request import HeartbeatRequest, Subscribed, by_topic_id
from kcoord.client.core.consumer_group.timer import ConsumerHeartbeatTimer

T = Subscribed(frozenset({"t", "a"}))
FULL: dict[str, Any] = {
    "client_id": "kcoord",
    "rebalance_timeout_ms": 300_000,
    "subscribed_topic_names": ["a", "t"],
    "subscribed_topic_regex": "",
}


def config(**settings: Any) -> ConsumerConfig:
    return ConsumerConfig.of({"group_id": "g", "group_protocol": "consumer", **settings})


def applied(member: ConsumerMembership, *numbers: int) -> None:
    """The member puts these partitions in place."""
    member.answered(member.sending(), member.epoch + 1, [TopicIdPartition("i", "t", n) for n in numbers])
    work = member.reconciliation()
    assert work is not None
    assert member.reconciled(work)


@pytest.fixture
def member() -> ConsumerMembership:
    member = ConsumerMembership("m")
    member.join()
    return member


def test_join_says_everything(member: ConsumerMembership) -> None:
    request = HeartbeatRequest(config(group_instance_id="i1", client_rack="r1", group_remote_assignor="range"))
    assert request.body(member, T, 0) == {
        "member_id": "m",
        "member_epoch": 0,
        "instance_id": "i1",
        "max_wait_ms": 0,
        **FULL,
        "rack_id": "r1",
        "server_assignor": "range",
        "topic_partitions": [],
    }


def test_later_ones_say_what_changed(member: ConsumerMembership) -> None:
    request = HeartbeatRequest(config())
    request.body(member, T, 0)
    applied(member, 1, 0)
    assert request.body(member, T, 7) == {
        "member_id": "m",
        "member_epoch": 1,
        "max_wait_ms": 7,
        "topic_partitions": [{"topic_id": "i", "partitions": [0, 1]}],
    }
    assert request.body(member, T, 7) == {"member_id": "m", "member_epoch": 1, "max_wait_ms": 7}
    changed = request.body(member, Subscribed(frozenset({"t"}), "o.*"), 0)
    assert (changed["subscribed_topic_names"], changed["subscribed_topic_regex"]) == (["t"], "o.*")
    assert "rebalance_timeout_ms" not in changed
    cleared = request.body(member, Subscribed(frozenset({"t"})), 0)
    assert cleared["subscribed_topic_regex"] == ""
    assert "subscribed_topic_names" not in cleared


def test_full_after_a_failure(member: ConsumerMembership) -> None:
    request = HeartbeatRequest(config())
    request.body(member, T, 0)
    applied(member, 0)
    request.body(member, T, 0)
    assert not request.is_full
    request.forget()
    assert request.is_full
    expected = {**FULL, "topic_partitions": [{"topic_id": "i", "partitions": [0]}]}
    assert request.body(member, T, 0) == {"member_id": "m", "member_epoch": 1, "max_wait_ms": 0, **expected}


def test_what_is_being_put_in_place_is_reported_as_owned(member: ConsumerMembership) -> None:
    """Also an assignment that a newer one has replaced meanwhile: the user's lane is still working on it."""
    request = HeartbeatRequest(config())
    request.body(member, T, 0)
    applied(member, 0)
    member.answered(member.sending(), 1, [TopicIdPartition("i", "t", n) for n in (0, 1)])
    member.answered(member.sending(), 1, [TopicIdPartition("i", "t", n) for n in (0, 2)])
    request.forget()
    assert request.body(member, T, 0)["topic_partitions"] == [{"topic_id": "i", "partitions": [0, 2]}]
    work = member.reconciliation()
    assert work is not None
    member.answered(member.sending(), 1, [TopicIdPartition("i", "t", n) for n in (0, 3)])
    request.forget()
    assert request.body(member, T, 0)["topic_partitions"] == [{"topic_id": "i", "partitions": [0, 2, 3]}]
    assert member.reconciled(work)
    assert request.body(member, T, 0)["topic_partitions"] == [{"topic_id": "i", "partitions": [0, 2, 3]}]
    member.answered(member.sending(), 1, None)
    last = member.reconciliation()
    assert last is not None
    assert member.reconciled(last)
    assert request.body(member, T, 0)["topic_partitions"] == [{"topic_id": "i", "partitions": [0, 3]}]


def test_each_assignment_is_acknowledged_once(member: ConsumerMembership) -> None:
    request = HeartbeatRequest(config())
    request.body(member, T, 0)
    applied(member, 0)
    request.body(member, T, 0)
    member.answered(member.sending(), 2, [])
    applied(member, 0)
    assert request.body(member, T, 0)["topic_partitions"] == [{"topic_id": "i", "partitions": [0]}]
    assert "topic_partitions" not in request.body(member, T, 0)


def test_rejoin_says_everything(member: ConsumerMembership) -> None:
    request = HeartbeatRequest(config())
    request.body(member, T, 0)
    assert request.body(member, T, 0) == {
        "member_id": "m",
        "member_epoch": 0,
        "max_wait_ms": 0,
        **FULL,
        "topic_partitions": [],
    }


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i1", -2)])
def test_leave_says_who_and_how(instance: str | None, epoch: int) -> None:
    request = HeartbeatRequest(config(group_instance_id=instance))
    body = request.leave(ConsumerMembership("m", static=instance is not None))
    assert body == {"member_id": "m", "member_epoch": epoch} | ({"instance_id": instance} if instance else {})


def test_partitions_are_reported_by_topic_id() -> None:
    reported = by_topic_id(
        [TopicIdPartition("b", "x", 2), TopicIdPartition("a", "y", 1), TopicIdPartition("b", "x", 0)]
    )
    assert reported == [{"topic_id": "a", "partitions": [1]}, {"topic_id": "b", "partitions": [0, 2]}]


# When they are due


def timer(**settings: Any) -> ConsumerHeartbeatTimer:
    return ConsumerHeartbeatTimer(config(retry_backoff_ms=100, retry_backoff_max_ms=1_000, **settings), 100.0)


def test_first_heartbeat_is_due_at_once_and_later_ones_after_the_interval_of_the_service() -> None:
    due = timer()
    assert due.due_at(at_once=False) == 100.0
    due.sent(100.0)
    due.succeeded(100.5, 5_000, at_once=False)
    assert due.due_at(at_once=False) == 105.0
    due.succeeded(100.5, 2_000, at_once=False)
    assert due.due_at(at_once=False) == 102.0
    assert due.due_at(at_once=True) == 100.5
    due.succeeded(100.6, 2_000, at_once=True)
    assert due.due_at(at_once=False) == 100.6


def test_failures_back_off_and_the_interval_does_not_matter() -> None:
    due = timer()
    due.succeeded(100.0, 60_000, at_once=False)
    delays = []
    for _ in range(5):
        due.failed(200.0, None, at_once=False)
        assert due.due_at(at_once=True) == due.due_at(at_once=False)
        delays.append(due.due_at(at_once=True) - 200.0)
    for delay, plain in zip(delays, (0.1, 0.2, 0.4, 0.8, 1.0), strict=True):
        assert 0.8 * plain <= delay <= 1.2 * plain
    due.succeeded(300.0, 60_000, at_once=False)
    due.failed(300.0, 2_000, at_once=True)
    assert due.due_at(at_once=True) >= 302.0, "Retry-After wins"


def test_only_the_first_failure_of_a_row_goes_without_a_back_off() -> None:
    due = timer()
    due.failed(200.0, None, at_once=True)
    assert due.due_at(at_once=True) == 200.0
    due.failed(201.0, None, at_once=True)
    assert due.due_at(at_once=True) > 201.0


def test_what_the_user_must_mend_is_tried_again_after_the_interval() -> None:
    due = timer()
    due.succeeded(100.0, 5_000, at_once=False)
    due.reported(200.0, None)
    assert due.due_at(at_once=True) == 205.0


def test_hold_is_no_longer_than_the_interval_the_setting_and_the_time_to_poll() -> None:
    due = timer(max_wait_ms=4_000, max_poll_interval_ms=10_000)
    assert due.hold_ms(100.0) == 0, "before the service has told an interval"
    due.succeeded(100.0, 5_000, at_once=False)
    assert due.hold_ms(100.0) == 4_000
    due.succeeded(100.0, 3_000, at_once=False)
    assert due.hold_ms(100.0) == 3_000
    assert due.hold_ms(108.5) == 1_500
    assert due.hold_ms(111.0) == 0
    due.polled(111.0)
    assert due.hold_ms(111.0) == 3_000


@pytest.mark.parametrize(("interval_ms", "timeout_ms"), [(0, 30_000), (500, 3_000), (5_000, 5_000), (45_000, 30_000)])
def test_time_of_an_answer_leaves_room_for_another_attempt(interval_ms: int, timeout_ms: int) -> None:
    due = timer()
    if interval_ms:
        due.succeeded(100.0, interval_ms, at_once=False)
    assert due.timeout_ms() == timeout_ms
