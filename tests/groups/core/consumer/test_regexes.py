"""Subscriptions by regular expression: consumer.md 4.6."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.consumer.target import LEAST_PAUSE_MS, RESOLUTION_LOST_AFTER_MS
from groups.core.model.commands import ApplyRegexResolution
from groups.core.model.consumer_group import MemberState
from groups.core.model.types import Env, GroupConfig
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, World


def world() -> World:
    made = World(config=GroupConfig(consumer_session_timeout_ms=10_000_000))
    made.set_topics(foo=6, bar=2)
    return made


def join(made: World, member_id: str, regex: str, *names: str) -> None:
    assert made.join(member_id, *names, subscribed_topic_regex=regex).error is Error.NONE


def resolved() -> World:
    """m1 uses fo.* and has what it matches."""
    made = world()
    join(made, "m1", "fo.*")
    made.resolve_regexes()
    assert made.heartbeat("m1", 1).assignment == {"foo": [0, 1, 2, 3, 4, 5]}
    return made


def test_until_it_is_resolved_an_expression_matches_nothing() -> None:
    made = world()
    joined = made.join("m1", subscribed_topic_regex="fo.*")
    assert (joined.epoch, joined.assignment) == (1, {})
    assert "foo" not in made.consumer.subscribed_topics()
    asked = made.resolutions[0]
    assert (asked.patterns, asked.topics_version, asked.started_at) == (frozenset({"fo.*"}), 1, made.now)
    made.resolve_regexes()
    assert made.epochs == (2, 1)
    assert "foo" in made.consumer.subscribed_topics()
    assert "bar" not in made.consumer.subscribed_topics()


@pytest.mark.parametrize("regex", ["(", "[z-a]", "*"])
def test_an_expression_that_is_none_is_refused(regex: str) -> None:
    made = world()
    refused = made.join("m1", subscribed_topic_regex=regex)
    assert refused.error is Error.INVALID_REGULAR_EXPRESSION
    assert regex in refused.reply.detail
    assert made.group is None


@pytest.mark.parametrize("regex", ["(", "[z-a]", "*"])
def test_an_expression_that_is_none_does_not_replace_one(regex: str) -> None:
    made = resolved()
    before = made.group
    assert made.heartbeat("m1", 2, subscribed_topic_regex=regex).error is Error.INVALID_REGULAR_EXPRESSION
    assert made.group is before


def test_who_turns_to_a_known_expression_bumps_at_once() -> None:
    """consumer.md 4.1."""
    made = resolved()
    join(made, "m2", "b.*")
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m2", made.member("m2").member_epoch)
    made.resolve_regexes()
    epoch = made.epochs[0]
    made.heartbeat("m2", made.member("m2").member_epoch, subscribed_topic_regex="fo.*")
    assert made.epochs[0] == epoch + 1


def test_without_an_engine_expressions_are_refused() -> None:
    error = Env(0, str).regex_error("fo.*")
    assert error is not None
    assert "by name" in error


def test_names_and_expression_are_united() -> None:
    made = world()
    join(made, "m1", "fo.*", "bar")
    made.resolve_regexes()
    assert made.heartbeat("m1", 1).assignment == {"bar": [0, 1], "foo": [0, 1, 2, 3, 4, 5]}


def test_who_uses_a_known_expression_bumps_at_once() -> None:
    made = resolved()
    join(made, "m2", "fo.*")
    assert made.epochs == (3, 3)
    assert not made.resolutions


def test_an_expression_that_another_member_waits_for_is_not_new() -> None:
    made = world()
    join(made, "m1", "fo.*")
    join(made, "m2", "fo.*")
    assert made.epochs[0] == 1
    assert len(made.resolutions) == 1, "one resolution at a time"


def test_to_give_an_expression_up_bumps_and_forgets_it() -> None:
    made = resolved()
    assert made.heartbeat("m1", 2, subscribed_topic_regex="").assignment == {}
    assert made.epochs == (3, 3)
    assert not made.consumer.resolutions


def test_an_expression_that_is_given_up_is_forgotten_alone() -> None:
    made = world()
    join(made, "m1", "fo.*")
    join(made, "m2", "b.*")
    made.resolve_regexes()
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m2", made.member("m2").member_epoch)
    made.resolve_regexes()
    before = made.consumer.resolutions[""]
    assert set(before.topics) == {"fo.*", "b.*"}
    made.heartbeat("m2", made.member("m2").member_epoch, subscribed_topic_regex="")
    assert made.consumer.resolutions == {"": replace(before, topics={"fo.*": frozenset({"foo"})})}


def test_the_expressions_of_a_member_that_is_gone_are_forgotten() -> None:
    made = resolved()
    join(made, "m2", "", "bar")
    made.heartbeat("m1", -1)
    assert not made.consumer.resolutions


def test_resolutions_keep_a_pause() -> None:
    made = resolved()
    made.now += 10_000
    epochs = made.epochs
    join(made, "m2", "b.*")
    assert not made.resolutions
    assert made.epochs == epochs, "it matches nothing yet"
    made.now += 1
    made.heartbeat("m1", 2)
    assert made.resolutions[0].patterns == frozenset({"fo.*", "b.*"})


def test_a_new_topic_makes_the_group_look_again() -> None:
    made = resolved()
    made.set_topics(fox=1)
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m1", 2)
    made.resolve_regexes()
    assert made.heartbeat("m1", 2).assignment == {"foo": [0, 1, 2, 3, 4, 5], "fox": [0]}


def test_a_deleted_topic_bumps_once() -> None:
    """Differs from Kafka: there the next resolution, which no longer has it, bumps the epoch again."""
    made = world()
    join(made, "m1", ".*")
    made.resolve_regexes()
    assert made.heartbeat("m1", 1).epoch == 2
    made.set_topics(bar=None)
    made.heartbeat("m1", 2)
    assert made.heartbeat("m1", 2, owned={"foo": [0, 1, 2, 3, 4, 5]}).epoch == 3
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m1", 3)
    made.resolve_regexes()
    assert made.epochs == (3, 3)


def test_expressions_are_refreshed_now_and_then() -> None:
    made = resolved()
    made.now += 600_000
    made.heartbeat("m1", 2)
    assert not made.resolutions
    made.now += 1
    made.heartbeat("m1", 2)
    made.resolve_regexes()
    assert made.epochs == (2, 2), "the same result changes nothing"


def test_a_lost_resolution_is_asked_for_again() -> None:
    made = world()
    join(made, "m1", "fo.*")
    made.resolutions.clear()
    made.now += RESOLUTION_LOST_AFTER_MS - 1
    made.heartbeat("m1", 1)
    assert not made.resolutions
    made.now += 1
    made.heartbeat("m1", 1)
    assert len(made.resolutions) == 1


def test_an_older_resolution_does_not_undo_a_newer_one() -> None:
    made = resolved()
    before = made.group
    made.send(ApplyRegexResolution(GROUP, {"fo.*": frozenset()}, 1, made.now - 1))
    assert made.group is before


def test_a_resolution_for_expressions_nobody_uses_any_more_leaves_no_trace() -> None:
    made = world()
    join(made, "m1", "fo.*")
    made.heartbeat("m1", 1, subscribed_topic_regex="b.*")
    made.resolve_regexes()
    assert made.epochs[0] == 1
    assert not made.consumer.resolutions
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m1", 1)
    made.resolve_regexes()
    assert made.heartbeat("m1", 1).assignment == {"bar": [0, 1]}


@pytest.mark.parametrize(
    ("members", "homogeneous"),
    [
        ([("", "foo"), ("", "foo")], True),
        ([("", "foo"), ("", "bar")], False),
        ([("fo.*", ""), ("fo.*", "")], True),
        ([("fo.*", ""), ("b.*", "")], False),
        ([("fo.*", ""), ("", "")], False),
        ([("fo.*", "foo"), ("fo.*", "foo")], False),
    ],
)
def test_subscriptions_are_alike_or_not(members: list[tuple[str, str]], homogeneous: bool) -> None:
    made = world()
    for number, (regex, names) in enumerate(members):
        join(made, f"m{number}", regex, *names.split())
    assert made.consumer.homogeneous is homogeneous


def test_a_heartbeat_that_repeats_the_expression_changes_nothing() -> None:
    """consumer.md 6: what is no longer matched is given up with the next target, which is not due yet."""
    made = resolved()
    made.config = replace(made.config, consumer_assignment_interval_ms=10_000)
    made.send(ApplyRegexResolution(GROUP, {"fo.*": frozenset()}, made.topics.version, made.now + 1))
    assert made.epochs == (3, 2)
    assert made.heartbeat("m1", 2, subscribed_topic_regex="fo.*").assignment is None
    assert made.member("m1").state is MemberState.STABLE
    made.now += 10_000
    assert made.heartbeat("m1", 2).assignment == {}


def test_a_resolution_counts_for_the_member_although_the_group_subscribed_to_the_topic_before() -> None:
    made = world()
    made.join("m1", "foo")
    join(made, "m2", "fo.*")
    epoch = made.epochs[0]
    made.resolve_regexes()
    assert made.epochs[0] == epoch + 1
    made.heartbeat("m1", epoch)
    assert made.member("m2").target == {made.topics.by_name["foo"].topic_id: frozenset({3, 4, 5})}


def test_a_resolution_counts_once() -> None:
    made = resolved()
    before, started_at = made.group, made.consumer.resolutions[""].started_at
    assert started_at is not None
    made.send(ApplyRegexResolution(GROUP, {"fo.*": frozenset()}, 1, started_at))
    assert made.group is before


def test_an_expression_of_nobody_is_new_and_need_not_wait_for_a_change_of_topics() -> None:
    """It replaces the only one, so that their number is the same."""
    made = resolved()
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m1", 2, subscribed_topic_regex="b.*")
    assert [asked.patterns for asked in made.resolutions] == [frozenset({"b.*"})]


def test_without_expressions_nothing_is_resolved() -> None:
    made = world()
    made.join("m1", "foo")
    assert made.last is not None
    assert not made.resolutions
    assert made.consumer.regex_jobs == {}


def test_a_resolution_of_some_expressions_keeps_the_others_and_is_soon_followed_by_one_of_all() -> None:
    made = resolved()
    join(made, "m2", "b.*")
    version = made.topics.version
    made.send(ApplyRegexResolution(GROUP, {"b.*": frozenset({"bar"})}, version, made.now + 1))
    assert dict(made.consumer.resolutions[""].topics) == {"fo.*": frozenset({"foo"}), "b.*": frozenset({"bar"})}
    assert made.consumer.resolutions[""].topics_version == -1
    made.send(
        ApplyRegexResolution(GROUP, {"b.*": frozenset({"bar"}), "fo.*": frozenset({"foo"})}, version, made.now + 2)
    )
    assert made.consumer.resolutions[""].topics_version == version


def test_a_resolution_notices_that_a_topic_with_the_same_name_has_grown() -> None:
    made = resolved()
    epoch = made.epochs[0]
    made.set_topics(foo=9)
    made.send(ApplyRegexResolution(GROUP, {"fo.*": frozenset({"foo"})}, made.topics.version, made.now + 1))
    assert made.epochs[0] == epoch + 1
