"""What requests of other protocols get from a share group: share.md 4."""

from __future__ import annotations

import pytest

from groups.core.commit_lane import steady_commit
from groups.core.model.commands import (
    Command,
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteGroup,
    DeleteOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    ResetOffsets,
    SyncGroup,
)
from groups.core.model.types import Protocol
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP
from tests.groups.core.share.world import ShareWorld

JOIN = JoinGroup(GROUP, "", None, "c", "h", 10_000, 10_000, "consumer", (Protocol("range", b""),))
CONSUMER = ConsumerHeartbeat(
    GROUP, "c", 0, rebalance_timeout_ms=1, subscribed_topic_names=frozenset("t"), topic_partitions={}
)


def world_with(*, members: bool) -> ShareWorld:
    world = ShareWorld()
    world.set_topics(t=1)
    world.beat("a", 0, "t")
    if not members:
        world.beat("a", -1)
    return world


@pytest.mark.parametrize("members", [True, False])
@pytest.mark.parametrize(
    ("command", "error"),
    [
        (JOIN, Error.INCONSISTENT_GROUP_PROTOCOL),
        (SyncGroup(GROUP, "a", None, 1, None, None, {}), Error.UNKNOWN_MEMBER_ID),
        (Heartbeat(GROUP, "a", None, 1), Error.UNKNOWN_MEMBER_ID),
        (CONSUMER, Error.GROUP_ID_NOT_FOUND),
        (CommitOffsets(GROUP, "", None, -1), Error.GROUP_ID_NOT_FOUND),
        (CommitOffsets(GROUP, "a", None, 1), Error.GROUP_ID_NOT_FOUND),
        (CommitOffsets(GROUP, "", None, -1, transactional=True), Error.GROUP_ID_NOT_FOUND),
        (DeleteOffsets(GROUP, frozenset("t")), Error.GROUP_ID_NOT_FOUND),
        (ResetOffsets(GROUP, create=True), Error.GROUP_ID_NOT_FOUND),
    ],
    ids=lambda value: type(value).__name__,
)
def test_they_are_refused_and_change_nothing(command: Command, error: Error, members: bool) -> None:
    world = world_with(members=members)
    before = world.group
    call = world.send(command)
    assert call.error is error
    assert error is Error.UNKNOWN_MEMBER_ID or "share group" in call.reply.detail
    assert world.group == before


def test_nobody_leaves_by_leave_group() -> None:
    world = world_with(members=True)
    reply = world.send(LeaveGroup(GROUP, (LeavingMember("a", None),))).reply
    assert [member.error for member in reply.members] == [Error.UNKNOWN_MEMBER_ID]
    assert "a" in world.share.members


def test_the_lane_of_commits_takes_none() -> None:
    for members in (True, False):
        group = world_with(members=members).group
        assert group is not None
        assert steady_commit(group, "", None, -1) is None
        assert steady_commit(group, "a", None, 1) is None


def test_it_is_deleted_without_members_only() -> None:
    world = world_with(members=True)
    assert world.send(DeleteGroup(GROUP)).error is Error.NON_EMPTY_GROUP
    world.beat("a", -1)
    assert world.send(DeleteGroup(GROUP)).error is Error.NONE
    assert world.group is None
    assert world.send(DeleteGroup(GROUP)).error is Error.GROUP_ID_NOT_FOUND
