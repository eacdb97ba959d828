"""Which topics a classic group is subscribed to while it rebalances (offsets.md 6.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.configs import CONSUMER_PROTOCOL
from groups.core.classic.rebalance import topics_of_generation
from groups.core.model.commands import DeleteOffsets
from groups.core.model.types import ClassicGroup, GroupState, Members, Protocol
from groups.core.subscription import subscribed_topics
from kcoord.protocol.consumer_protocol import Subscription, decode_subscription, encode_subscription
from kcoord.protocol.errors import Error
from offsets.core.retention import NO_PINS, rule_of
from tests.groups.core.consumer.classic_client import (
    beat_classic,
    join_classic,
    leave_classic,
    migrating_world,
    sync_classic,
)
from tests.groups.core.consumer.world import GROUP, World

TOPICS = ("foo", "bar", "baz")


def protected(made: World) -> set[str]:
    """The topics whose offsets may not be deleted."""
    call = made.send(DeleteOffsets(GROUP, frozenset(TOPICS)))
    assert call.error is Error.NONE
    return set(call.reply.subscribed)


def state(made: World) -> GroupState:
    assert isinstance(made.group, ClassicGroup)
    return made.group.state


def stable() -> World:
    """Static members: a, which leads, reads foo and b bar; both have synced."""
    made = migrating_world()
    join_classic(made, "", ("foo",), instance_id="a")
    join_classic(made, "", ("bar",), instance_id="b")
    generation = join_classic(made, ids(made)[0], ("foo",), instance_id="a").reply.generation_id
    for member_id, instance_id in zip(ids(made), "ab", strict=True):
        assert sync_classic(made, member_id, generation, {}, instance_id).error is Error.NONE
    assert (state(made), protected(made)) == (GroupState.STABLE, {"foo", "bar"})
    return made


def ids(made: World) -> tuple[str, ...]:
    """The member ids, by instance id."""
    assert isinstance(made.group, ClassicGroup)
    return tuple(member_id for _, member_id in sorted(made.group.members.static.items()))


def test_what_many_members_say_alike_is_read_once() -> None:
    read: list[bytes] = []

    def decode(data: bytes) -> Subscription | None:
        read.append(data)
        return decode_subscription(data)

    said = [encode_subscription(Subscription((name,))) for name in ("foo", "bar")]
    joined = stable().group
    assert isinstance(joined, ClassicGroup)
    one = joined.members[joined.leader_id or ""]
    members = (
        replace(one, member_id=f"m{number}", instance_id=None, protocols=(Protocol("range", said[number % 2]),))
        for number in range(100)
    )
    protocol = replace(CONSUMER_PROTOCOL, decode_subscription=decode)
    topics = topics_of_generation(replace(joined, members=Members(members)), "range", protocol)
    assert topics == {"foo", "bar"}
    assert sorted(read) == sorted(said)


def test_what_members_that_join_again_say_counts_from_the_next_generation() -> None:
    made = stable()
    a, b = ids(made)
    waits = join_classic(made, a, ("baz",), instance_id="a")
    assert waits.parked is not None
    assert state(made) is GroupState.PREPARING_REBALANCE
    assert protected(made) == {"foo", "bar"}, "foo was given up, baz is named for the first time"
    join_classic(made, b, ("bar",), instance_id="b")
    assert state(made) is GroupState.COMPLETING_REBALANCE
    assert protected(made) == {"baz", "bar"}


def test_a_member_that_leaves_takes_its_topics_along_with_the_next_generation() -> None:
    made = stable()
    a, b = ids(made)
    leave_classic(made, (b, "b"))
    assert (state(made), protected(made)) == (GroupState.PREPARING_REBALANCE, {"foo", "bar"})
    join_classic(made, a, ("foo",), instance_id="a")
    assert protected(made) == {"foo"}


def test_an_empty_group_and_the_first_join_into_it_are_subscribed_to_nothing() -> None:
    made = stable()
    a, b = ids(made)
    leave_classic(made, (a, "a"), (b, "b"))
    assert (state(made), protected(made)) == (GroupState.EMPTY, set())
    made.config = replace(made.config, initial_rebalance_delay_ms=3_000)
    join_classic(made, "", ("foo",), instance_id="a")
    assert (state(made), protected(made)) == (GroupState.PREPARING_REBALANCE, set())
    made.advance(3_000)
    assert (state(made), protected(made)) == (GroupState.COMPLETING_REBALANCE, {"foo"})


def test_before_the_first_generation_it_may_be_any_topic() -> None:
    made = migrating_world()
    made.config = replace(made.config, initial_rebalance_delay_ms=3_000)
    join_classic(made, "", ("foo",), instance_id="a")
    assert (state(made), protected(made)) == (GroupState.PREPARING_REBALANCE, set(TOPICS))


def test_nobody_is_left_of_the_first_join() -> None:
    """Without members a group is subscribed to nothing, although no generation has begun yet."""
    made = migrating_world()
    made.config = replace(made.config, initial_rebalance_delay_ms=3_000)
    join_classic(made, "", ("foo",), instance_id="a")
    leave_classic(made, (ids(made)[0], "a"))
    assert (state(made), protected(made)) == (GroupState.PREPARING_REBALANCE, set())


def test_a_static_member_that_comes_back_with_another_subscription_changes_nothing_by_itself() -> None:
    made = stable()
    join_classic(made, "", ("baz",), instance_id="b")
    assert (state(made), protected(made)) == (GroupState.STABLE, {"foo", "bar"})
    assert made.group is not None
    assert rule_of(made.group, NO_PINS, 1).kept_topics == {"foo", "bar"}, "retention sees the same"


@pytest.mark.parametrize("metadata", [b"\x00", encode_subscription(Subscription(("foo",)))], ids=["bytes", "foo"])
def test_metadata_that_cannot_be_read_may_name_any_topic_until_the_next_generation(metadata: bytes) -> None:
    made = migrating_world()
    join_classic(made, "", (), instance_id="a", protocols=(Protocol("range", b"\x00"),))
    assert subscribed_topics(made.group).names is None
    waits = join_classic(made, ids(made)[0], (), instance_id="a", protocols=(Protocol("range", metadata),))
    assert waits.error is Error.NONE
    assert protected(made) == ({"foo"} if len(metadata) > 1 else set(TOPICS))


def test_only_metadata_of_the_type_consumer_is_read() -> None:
    """What members of another type bring is theirs, whatever it looks like (offsets.md 6.1)."""
    made = migrating_world()
    join_classic(made, "", ("foo",), instance_id="a", protocol_type="connect")
    assert isinstance(made.group, ClassicGroup)
    assert (made.group.state, made.group.generation_topics) == (GroupState.COMPLETING_REBALANCE, None)


def test_a_group_that_comes_from_the_consumer_protocol_has_the_topics_of_its_members() -> None:
    made = migrating_world()
    made.set_topics(bar=1)
    made.join("m1", "bar")
    generation = join_classic(made, "c", ("foo",)).reply.generation_id
    sync_classic(made, "c", generation)
    made.heartbeat("m1", -1)
    assert (state(made), protected(made)) == (GroupState.PREPARING_REBALANCE, {"foo"})
    assert beat_classic(made, "c", generation + 1).error in (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION)
