"""What bumps the group epoch (consumer.md 4.1), who computes the target (consumer.md 5), and what an answer tells
(2.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256

import pytest

from groups.core.assignors import BUILT_IN, AssignorFailed, GroupSpec, Partitions
from groups.core.consumer.target import LOST_AFTER_MS, RETRY_AFTER_MS, preferred_assignor
from groups.core.model.commands import ApplyTarget
from groups.core.model.events import EventKind, events_of
from groups.core.model.types import GroupConfig
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, World


def world(**fields: int) -> World:
    made = World(config=GroupConfig(**fields))
    made.set_topics(foo=6, bar=2)
    return made


Act = Callable[[World], object]
BUMPS: dict[str, tuple[Act, int]] = {
    "nothing": (lambda w: w.heartbeat("m1", 1), 0),
    "a new member": (lambda w: w.join("m2", "foo"), 1),
    "a new member without subscription": (lambda w: w.join("m2"), 0),
    "a member joins again": (lambda w: w.join("m1", "foo"), 0),
    "other names": (lambda w: w.heartbeat("m1", 1, subscribed_topic_names=frozenset({"foo", "bar"})), 1),
    "the same names": (lambda w: w.heartbeat("m1", 1, subscribed_topic_names=frozenset({"foo"})), 0),
    "a new regex": (lambda w: w.heartbeat("m1", 1, subscribed_topic_regex="b.*"), 0),
    "rack, timeout, assignor": (
        lambda w: w.heartbeat("m1", 1, rack_id="r", rebalance_timeout_ms=9, server_assignor="range"),
        0,
    ),
    "a topic grows": (lambda w: (w.set_topics(foo=7), w.heartbeat("m1", 1)), 1),
    "a topic goes": (lambda w: (w.set_topics(foo=None), w.heartbeat("m1", 1)), 1),
    "a topic goes and comes": (lambda w: (w.set_topics(foo=None), w.set_topics(foo=6), w.heartbeat("m1", 1)), 1),
    "another topic changes": (lambda w: (w.set_topics(bar=5), w.heartbeat("m1", 1)), 0),
    "a topic grows and nobody beats": (lambda w: w.set_topics(foo=7), 0),
    "names and topics at once": (
        lambda w: (w.set_topics(foo=7), w.heartbeat("m1", 1, subscribed_topic_names=frozenset({"bar"}))),
        1,
    ),
    "a member leaves": (lambda w: w.heartbeat("m1", -1), 1),
    "a session ends": (lambda w: w.advance(45_000), 1),
}


@pytest.mark.parametrize(("act", "by"), BUMPS.values(), ids=BUMPS)
def test_bumps(act: Act, by: int) -> None:
    made = world()
    made.join("m1", "foo")
    act(made)
    assert made.epochs[0] == 1 + by


def test_a_catalogue_is_looked_at_once() -> None:
    made = world()
    made.join("m1", "foo")
    made.set_topics(bar=5)
    made.heartbeat("m1", 1)
    assert made.last is not None
    assert [type(record).__name__ for record in made.last.records] == ["MetadataChecked", "TimerArmed"]
    made.heartbeat("m1", 1)
    assert [type(record).__name__ for record in made.last.records] == ["TimerArmed"]


def test_a_topic_that_is_not_there_is_waited_for() -> None:
    made = world()
    assert made.join("m1", "foo", "later").assignment == {"foo": [0, 1, 2, 3, 4, 5]}
    made.set_topics(later=1)
    assert made.heartbeat("m1", 1).assignment == {"foo": [0, 1, 2, 3, 4, 5], "later": [0]}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, False),
        ({"owned": {"foo": [0]}}, False),
        ({"owned": {}, "rebalance_timeout_ms": 5_000}, False),
        ({"owned": {}, "subscribed_topic_names": frozenset({"foo"})}, False),
        ({"rebalance_timeout_ms": 5_000, "subscribed_topic_names": frozenset({"foo"})}, False),
        ({"owned": {}, "rebalance_timeout_ms": 5_000, "subscribed_topic_names": frozenset({"foo"})}, True),
        ({"owned": {}, "rebalance_timeout_ms": 5_000, "subscribed_topic_regex": ""}, True),
    ],
)
def test_only_full_requests_are_told_what_they_know(fields: dict[str, object], told: bool) -> None:
    made = world()
    made.join("m1", "foo")
    owned = fields.pop("owned", None)
    call = made.heartbeat("m1", 1, owned, **fields)  # type: ignore[arg-type]
    assert call.assignment == ({"foo": [0, 1, 2, 3, 4, 5]} if told else None)
    assert call.reply.heartbeat_interval_ms == 5_000
    assert call.reply.session_deadline == made.now + 45_000


# -- assignors


class Broken:
    """An assignor that does what it is told instead of its work."""

    name = "broken"

    def __init__(self, result: Mapping[str, Partitions] | Exception) -> None:
        self.result = result

    def assign(self, spec: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


FAILURES: dict[str, Mapping[str, Partitions] | Exception] = {
    "oh": ZeroDivisionError("oh"),
    "too many": AssignorFailed("too many"),
    "a partition of topic foo#1 twice": {"m1": {"foo#1": frozenset({0})}, "m2": {"foo#1": frozenset({0})}},
    "partitions to 'm9', which is not a member": {"m9": {"foo#1": frozenset({0})}},
    "partitions of topic foo#1 that do not exist": {"m1": {"foo#1": frozenset({6})}},
    "of topic foo#1 that do not exist": {"m1": {"foo#1": frozenset({5, 6})}},
    "partitions of topic x that do not exist": {"m1": {"x": frozenset({0})}},
    "of topic x that do not exist": {"m1": {"x": frozenset()}},
}
"""What the answer says, and what the assignor did."""


@pytest.mark.parametrize(("told", "result"), FAILURES.items(), ids=FAILURES)
def test_an_assignor_that_fails_leaves_everything_as_it_was(
    told: str, result: Mapping[str, Partitions] | Exception
) -> None:
    made = world()
    made.join("m1", "foo")
    before = made.group
    made.assignors = {"broken": Broken(result)}
    refused = made.join("m2", "foo")
    assert refused.error is Error.UNKNOWN_SERVER_ERROR
    assert "broken" in refused.reply.detail
    assert told in refused.reply.detail
    assert made.group is before


def test_members_that_an_assignor_forgets_get_nothing() -> None:
    made = world()
    made.assignors = {"broken": Broken({})}
    assert made.join("m1", "foo").assignment == {}
    assert made.consumer.state.value == "Stable"


@pytest.mark.parametrize(
    ("votes", "winner"),
    [([], "uniform"), ([None], "uniform"), ([None, None, "range"], "range"), (["range", "uniform"], "uniform")],
)
def test_the_most_votes_win_and_ties_go_by_the_configuration(votes: list[str | None], winner: str) -> None:
    made = world()
    made.assignors = BUILT_IN
    made.join("voter")
    for number, vote in enumerate(votes):
        made.join(f"m{number}", "foo", server_assignor=vote)
    assert preferred_assignor(made.consumer, BUILT_IN) == winner


def test_a_vote_is_heard_at_the_next_epoch_and_leaves_with_its_member() -> None:
    """Differs from Kafka: since 4.4 it bumps the epoch when another assignor wins by it."""
    made = world()
    made.assignors = BUILT_IN
    made.join("m1", "foo")
    made.heartbeat("m1", 1, server_assignor="range")
    assert made.epochs == (1, 1)
    made.join("m2", "foo")
    assert made.last is not None
    told = events_of(None, made.last.records)
    assert [event.detail["assignor"] for event in told if event.kind is EventKind.TARGET_COMPUTED] == ["range"]
    made.heartbeat("m1", -1)
    assert preferred_assignor(made.consumer, BUILT_IN) == "uniform"


def test_departed_members_keep_their_share() -> None:
    made = world()
    made.stable("m1", "m2")
    made.join("m3", "foo", instance_id="i3")
    made.heartbeat("m3", -2, instance_id="i3")
    made.join("m4", "foo")
    assert {member_id: len(member.target["foo#1"]) for member_id, member in made.consumer.members.items()} == {
        "m1": 2,
        "m2": 1,
        "m3": 2,
        "m4": 1,
    }


def test_targets_are_not_computed_too_often() -> None:
    made = world(consumer_assignment_interval_ms=1_000)
    made.join("m1", "foo")
    made.now += 999
    second = made.join("m2", "foo")
    assert (second.epoch, second.assignment) == (1, {})
    assert made.consumer.state.value == "Assigning"
    made.now += 1
    assert made.heartbeat("m2", 1).epoch == 2


# -- in the background


def background() -> World:
    made = world(consumer_assignment_inline_limit=11)
    made.join("m1", "foo")
    assert not made.targets, "one member times six partitions is computed at once"
    second = made.join("m2", "foo")
    assert (second.epoch, second.assignment) == (1, {}), "the old target stands meanwhile"
    assert made.epochs == (2, 1)
    return made


def test_a_large_target_is_computed_in_the_background() -> None:
    made = background()
    made.heartbeat("m1", 1)
    assert len(made.targets) == 1, "one computation at a time"
    made.compute_target()
    assert made.epochs == (2, 2)
    assert made.heartbeat("m1", 1, {"foo": [0, 1, 2]}).epoch == 2
    assert made.heartbeat("m2", 1).assignment == {"foo": [3, 4, 5]}


def test_the_first_target_is_computed_at_once() -> None:
    made = world(consumer_assignment_inline_limit=0)
    assert made.join("m1", "foo").epoch == 1
    assert not made.targets


def test_a_target_that_comes_late_is_used_and_the_next_one_asked_for() -> None:
    made = background()
    made.join("m3", "foo")
    made.compute_target()
    assert made.epochs == (3, 2)
    assert made.member("m3").target == {}
    made.heartbeat("m1", 1)
    made.compute_target()
    assert made.epochs == (3, 3)
    assert made.member("m3").target


def test_a_target_for_a_member_that_was_replaced_is_not_used() -> None:
    made = world(consumer_assignment_inline_limit=11)
    made.join("m1", "foo", instance_id="i1")
    made.join("m2", "foo")
    made.heartbeat("m1", -2, instance_id="i1")
    made.join("m3", "foo", instance_id="i1")
    made.compute_target()
    assert made.epochs == (2, 1)
    made.compute_target()
    assert made.epochs == (2, 2)
    assert set(made.consumer.members) == {"m2", "m3"}


def test_a_computation_that_is_lost_is_asked_for_again() -> None:
    made = background()
    made.targets.clear()
    made.now += LOST_AFTER_MS - 1
    made.heartbeat("m1", 1)
    assert not made.targets
    made.now += 1
    made.heartbeat("m1", 1)
    assert len(made.targets) == 1


def test_a_failure_in_the_background_keeps_the_target_and_is_tried_again_later() -> None:
    made = background()
    good, made.assignors = made.assignors, {"range": Broken(AssignorFailed("no"))}
    made.compute_target()
    assert made.epochs == (2, 1)
    assert made.last is not None
    told = events_of(None, made.last.records)
    assert [(event.kind, event.detail["reason"]) for event in told] == [(EventKind.TARGET_FAILED, "no")]
    made.assignors = good
    made.now += RETRY_AFTER_MS - 1
    made.heartbeat("m1", 1)
    assert not made.targets
    made.now += 1
    made.heartbeat("m1", 1)
    made.compute_target()
    assert made.epochs == (2, 2)


def test_a_target_for_a_member_that_has_left_is_used_for_the_others() -> None:
    """The group epoch has moved on, so its share is free until the next computation."""
    made = background()
    made.heartbeat("m2", -1)
    made.compute_target()
    assert made.epochs == (3, 2)
    assert made.member("m1").target == {"foo#1": frozenset({0, 1, 2})}


def test_a_target_nobody_asked_for_is_ignored() -> None:
    made = background()
    before = made.group
    made.send(ApplyTarget(GROUP, 1, "range", {"m1": {}}))
    made.send(replace(ApplyTarget(GROUP, 7, "range", None), failure="x"))
    assert made.group is before
    made.compute_target()
    before = made.group
    made.send(ApplyTarget(GROUP, made.epochs[0], "range", {"m1": {}}))
    assert made.group is before, "it has arrived already"


def test_after_a_failure_no_target_is_awaited() -> None:
    made = background()
    made.assignors = {"range": Broken(AssignorFailed("no"))}
    made.compute_target()
    before = made.group
    for epoch in (1, 2):
        made.send(ApplyTarget(GROUP, epoch, "range", {"m1": {}}))
        assert made.group is before


def test_a_target_of_exactly_the_limit_is_computed_at_once() -> None:
    made = world(consumer_assignment_inline_limit=12)
    made.join("m1", "foo")
    made.join("m2", "foo")
    assert not made.targets
    assert made.epochs == (2, 2)


def test_the_error_of_an_assignor_that_crashed_names_its_kind() -> None:
    made = background()
    made.assignors = {"range": Broken(KeyError("boom"))}
    made.compute_target()
    assert made.last is not None
    (told,) = events_of(None, made.last.records)
    assert told.detail["reason"] == "KeyError('boom')"


def test_assignors_see_the_topics_in_the_order_of_their_names() -> None:
    seen: list[list[str]] = []

    class Watching:
        def assign(self, group: GroupSpec, topics: Mapping[str, int]) -> Mapping[str, Partitions]:
            seen.append(list(topics))
            return {}

    made = world()
    made.assignors = {"watching": Watching()}
    made.join("m1", "foo", "bar")
    assert seen == [["bar#2", "foo#1"]]


def test_the_digest_is_of_the_subscribed_topics_in_the_order_of_their_names() -> None:
    """It is stored, so a new release must find the same one (consumer.md 2.5, step 3)."""
    made = world()
    made.join("m1", "foo", "gone")
    assert made.consumer.metadata_hash == sha256(b"foo#1\tfoo\t6").hexdigest()
    made.join("m2", "bar")
    assert made.consumer.metadata_hash == sha256(b"bar#2\tbar\t2\nfoo#1\tfoo\t6").hexdigest()
    made.set_topics(foo=None, bar=None)
    made.heartbeat("m1", made.member("m1").member_epoch)
    assert made.consumer.metadata_hash == ""
