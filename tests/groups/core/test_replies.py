"""What a reply says besides its error: nothing in a refusal, no explanation in a success.

Source: classic.md 2.6, 3.1, 4 and 5; consumer.md 2.6.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from groups.core.machine import decide
from groups.core.model.commands import (
    Command,
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteOffsets,
    Heartbeat,
    HoldGroup,
    JoinGroup,
    KickMember,
    LeaveGroup,
    LeavingMember,
    Parked,
    ResetOffsets,
    SyncGroup,
)
from groups.core.model.types import Env
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import World as ConsumerWorld
from tests.groups.core.world import GROUP, START, Call, World, protocols

NO_JOIN: dict[str, Any] = {
    "member_id": "m",
    "generation_id": -1,
    "protocol_type": None,
    "protocol_name": None,
    "leader": "",
    "skip_assignment": False,
    "members": (),
    "session_deadline": None,
    "retry_after_ms": None,
    "replaced_id": "",
}
NO_SYNC = {"protocol_type": None, "protocol_name": None, "assignment": b"", "session_deadline": None}
NO_ANSWER = {
    "member_id": "",
    "member_epoch": 0,
    "heartbeat_interval_ms": 0,
    "assignment": None,
    "session_deadline": None,
    "retry_after_ms": None,
}
JOIN = JoinGroup(GROUP, "m", None, "client", "10.0.0.1", 10_000, 30_000, "consumer", protocols("range"))


def said(reply: Any) -> dict[str, Any]:
    """All that it says besides the error and the explanation."""
    return {field.name: getattr(reply, field.name) for field in fields(reply) if field.name not in ("error", "detail")}


@pytest.mark.parametrize(
    ("command", "error", "rest"),
    [
        (JOIN, Error.UNKNOWN_MEMBER_ID, NO_JOIN),
        (SyncGroup(GROUP, "m", None, 1, None, None, {}), Error.UNKNOWN_MEMBER_ID, NO_SYNC),
        (Heartbeat(GROUP, "m", None, 1), Error.UNKNOWN_MEMBER_ID, {"session_deadline": None}),
        (LeaveGroup("", (LeavingMember("m", None),)), Error.INVALID_GROUP_ID, {"members": ()}),
        (
            CommitOffsets(GROUP, "m", None, 1),
            Error.GROUP_ID_NOT_FOUND,
            {"generation_id": -1, "session_deadline": None},
        ),
        (DeleteOffsets(GROUP, ("foo",)), Error.GROUP_ID_NOT_FOUND, {"subscribed": frozenset()}),
        (ConsumerHeartbeat(GROUP, "m", 1), Error.GROUP_ID_NOT_FOUND, NO_ANSWER),
        (HoldGroup(GROUP, 1_000, "ann", ""), Error.GROUP_ID_NOT_FOUND, {"hold": None, "removed": 0}),
        (KickMember(GROUP, "m", "ann", ""), Error.GROUP_ID_NOT_FOUND, {}),
        (ResetOffsets(GROUP, create=False), Error.GROUP_ID_NOT_FOUND, {}),
    ],
)
def test_a_refusal_says_nothing_but_why(command: Command, error: Error, rest: dict[str, Any]) -> None:
    reply = decide(None, command, Env(START, lambda prefix: f"{prefix}-1")).reply
    assert not isinstance(reply, Parked)
    assert reply.error is error
    assert said(reply) == rest


def explained(*calls: Call) -> list[str]:
    assert all(call.error is Error.NONE for call in calls), [call.reply for call in calls]
    return [call.reply.detail for call in calls if call.reply.detail]


def test_a_success_needs_no_explanation() -> None:
    world = World()
    joined = world.enter()
    leader, _ = world.completed(joined, world.enter())
    synced = world.sync(leader, {leader: b"all"})
    calls = [joined, synced, world.heartbeat(leader), world.commit(leader), world.leave(leader), world.tick()]
    calls += [world.send(DeleteOffsets(GROUP, ("foo",))), world.hold(1_000)]
    assert explained(*calls) == []


def test_a_success_of_a_member_of_the_consumer_protocol_needs_none() -> None:
    world = ConsumerWorld()
    world.set_topics(foo=1)
    joined = world.join("m", "foo")
    calls = [joined, world.heartbeat("m", 1), world.commit("m", 1), world.heartbeat("m", -1)]
    assert [call.reply.detail for call in calls if call.error is not Error.NONE or call.reply.detail] == []
    assert said(calls[-1].reply) == {**NO_ANSWER, "member_id": "m", "member_epoch": -1}
