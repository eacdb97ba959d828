"""What a heartbeat does: share.md 2.3."""

from __future__ import annotations

from kcoord.protocol.errors import Error
from tests.groups.core.share.world import SESSION_MS, ShareWorld, config


def world_of(**partitions: int) -> ShareWorld:
    world = ShareWorld()
    world.set_topics(**partitions)
    return world


def test_the_first_member_has_everything_at_once() -> None:
    """Differs from Kafka: epoch 1, and partitions need not be initialised before they are assigned."""
    world = world_of(t=3)
    call = world.beat("a", 0, "t")
    assert (call.epoch, call.assignment) == (1, {"t": [0, 1, 2]})
    assert world.both_epochs == (1, 1)
    assert world.share.state.value == "Stable"


def test_others_learn_of_a_new_member_with_their_next_heartbeat() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    assert world.beat("b", 0, "t").assignment == {"t": [0]}, "both share the partition"
    assert world.both_epochs == (2, 2)
    call = world.beat("a", 1)
    assert (call.epoch, call.assignment) == (2, None), "its set did not change"


def test_nobody_gives_anything_up_before_another_has_it() -> None:
    world = world_of(t=2)
    world.beat("a", 0, "t")
    assert world.beat("b", 0, "t").assignment == {"t": [1]}
    assert world.has("a") == {"t": [0, 1]}, "until its next heartbeat"
    assert world.beat("a", 1).assignment == {"t": [0]}


def test_who_names_its_topics_is_told_what_it_has() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    assert world.beat("a", 1).assignment is None
    assert world.beat("a", 1, "t").assignment == {"t": [0]}


def test_an_unknown_topic_is_no_error_and_is_assigned_once_it_exists() -> None:
    world = ShareWorld()
    assert world.beat("a", 0, "t").assignment == {}
    world.set_topics(t=1)
    call = world.beat("a", 1)
    assert (call.epoch, call.assignment) == (2, {"t": [0]})


def test_an_empty_list_empties_the_assignment() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    call = world.beat("a", 1, subscribed_topic_names=frozenset())
    assert (call.epoch, call.assignment) == (2, {})


def test_a_topic_that_grows_or_goes_away_changes_what_members_have() -> None:
    world = world_of(t=1, u=1)
    world.beat("a", 0, "t", "u")
    world.set_topics(t=2)
    assert world.beat("a", 1).assignment == {"t": [0, 1], "u": [0]}
    world.set_topics(u=None)
    assert world.beat("a", 2).assignment == {"t": [0, 1]}


def test_a_member_that_leaves_is_gone_at_once() -> None:
    world = world_of(t=2)
    world.beat("a", 0, "t")
    world.beat("b", 0, "t")
    call = world.beat("b", -1)
    assert (call.epoch, call.reply.heartbeat_interval_ms, call.reply.session_deadline) == (-1, 0, None)
    assert world.both_epochs == (3, 2)
    assert world.beat("b", 2).error is Error.UNKNOWN_MEMBER_ID
    assert world.beat("a", 1).assignment is None, "it has had both all the time"
    assert world.both_epochs == (3, 3)


def test_the_last_member_takes_the_target_along() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    world.beat("a", -1)
    assert world.both_epochs == (2, 2)
    assert world.share.state.value == "Empty"


def test_a_session_ends_as_if_its_member_had_left() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    world.advance(SESSION_MS - 1)
    assert "a" in world.share.members
    world.advance(1)
    assert not world.share.members
    assert world.both_epochs == (2, 2)


def test_sessions_and_intervals_are_those_of_share_groups() -> None:
    world = ShareWorld(config=config(session_timeout_ms=50_000, heartbeat_interval_ms=7_000))
    world.set_topics(t=1)
    reply = world.beat("a", 0, "t").reply
    assert (reply.session_deadline - world.now, reply.heartbeat_interval_ms) == (50_000, 7_000)


def test_targets_are_not_computed_more_often_than_the_interval_allows() -> None:
    world = ShareWorld(config=config(assignment_interval_ms=1_000))
    world.set_topics(t=2)
    world.beat("a", 0, "t")
    assert world.beat("b", 0, "t").assignment == {}
    assert world.both_epochs == (2, 1)
    world.advance(1_000)
    assert world.beat("b", 1).assignment == {"t": [1]}
    assert world.both_epochs == (2, 2)


def test_a_large_target_is_computed_in_the_background() -> None:
    world = world_of(t=2)
    world.config = config()
    world.beat("a", 0, "t")
    object.__setattr__(world.config, "consumer_assignment_inline_limit", 0)
    assert world.beat("b", 0, "t").assignment == {}
    world.compute_target()
    assert world.beat("b", 1).assignment == {"t": [1]}


def test_deadlines_start_over_after_an_outage() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    world.may_expire = False
    world.jump(3 * SESSION_MS)
    world.may_expire, world.gap = True, 1
    world.advance(SESSION_MS - 1)
    assert "a" in world.share.members
    world.advance(1)
    assert not world.share.members


def test_a_member_is_removed_by_an_operator() -> None:
    world = world_of(t=1)
    world.beat("a", 0, "t")
    assert world.kick("a").error is Error.NONE
    assert world.beat("a", 1).error is Error.UNKNOWN_MEMBER_ID
