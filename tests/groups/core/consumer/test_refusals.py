"""A refused request of a member of the consumer protocol leaves no trace: `Turn.restore` undoes what it began."""

from __future__ import annotations

from groups.core.assignors import AssignorFailed
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import join_classic, migrating_world, sync_classic
from tests.groups.core.consumer.test_epochs import Broken
from tests.groups.core.consumer.world import World


def test_an_upgrade_that_is_refused_answers_nobody() -> None:
    """The joins that wait for the next generation would be told to join again otherwise."""
    made = migrating_world(consumer_max_size=2)
    leader = join_classic(made, "", ("foo",), instance_id="i1")
    sync_classic(made, leader.reply.member_id, 1, {}, "i1")
    waits = join_classic(made, "", ("foo",), instance_id="i2")
    assert waits.parked is not None
    before = made.group
    assert made.join("m1", "foo").error is Error.GROUP_MAX_SIZE_REACHED
    assert (waits.reply, made.group) == (None, before)
    made.config = migrating_world(consumer_max_size=3).config
    assert made.join("m1", "foo").error is Error.NONE
    assert waits.error is Error.REBALANCE_IN_PROGRESS, "the upgrade would have answered it"


def test_a_request_that_is_refused_starts_no_work() -> None:
    """The resolution would be stored for a group that does not know the expression."""
    made = World()
    made.set_topics(foo=1)
    working, made.assignors = made.assignors, {"range": Broken(AssignorFailed("no"))}
    assert made.join("m1", "foo", subscribed_topic_regex="fo.*").error is Error.UNKNOWN_SERVER_ERROR
    assert (made.resolutions, made.group) == ([], None)
    made.assignors = working
    assert made.join("m1", "foo", subscribed_topic_regex="fo.*").error is Error.NONE
    assert len(made.resolutions) == 1, "it would have been asked for"
