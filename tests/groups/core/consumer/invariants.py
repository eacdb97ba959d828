"""What holds after every decision about a consumer group, whatever was decided.

Source: consumer.md 1.5.
"""

from __future__ import annotations

from groups.core.machine import answer_for, decide
from groups.core.model.commands import Command, ConsumerHeartbeat, Tick
from groups.core.model.consumer_group import (
    ConsumerGroup,
    ConsumerMember,
    ConsumerMembers,
    MemberState,
    TimerKind,
    flat,
)
from groups.core.model.consumer_records import TimerArmed
from groups.core.model.fold import apply
from groups.core.model.group import Group, wake_at
from groups.core.model.replies import Parked
from groups.core.model.turn import Decision
from groups.core.model.types import Env
from kcoord.protocol.errors import Error


def check(before: Group | None, command: Command, decision: Decision, env: Env) -> None:
    """Raises AssertionError if the decision breaks a promise."""
    assert decision.reply is not None, "every command has a reply"
    at = wake_at(decision.group)
    assert at is None or at > env.sessions_end or not env.may_expire, (
        f"a deadline lies {env.now - (at or 0)} ms in the past"
    )
    group = before
    for record in decision.records:
        previous, group = group, apply(group, record)
        if isinstance(previous, ConsumerGroup) and isinstance(group, ConsumerGroup):
            assert group.group_epoch >= previous.group_epoch, f"{record} lowered the group epoch"
            assert group.assignment_epoch >= previous.assignment_epoch, f"{record} lowered the assignment epoch"
        if isinstance(group, ConsumerGroup):
            check_group(group)
    assert group == decision.group
    if isinstance(group, ConsumerGroup):
        _check_timers(group)
        _check_resolutions(group)
    if isinstance(decision.reply, Parked):
        assert answer_for(decision.group, decision.reply) is None, f"{decision.reply} need not wait"
    if isinstance(command, ConsumerHeartbeat):
        _check_heartbeat(before, command, decision, env)


def _check_resolutions(group: ConsumerGroup) -> None:
    for rights, resolution in group.resolutions.items():
        assert resolution.topics, "nothing is kept of rights that nobody has"
        assert {(regex, rights) for regex in resolution.topics} <= set(group.members.regexes)


def _check_heartbeat(before: Group | None, command: ConsumerHeartbeat, decision: Decision, env: Env) -> None:
    """An error changes nothing; a success of a member that stays renews its session."""
    if not isinstance(decision.reply, Parked) and decision.reply.error is not Error.NONE:
        assert decision.records == decide(before, Tick(command.group_id), env).records, decision.reply
        return
    bumps = sum(type(record).__name__ == "GroupEpochBumped" for record in decision.records)
    expired = sum(type(record).__name__ == "ConsumerMemberRemoved" for record in decision.records)
    assert bumps <= 1 + expired, "one request bumps by one at most"
    renewed = [
        record.member_id
        for record in decision.records
        if isinstance(record, TimerArmed) and record.kind is TimerKind.SESSION
    ]
    displaced = command.resumes is not None and not renewed
    assert displaced or set(renewed) == ({command.member_id} if command.member_epoch >= 0 else set())


def check_group(group: ConsumerGroup) -> None:
    """What holds for every group that a fold made."""
    members = group.members
    assert group.assignment_epoch <= group.group_epoch
    assert group.hold is None or (not members and wake_at(group) == group.hold.until), "nobody is in a held group"
    _check_derived(members)
    for member in members.values():
        _check_member(group, member)
    for kind in TimerKind:
        assert set(group.timers.of(kind)) <= set(members), f"a {kind.value} timer of a stranger"


def _check_member(group: ConsumerGroup, member: ConsumerMember) -> None:
    assigned, pending = set(flat(member.assigned)), set(flat(member.pending_revocation))
    assert not assigned & pending
    assert member.member_epoch <= max(group.assignment_epoch, 0)
    assert not pending or member.state is MemberState.UNREVOKED_PARTITIONS
    assert all(member.assigned.values()), "a topic without partitions is left out"
    if member.reconciled_to(group.assignment_epoch):
        assert assigned <= set(flat(member.target))


def _check_timers(group: ConsumerGroup) -> None:
    """Everybody has a session; who has to give something up has a limit for it, and nobody else has."""
    assert set(group.timers.session) == set(group.members)
    revoking = {
        member.member_id
        for member in group.members.values()
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None and member.member_epoch >= 0
    }
    assert set(group.timers.rebalance) == revoking


def _check_derived(members: ConsumerMembers) -> None:
    """Kept up to date step by step, it is what counting anew gives; no partition has two owners."""
    anew = ConsumerMembers(members.values())
    assert dict(members) == dict(anew)
    for name in ("owners", "static", "votes", "names", "regexes", "stable_at", "classic_protocols", "classic"):
        assert getattr(members, name) == getattr(anew, name), name
