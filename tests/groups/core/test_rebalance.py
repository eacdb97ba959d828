"""Rebalances after the first: timer, who stays, re-sent joins, leader, protocol (classic.md 2.4 to 2.11)."""

from __future__ import annotations

import pytest

from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import World, protocols


def test_timer_is_the_longest_timeout_when_the_rebalance_began() -> None:
    world = World()
    first, second = world.completed(
        world.enter(rebalance_timeout_ms=20_000, session_timeout_ms=600_000),
        world.enter(rebalance_timeout_ms=40_000, session_timeout_ms=600_000),
    )
    world.synced(first, second)
    call = world.join(first, max_wait_ms=60_000, rebalance_timeout_ms=20_000)
    world.advance(1_000)
    late = world.enter(rebalance_timeout_ms=900_000, max_wait_ms=60_000)
    world.advance(38_999)
    assert call.waits
    world.advance(1)
    assert (call.error, late.error) == (Error.NONE, Error.NONE)
    assert world.group is not None
    assert list(world.group.members) == [first, late.member_id], "who did not rejoin is gone"


def test_completes_with_the_last_join() -> None:
    world = World()
    ids = world.stable(3)
    calls = [world.join(ids[0]), world.join(ids[1])]
    assert all(call.waits for call in calls)
    last = world.join(ids[2])
    assert [call.reply.generation_id for call in (*calls, last)] == [2, 2, 2]
    assert [len(call.reply.members) for call in (*calls, last)] == [3, 0, 0]


def test_pending_id_blocks_completion_but_not_the_timer() -> None:
    world = World()
    ids = world.stable(2)
    call = world.join(ids[0])
    pending = world.join(session_timeout_ms=100_000).member_id
    other = world.join(ids[1])
    assert call.waits
    assert other.waits
    world.advance(29_999)
    world.join(ids[0], max_wait_ms=1_000)
    world.join(ids[1], max_wait_ms=1_000)
    world.advance(1)
    assert world.group is not None
    assert (world.state, world.group.generation_id) == (GroupState.COMPLETING_REBALANCE, 2)
    assert list(world.group.pending_join) == [pending]


def test_resent_join_takes_the_place_of_the_parked_one_and_both_are_answered() -> None:
    """Differs from Kafka (classic.md 13.1 item 2): there the displaced request is never answered."""
    world = World()
    ids = world.stable(2)
    older = world.join(ids[0])
    newer = world.join(ids[0], names="range more", session_timeout_ms=8_000, rebalance_timeout_ms=50_000)
    assert older.waits
    assert world.member(ids[0]).protocols == protocols("range", "more")
    assert world.member(ids[0]).session_timeout_ms == 8_000
    assert world.member(ids[0]).rebalance_timeout_ms == 50_000
    last = world.join(ids[1])
    assert last.error is Error.NONE
    assert older.reply == newer.reply
    assert newer.reply.generation_id == 2
    assert world.last is not None
    assert len(world.last.answers) == 2, "one answer for each member, not for each request"


def test_lost_answer_of_a_join_is_given_again() -> None:
    world = World()
    first, second = world.completed(world.enter(), world.enter())
    before = world.group
    for member_id, told in ((first, 2), (second, 0)):
        reply = world.join(member_id).reply
        assert (reply.error, reply.generation_id, len(reply.members)) == (Error.NONE, 1, told)
    assert world.group is before, "not even timeouts change"


def test_lost_id_leaves_a_pending_one_that_blocks_until_it_expires() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.join(session_timeout_ms=6_000)
    call = world.join(member_id)
    world.advance(5_999)
    assert call.waits
    world.advance(1)
    assert call.reply.generation_id == 2


def test_leader_stays_leader_while_it_rejoins_in_time() -> None:
    world = World()
    ids = world.stable(3)
    for member_id in reversed(ids):
        world.join(member_id, names="range more")
    assert world.group is not None
    assert (world.group.leader_id, world.group.generation_id) == (ids[0], 2)


def test_leader_that_does_not_rejoin_is_followed_by_the_longest_standing_member() -> None:
    world = World()
    ids = world.stable(3)
    calls = [world.join(member_id, names="range more") for member_id in (ids[2], ids[1])]
    world.advance(10_000)
    assert world.group is not None
    assert list(world.group.members) == [ids[1], ids[2]]
    assert [call.reply.leader for call in calls] == [ids[1], ids[1]]


def test_leader_gone_at_once_is_followed_in_order_of_arrival() -> None:
    world = World()
    ids = world.stable(3)
    world.leave(ids[0])
    assert world.group is not None
    assert world.group.leader_id == ids[1]


