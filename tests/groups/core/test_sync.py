"""SyncGroup and the sync timer (classic.md 3)."""

from __future__ import annotations

from groups.core.model.types import GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import World


def completing(size: int) -> tuple[World, list[str]]:
    world = World()
    return world, world.completed(*[world.enter() for _ in range(size)])


def test_followers_wait_for_the_leader() -> None:
    world, (leader, second, third) = completing(3)
    early = world.sync(second, {second: b"mine!", leader: b"yours"})
    assert early.waits
    own = world.sync(leader, {leader: b"L", second: b"S", "stranger": b"X"})
    assert (own.reply.assignment, early.reply.assignment) == (b"L", b"S")
    assert (own.reply.protocol_type, own.reply.protocol_name) == ("consumer", "range")
    late = world.sync(third)
    assert (late.error, late.reply.assignment) == (Error.NONE, b""), "who is not listed gets zero bytes"


def test_session_is_renewed_for_who_waited_and_not_for_who_fetches() -> None:
    world, (leader, second, third) = completing(3)
    world.advance(1_000)
    before = world.member(third).session_deadline
    early = world.sync(second)
    own = world.sync(leader)
    for call in (early, own):
        assert call.reply.session_deadline == world.now + 10_000
        assert world.member(call.command.member_id).session_deadline == world.now + 10_000
    late = world.sync(third)
    assert (late.reply.session_deadline, world.member(third).session_deadline) == (None, before)


def test_assignments_of_a_stable_group_are_not_replaced() -> None:
    world, (leader, second) = completing(2)
    world.sync(leader, {second: b"first"})
    world.sync(leader, {second: b"second"})
    assert world.sync(second).reply.assignment == b"first"
    assert world.sync(second).reply.assignment == b"first"
    assert world.last is not None
    assert world.last.records == (), "it owes no sync any more"


def test_displaced_sync_is_answered_with_the_newer_one() -> None:
    """Differs from Kafka (classic.md 13.1 item 2): there the displaced request is never answered."""
    world, (leader, second) = completing(2)
    older, newer = world.sync(second), world.sync(second)
    world.sync(leader, {second: b"S"})
    assert older.reply == newer.reply
    assert newer.reply.assignment == b"S"


def test_nobody_synced() -> None:
    world, (leader, second) = completing(2)
    for _ in range(5):
        world.advance(5_000)
        assert world.heartbeat(leader).error is Error.NONE, "heartbeats do not protect from the sync timer"
        world.heartbeat(second)
    world.advance(5_000)
    assert world.group is not None
    assert (world.state, world.group.generation_id, len(world.group.members)) == (GroupState.EMPTY, 2, 0)


def test_follower_that_never_syncs_is_removed_from_a_stable_group() -> None:
    world, (leader, second) = completing(2)
    world.sync(leader, {})
    for _ in range(6):
        world.heartbeat(leader)
        world.heartbeat(second)
        world.advance(5_000)
    assert world.group is not None
    assert (world.state, list(world.group.members)) == (GroupState.PREPARING_REBALANCE, [leader])


def test_leader_that_never_syncs_is_removed_and_followers_rejoin() -> None:
    world, (leader, second) = completing(2)
    waiting = world.sync(second, max_wait_ms=60_000)
    for _ in range(6):
        world.heartbeat(leader)
        world.advance(5_000)
    assert waiting.error is Error.REBALANCE_IN_PROGRESS
    assert waiting.reply.session_deadline == world.member(second).session_deadline
    assert (waiting.reply.assignment, waiting.reply.protocol_name) == (b"", None)
    assert world.join(second).reply.leader == second


def test_last_sync_cancels_the_timer_and_stability_does_not() -> None:
    world, (leader, second) = completing(2)
    world.sync(leader)
    assert world.group is not None
    assert world.group.sync_deadline is not None
    world.sync(second)
    assert world.group.sync_deadline is None


def test_rebalance_takes_unfinished_assignments_back() -> None:
    world, (leader, second) = completing(2)
    world.synced(leader, second)
    assert world.member(second).assignment == second.encode()
    world.join(second, names="range more")
    assert world.member(second).assignment == second.encode(), "a Stable group's are kept while it prepares"
    world.join(leader)
    assert world.member(second).assignment == second.encode()
    waiting = world.sync(second)
    world.join(leader, names="range more")
    assert waiting.error is Error.REBALANCE_IN_PROGRESS
    assert waiting.reply.session_deadline == world.now + 10_000, "classic.md 0.3, PREPARE, step 1"
    assert world.member(second).assignment == b""


def test_a_rebalance_forgives_who_has_not_synced() -> None:
    """classic.md 0.3, PREPARE, step 2."""
    world, (leader, second) = completing(2)
    world.sync(leader)
    assert world.state is GroupState.STABLE
    assert world.member(second).pending_sync
    world.join(leader)
    assert not world.member(second).pending_sync
    assert world.group is not None
    assert world.group.sync_deadline is None
    assert world.join(second).reply.generation_id == 2


def test_a_join_is_not_answered_with_what_the_sync_of_its_member_is_told() -> None:
    world, (_, second) = completing(2)
    waiting = world.sync(second)
    call = world.join(second, names="range more")
    assert waiting.error is Error.REBALANCE_IN_PROGRESS
    assert call.waits


def test_parked_sync_of_a_leaving_member_is_answered() -> None:
    """Differs from Kafka (classic.md 13.1 item 7): there it is never answered."""
    world, (_, second) = completing(2)
    waiting = world.sync(second)
    world.leave(second)
    assert waiting.error is Error.UNKNOWN_MEMBER_ID


def test_protocol_fields_are_checked_only_when_given() -> None:
    world, (leader,) = completing(1)
    for fields, field in (({"protocol_name": "other"}, "protocol_name"), ({"protocol_type": "other"}, "protocol_type")):
        reply = world.sync(leader, **fields).reply
        assert reply.error is Error.INCONSISTENT_GROUP_PROTOCOL
        assert field in reply.detail
    assert world.sync(leader, protocol_type="consumer", protocol_name="range").error is Error.NONE


def test_protocol_fields_are_checked_only_against_what_the_group_has() -> None:
    """classic.md 3.1, row 12: before the first generation no protocol is selected."""
    world = World()
    call = world.enter()
    assert call.parked is not None
    early = world.sync(call.parked.member_id, protocol_type="consumer", protocol_name="range")
    assert early.error is Error.REBALANCE_IN_PROGRESS
