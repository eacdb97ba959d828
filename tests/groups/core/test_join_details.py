"""What a JoinGroup is refused for and in which order, and what its rebalance is told (classic.md 2.3 to 2.5)."""

from __future__ import annotations

import pytest

from groups.core.model.records import RebalanceStarted
from groups.core.model.types import Cause, GroupConfig, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import World


def started(world: World) -> list[tuple[Cause, str]]:
    assert world.last is not None
    return [(record.cause, record.detail) for record in world.last.records if isinstance(record, RebalanceStarted)]


@pytest.mark.parametrize("member_id", ["", "x"])
def test_a_group_that_is_being_unloaded_comes_before_what_the_member_supports(member_id: str) -> None:
    world = World()
    world.stable(1)
    world.kill()
    call = world.join(member_id, protocol_type="connect")
    assert call.error is Error.COORDINATOR_NOT_AVAILABLE
    assert call.member_id == member_id


def test_a_full_group_that_is_being_unloaded_refuses_nobody_for_its_size() -> None:
    """ACCEPT lets anybody pass a Dead group (classic.md 0.3); the next check refuses them."""
    world = World(config=GroupConfig(max_size=1))
    world.stable(1)
    world.kill()
    for call in (world.join(), world.join(instance_id="i"), world.join("x")):
        assert call.error is Error.COORDINATOR_NOT_AVAILABLE


def test_a_new_id_begins_with_the_instance_id_or_else_the_client_id() -> None:
    world = World()
    assert world.join().member_id.startswith("client-")
    world.join(instance_id="host")
    assert world.group is not None
    assert next(iter(world.group.members)).startswith("host-")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"protocol_type": ""}, "must not be empty"),
        ({"protocols": ()}, "must not be empty"),
        ({"protocol_type": "connect"}, "the group's protocol type is 'consumer', the member's 'connect'"),
        ({"names": "x y"}, "no protocol of x, y is supported by all 1 members"),
    ],
)
def test_protocols_that_do_not_fit_are_refused_with_what_is_wrong(fields: dict[str, object], told: str) -> None:
    world = World()
    world.stable(1)
    pending = world.join().member_id
    for member_id in ("", pending):
        call = world.join(member_id, **fields)  # type: ignore[arg-type]
        assert call.error is Error.INCONSISTENT_GROUP_PROTOCOL
        assert told in call.reply.detail


def test_an_empty_group_takes_any_protocol_type_but_none() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.leave(member_id)
    assert world.state is GroupState.EMPTY
    assert "must not be empty" in world.join(protocol_type="").reply.detail
    world.enter(protocol_type="connect")
    assert world.group is not None
    assert world.group.protocol_type == "connect", "nobody is left who uses the old one"


@pytest.mark.parametrize("reason", [None, "deployed"])
def test_a_rebalance_tells_the_reason_that_the_client_gave(reason: str | None) -> None:
    world = World()
    (leader,) = world.stable(1)
    world.enter(reason=reason)
    assert started(world) == [(Cause.MEMBER_JOINED, reason or "")]
    world = World()
    (leader,) = world.stable(1)
    world.join(leader, reason=reason)
    assert started(world) == [(Cause.LEADER_REJOINED, reason or "")]


@pytest.mark.parametrize(("late", "told"), [(1, ""), (2, "2 members did not sync"), (3, "3 members did not sync")])
def test_a_rebalance_tells_how_many_members_did_not_sync(late: int, told: str) -> None:
    world = World()
    calls = [world.enter(session_timeout_ms=600_000) for _ in range(late + 1)]
    leader, *_ = world.completed(*calls)
    world.sync(leader)
    world.advance(30_000)
    assert started(world) == [(Cause.SYNC_TIMED_OUT, told)]
