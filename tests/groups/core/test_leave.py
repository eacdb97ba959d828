"""LeaveGroup and DeleteGroup (classic.md 5 and 8.1), and the size gate (2.2, 8.3)."""

from __future__ import annotations

from groups.core.model.commands import LeaveGroup, LeavingMember
from groups.core.model.records import RebalanceStarted
from groups.core.model.types import GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import GROUP, World


def entries(world: World, *members: tuple[str, str | None]) -> list[tuple[str, str | None, str]]:
    batch = LeaveGroup(GROUP, tuple(LeavingMember(*member) for member in members))
    reply = world.send(batch).reply
    assert reply.error is Error.NONE
    return [(entry.member_id, entry.group_instance_id, entry.error.name) for entry in reply.members]


def test_batch_is_answered_entry_by_entry_and_rebalances_once() -> None:
    world = World()
    first, second, static = world.completed(world.enter(), world.enter(), world.join(instance_id="i"))
    world.synced(first, second, static)
    asked = [(first, None), ("", "i"), (static, "i"), ("nobody", None), (first, None), ("", None)]
    unknown = "UNKNOWN_MEMBER_ID"
    assert entries(world, *asked) == [
        (first, None, "NONE"),
        ("", "i", "NONE"),
        (static, "i", unknown),
        ("nobody", None, unknown),
        (first, None, unknown),
        ("", None, unknown),
    ]
    assert world.last is not None
    assert sum(isinstance(record, RebalanceStarted) for record in world.last.records) == 1
    assert world.group is not None
    assert (world.state, list(world.group.members)) == (GroupState.PREPARING_REBALANCE, [second])


def test_unknown_group_and_empty_batch() -> None:
    world = World()
    assert entries(world, ("m", "i")) == [("m", "i", "UNKNOWN_MEMBER_ID")]
    world.stable(1)
    before = world.group
    assert entries(world) == []
    assert world.group is before


def test_last_member_leaves() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    assert world.group is not None
    assert (world.state, world.group.generation_id, world.group.protocol_name) == (GroupState.EMPTY, 2, None)
    assert world.group.protocol_type == "consumer"


def test_last_member_leaves_while_an_id_is_pending() -> None:
    world = World()
    (member_id,) = world.stable(1)
    pending = world.join().member_id
    world.leave(member_id)
    assert world.group is not None
    assert (world.state, world.group.generation_id) == (GroupState.EMPTY, 2)
    assert list(world.group.pending_join) == [pending]


def test_leaving_pending_id_completes_a_prepared_rebalance() -> None:
    world = World()
    (member_id,) = world.stable(1)
    pending = world.join().member_id
    call = world.join(member_id)
    assert call.waits
    world.leave(pending)
    assert call.reply.generation_id == 2


def test_leaving_pending_id_rebalances_a_stable_group() -> None:
    """Kafka's answer, kept (classic.md 13.1 item 12); its expiry does not."""
    world = World()
    (member_id,) = world.stable(1)
    expiring = world.join(session_timeout_ms=6_000).member_id
    world.advance(6_000)
    assert world.group is not None
    assert expiring not in world.group.pending_join
    assert world.state is GroupState.STABLE
    world.leave(world.join().member_id)
    assert world.state is GroupState.PREPARING_REBALANCE
    assert world.heartbeat(member_id).error is Error.REBALANCE_IN_PROGRESS


def test_leave_completes_a_rebalance_only_it_was_missing_from() -> None:
    world = World()
    first, second = world.stable(2)
    call = world.join(first)
    world.leave(second)
    assert (call.reply.generation_id, len(call.reply.members)) == (2, 1)


def test_delete_forgets_everything() -> None:
    world = World()
    (member_id,) = world.stable(1)
    assert world.delete().error is Error.NON_EMPTY_GROUP
    world.leave(member_id)
    pending = world.join().member_id
    assert world.delete().error is Error.NONE
    assert world.group is None
    assert world.join(pending).error is Error.UNKNOWN_MEMBER_ID
    assert world.delete().error is Error.GROUP_ID_NOT_FOUND
    assert world.completed(world.enter())
    assert world.group is not None
    assert world.group.generation_id == 1, "a new group of the name begins anew"


def test_full_group_turns_strangers_and_pending_ids_away() -> None:
    world = World(config=GroupConfig(max_size=2))
    pending = world.join().member_id
    first, second = world.enter(), world.enter()
    assert first.parked is not None
    assert world.join(first.parked.member_id).waits, "who waits already may send its join again"
    refused = world.join(pending)
    assert (refused.error, refused.member_id) == (Error.GROUP_MAX_SIZE_REACHED, "")
    assert "limit of 2" in refused.reply.detail
    assert world.group is not None
    assert not world.group.pending_join, "a pending id that is refused is forgotten"
    world.completed(first, second)
    assert world.join(first.member_id).error is Error.NONE
    assert world.join().error is Error.GROUP_MAX_SIZE_REACHED


def test_lowered_limit_throws_out_who_rejoins_last_without_completing() -> None:
    """classic.md 13.1 item 4: the removal itself completes nothing; that is left to the timer or the next event."""
    world = World()
    ids = world.stable(3)
    world.config = GroupConfig(max_size=2)
    calls = [world.join(member_id, names="range more", max_wait_ms=60_000) for member_id in ids]
    assert [call.waits for call in calls] == [True, True, False]
    assert calls[2].error is Error.GROUP_MAX_SIZE_REACHED
    world.advance(29_999)
    assert calls[0].waits
    world.advance(1)
    assert [len(call.reply.members) for call in calls[:2]] == [2, 0]
