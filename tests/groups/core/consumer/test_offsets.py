"""Who may commit and fetch: consumer.md 7 as tables."""

from __future__ import annotations

import pytest

from groups.core.consumer.offsets import check_fetch
from groups.core.model.types import Protocol
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from kcoord.protocol.errors import ProtocolError
from tests.groups.core.consumer.classic_client import join_classic
from tests.groups.core.consumer.world import World


def world() -> World:
    """m1 has foo 0 to 2 since epoch 1, m2 foo 3 to 5 since epoch 2; c is a classic member at epoch 3."""
    made = World()
    made.set_topics(foo=6)
    made.stable("m1", "m2")
    join_classic(made, "c", ("later",))
    made.heartbeat("m1", 2)
    made.heartbeat("m2", 2)
    assert [made.member(member_id).member_epoch for member_id in ("m1", "m2", "c")] == [3, 3, 3]
    return made


COMMITS = {
    "at its epoch": ("m1", 3, {"foo": [5]}, "NONE"),
    "newer": ("m1", 4, {"foo": [0]}, "STALE_MEMBER_EPOCH"),
    "older, has had it since": ("m1", 1, {"foo": [0, 2]}, "NONE"),
    "older, has it since later": ("m2", 1, {"foo": [3]}, "STALE_MEMBER_EPOCH"),
    "older, some of it since later": ("m2", 1, {"foo": [3, 4]}, "STALE_MEMBER_EPOCH"),
    "older, in between": ("m2", 2, {"foo": [3]}, "NONE"),
    "older, of another": ("m1", 2, {"foo": [3]}, "STALE_MEMBER_EPOCH"),
    "older, only some of it its own": ("m1", 2, {"foo": [0, 3]}, "STALE_MEMBER_EPOCH"),
    "older, of a topic that is not": ("m1", 2, {"x": [0]}, "STALE_MEMBER_EPOCH"),
    "negative": ("m1", -1, {"foo": [0]}, "STALE_MEMBER_EPOCH"),
    "epoch 0": ("m1", 0, {"foo": [0]}, "STALE_MEMBER_EPOCH"),
    "stranger": ("x", 3, {"foo": [0]}, "UNKNOWN_MEMBER_ID"),
    "nobody": ("", -1, {"foo": [0]}, "UNKNOWN_MEMBER_ID"),
    "classic, at its epoch": ("c", 3, {"foo": [0]}, "NONE"),
    "classic, older": ("c", 2, {"foo": [0]}, "ILLEGAL_GENERATION"),
    "classic, newer": ("c", 9, {"foo": [0]}, "ILLEGAL_GENERATION"),
}


@pytest.mark.parametrize(("member_id", "epoch", "partitions", "error"), COMMITS.values(), ids=COMMITS)
def test_commits(member_id: str, epoch: int, partitions: dict[str, list[int]], error: str) -> None:
    made = world()
    before = made.group
    assert made.commit(member_id, epoch, partitions).error.name == error
    assert made.group is before, "a commit changes nothing and renews nothing"


TRANSACTIONAL = {
    "nobody": ("", -1, "NONE"),
    "stranger": ("x", -1, "UNKNOWN_MEMBER_ID"),
    "at its epoch": ("m1", 3, "NONE"),
    "newer": ("m1", 9, "STALE_MEMBER_EPOCH"),
    "nobody with an epoch": ("", 3, "UNKNOWN_MEMBER_ID"),
}


@pytest.mark.parametrize(("member_id", "epoch", "error"), TRANSACTIONAL.values(), ids=TRANSACTIONAL)
def test_transactional_commits(member_id: str, epoch: int, error: str) -> None:
    assert world().commit(member_id, epoch, transactional=True).error.name == error


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        ("m1", 2, "NONE"),
        ("m1", -1, "NONE"),
        ("m1", 4, "STALE_MEMBER_EPOCH"),
        ("c", 2, "NONE"),
        ("c", 4, "ILLEGAL_GENERATION"),
        ("x", 1, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_an_older_epoch_is_judged_by_what_is_to_be_stored(member_id: str, epoch: int, error: str) -> None:
    """All the metadata is too large: each partition is told so, and none of them is stored."""
    assert world().commit(member_id, epoch, partitions={}).error.name == error


def test_who_does_not_tell_what_it_commits_has_to_be_at_its_epoch() -> None:
    assert world().commit("m1", 2, partitions=None).error.name == "STALE_MEMBER_EPOCH"


def test_an_empty_group_takes_commits_of_nobody() -> None:
    made = World()
    made.join("m1", "foo")
    made.heartbeat("m1", -1)
    assert made.commit("", -1).error.name == "NONE"
    assert made.commit("", 0).error.name == "UNKNOWN_MEMBER_ID"
    assert made.commit("m1", 1).error.name == "UNKNOWN_MEMBER_ID"


def test_a_transaction_of_nobody_gives_no_instance_id_either() -> None:
    call = world().commit("", -1, transactional=True, group_instance_id="i")
    assert call.error.name == "UNKNOWN_MEMBER_ID"


def test_an_older_epoch_suffices_for_what_the_member_has_been_told_to_give_up() -> None:
    """consumer.md 7.1, row 8: until it acknowledges, it may still commit."""
    made = world()
    made.join("m3", "foo")
    assert made.heartbeat("m1", 3).assignment == {"foo": [0, 1]}
    assert made.commit("m1", 1, {"foo": [2]}).error.name == "NONE"
    assert made.commit("m1", 1, {"foo": [3]}).error.name == "STALE_MEMBER_EPOCH"


def test_a_departed_member_is_at_epoch_minus_two() -> None:
    made = World()
    made.join("m1", "foo", instance_id="i")
    made.heartbeat("m1", -2, instance_id="i")
    assert made.commit("m1", 1).error.name == "STALE_MEMBER_EPOCH"
    assert made.commit("m1", -2).error.name == "NONE"


FETCHES = {
    "nobody": (None, -1, "NONE"),
    "at its epoch": ("m1", 3, "NONE"),
    "older": ("m1", 2, "STALE_MEMBER_EPOCH"),
    "newer": ("m1", 4, "STALE_MEMBER_EPOCH"),
    "stranger": ("x", 3, "UNKNOWN_MEMBER_ID"),
    "nobody with an epoch": (None, 3, "UNKNOWN_MEMBER_ID"),
    "nobody with epoch 0": (None, 0, "UNKNOWN_MEMBER_ID"),
    "classic, older": ("c", 2, "ILLEGAL_GENERATION"),
}


@pytest.mark.parametrize(("member_id", "epoch", "error"), FETCHES.values(), ids=FETCHES)
def test_fetches(member_id: str | None, epoch: int, error: str) -> None:
    group = world().consumer
    if error == "NONE":
        check_fetch(group, member_id, epoch)
        return
    with pytest.raises(ProtocolError) as raised:
        check_fetch(group, member_id, epoch)
    assert raised.value.error.name == error


def test_subscriptions_are_those_of_all_members() -> None:
    made = world()
    join_classic(made, "d", ("bar",), protocols=(Protocol("range", encode_subscription(Subscription(("bar",)))),))
    assert "foo" in made.consumer.subscribed_topics()
    assert "bar" in made.consumer.subscribed_topics()
    assert "baz" not in made.consumer.subscribed_topics()