@pytest.mark.parametrize(
    ("lists", "selected"),
    [
        (["a b", "a b", "b a"], "a"),
        (["a b", "b a", "b a"], "b"),
        (["a b c", "b c", "b c a"], "b"),
        (["c b", "b c"], "c"),  # a tie: the leader's preference
    ],
)
def test_protocol_is_voted_for(lists: list[str], selected: str) -> None:
    world = World()
    calls = [world.enter(names=names) for names in lists]
    world.completed(*calls)
    assert [call.reply.protocol_name for call in calls] == [selected] * len(calls)


def test_tie_keeps_the_protocol_in_use() -> None:
    world = World()
    leader, follower = world.completed(world.enter(names="b a"), world.enter(names="b a"))
    world.synced(leader, follower)
    world.join(leader, names="a b")
    reply = world.join(follower, names="b a").reply
    assert (reply.leader, reply.protocol_name) == (leader, "b"), "one vote each; the leader would prefer a"


def test_leader_is_told_the_metadata_of_the_selected_protocol() -> None:
    world = World()
    both = (*protocols("a", metadata=b"of a"), *protocols("b", metadata=b"of b"))
    calls = [world.enter(protocols=both), world.enter(protocols=protocols("b", metadata=b"\x00\xff"))]
    world.completed(*calls)
    told = [(member.member_id, member.metadata) for member in calls[0].reply.members]
    assert told == [(calls[0].member_id, b"of b"), (calls[1].member_id, b"\x00\xff")]


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"group_id": "", "session_timeout_ms": 1}, Error.INVALID_GROUP_ID, "group_id"),
        ({"session_timeout_ms": 5_999}, Error.INVALID_SESSION_TIMEOUT, "session_timeout_ms is 5999"),
        ({"session_timeout_ms": 1_800_001}, Error.INVALID_SESSION_TIMEOUT, "6000 to 1800000"),
        ({"protocols": protocols("range", "a", "a")}, Error.INVALID_REQUEST, "'a'"),
    ],
)
def test_checks_of_the_request_come_first(fields: dict[str, object], error: Error, field: str) -> None:
    """The duplicate protocol Differs from Kafka (classic.md 13.1 item 5): there it blocks the group for good."""
    world = World()
    reply = world.join("somebody", **fields).reply
    assert (reply.error, reply.member_id) == (error, "somebody")
    assert field in reply.detail
    assert world.group is None


@pytest.mark.parametrize("fields", [{"protocols": ()}, {"protocol_type": ""}])
def test_join_without_protocols_or_type_is_inconsistent_in_every_state(fields: dict[str, object]) -> None:
    world = World()
    assert world.join(**fields).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert world.state is GroupState.EMPTY
    world.stable(1)
    assert world.join(**fields).error is Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("timeout", "again"), [(0, 1_000), (1, 1)])
def test_group_of_zero_timeouts_does_not_spin(timeout: int, again: int) -> None:
    """Differs from Kafka: a join that nobody answers is completed anew after a second, not again and again at once."""
    world = World()
    first, second = world.completed(world.join(instance_id="a"), world.join(instance_id="b"))
    world.synced(first, second)
    first = world.join(instance_id="a", rebalance_timeout_ms=timeout).member_id
    world.join(instance_id="b", rebalance_timeout_ms=timeout)
    world.leave(first)
    world.advance(timeout)
    assert world.group is not None
    assert world.group.join_timer is not None
    assert world.group.join_timer.deadline == world.now + again
    if timeout == 0:
        world.advance(10_000)
        assert world.state is GroupState.EMPTY


def test_details_are_sentences() -> None:
    world = World()
    (member_id,) = world.stable(1)
    assert world.heartbeat(member_id, None, 4).reply.detail == (
        f"member {member_id} is at generation 4, the group is at 1: join again"
    )
    assert "protocol type is 'consumer'" in world.join(protocol_type="connect").reply.detail
    assert "no protocol of alone" in world.join(names="alone").reply.detail
    assert world.delete().reply.detail == "group 'orders' is Stable with 1 members: stop them first"
    assert world.commit("", generation_id=-1).reply.detail == (
        "group 'orders' has members: commit with the member_id and generation_id of one of them"
    )
    world.enter()
    assert world.sync(member_id).reply.detail == "SyncGroup: group 'orders' is rebalancing: join again"
    assert world.heartbeat(member_id).reply.detail == "Heartbeat: group 'orders' is rebalancing: join again"
    world.kill()
    assert world.delete().reply.detail == "group 'orders' does not exist"
    assert world.leave(member_id).reply.detail == (
        "LeaveGroup: group 'orders' is being unloaded: find its coordinator and try again"
    )
