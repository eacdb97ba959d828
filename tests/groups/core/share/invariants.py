"""What holds after every decision about a share group, whatever was decided.

Source: share.md 2 and 3.
"""

from __future__ import annotations

from groups.core.machine import decide
from groups.core.model.commands import Command, ShareHeartbeat, Tick
from groups.core.model.consumer_group import MemberState, ShareGroup, ShareMembers, TimerKind, flat
from groups.core.model.consumer_records import TimerArmed
from groups.core.model.fold import apply
from groups.core.model.group import Group, wake_at
from groups.core.model.turn import Decision
from groups.core.model.types import Env
from kcoord.protocol.errors import Error


def check(before: Group | None, command: Command, decision: Decision, env: Env) -> None:
    """Raises AssertionError if the decision breaks a promise."""
    group = before
    for record in decision.records:
        previous, group = group, apply(group, record)
        if isinstance(previous, ShareGroup) and isinstance(group, ShareGroup):
            assert group.group_epoch >= previous.group_epoch, f"{record} lowered the group epoch"
            assert group.assignment_epoch >= previous.assignment_epoch, f"{record} lowered the assignment epoch"
    assert group == decision.group
    assert not decision.answers, "nobody waits in a share group"
    if isinstance(group, ShareGroup):
        check_group(group)
    if isinstance(command, ShareHeartbeat):
        _check_heartbeat(before, command, decision, env)


def check_group(group: ShareGroup) -> None:
    """What holds for every group that a fold made."""
    assert isinstance(group.members, ShareMembers)
    assert group.state.value == ("Stable" if group.members else "Empty")
    assert group.assignment_epoch <= group.group_epoch
    assert group.members or group.assignment_epoch == group.group_epoch, "an empty group awaits no target"
    assert group.hold is None or (not group.members and wake_at(group) == group.hold.until)
    assert set(group.timers.session) == set(group.members), "everybody has a session, and nobody else"
    assert not any(group.timers.of(kind) for kind in TimerKind if kind is not TimerKind.SESSION)
    assert not group.members.owners
    for member in group.members.values():
        assert member.state is MemberState.STABLE
        assert not member.pending_revocation
        assert member.member_epoch <= group.assignment_epoch
        if member.member_epoch == group.assignment_epoch:
            assert set(flat(member.assigned)) <= set(flat(member.target))


def _check_heartbeat(before: Group | None, command: ShareHeartbeat, decision: Decision, env: Env) -> None:
    """An error changes nothing; a success of a member that stays renews its session alone."""
    reply = decision.reply
    if reply.error is not Error.NONE:
        assert decision.records == decide(before, Tick(command.group_id), env).records, reply
        return
    renewed = {record.member_id for record in decision.records if isinstance(record, TimerArmed)}
    assert renewed == ({command.member_id} if command.member_epoch >= 0 else set())
    if command.member_epoch < 0:
        return
    assert isinstance(decision.group, ShareGroup)
    member = decision.group.members[command.member_id]
    assert member.member_epoch == decision.group.assignment_epoch, "a member takes its target in one step"
    had = before.members.get(command.member_id) if isinstance(before, ShareGroup) else None
    if reply.assignment is None:
        assert had is not None
        assert set(flat(had.assigned)) == set(flat(member.assigned)), "a change is reported"
    else:
        assert set(flat(reply.assignment)) == set(flat(member.assigned))
