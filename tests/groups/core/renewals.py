"""The equivalence of the fast lanes: what they accept, `decide` answers in the same way, with the same effect."""

from __future__ import annotations

from itertools import product

from groups.core.classic import members as classic
from groups.core.commit_lane import steady_commit
from groups.core.consumer import renewal as consumer
from groups.core.machine import decide
from groups.core.model.commands import Command, CommitOffsets, ConsumerHeartbeat, Heartbeat
from groups.core.model.consumer_group import ConsumerGroup, TimerKind
from groups.core.model.consumer_records import TimerArmed
from groups.core.model.group import Group, wake_at
from groups.core.model.records import SessionRenewed
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup, Env
from kcoord.protocol.errors import Error


def is_overdue(group: Group, env: Env) -> bool:
    """A deadline has passed, or deadlines start over."""
    at = wake_at(group)
    return (at is not None and at <= env.now) or (env.may_expire and group.armed_gap < env.gap)


def accepted(group: Group | None, command: Command, env: Env) -> bool:
    """Would the heartbeat be answered from memory?"""
    if group is None or is_overdue(group, env):
        return False
    if isinstance(group, ClassicGroup) and isinstance(command, Heartbeat):
        return classic.renewal(group, command, env.now) is not None
    if isinstance(group, ConsumerGroup) and isinstance(command, ConsumerHeartbeat):
        return consumer.renewal(group, command, env.config, env.topics.version, env.now) is not None
    return False


def check_renewal(before: Group | None, command: Command, decision: Decision, env: Env) -> None:
    """Raises AssertionError if an answer from memory would differ from the decision."""
    if not accepted(before, command, env):
        return
    assert decision.reply.error is Error.NONE, decision.reply
    assert not decision.answers
    assert not decision.effects
    (record,) = decision.records
    if isinstance(command, Heartbeat):
        assert isinstance(before, ClassicGroup)
        deadline = classic.renewal(before, command, env.now)
        assert deadline is not None
        assert record == SessionRenewed(command.member_id, deadline, env.now)
        assert decision.reply.session_deadline == deadline
        assert (before.members[command.member_id].session_deadline or 0) <= deadline, "sessions only grow in the rows"
        return
    assert isinstance(before, ConsumerGroup)
    assert isinstance(command, ConsumerHeartbeat)
    reply = consumer.renewal(before, command, env.config, env.topics.version, env.now)
    assert reply == decision.reply
    assert reply.session_deadline is not None
    assert before.timers.session[command.member_id].deadline <= reply.session_deadline, "sessions only grow in the rows"
    assert record == TimerArmed(TimerKind.SESSION, command.member_id, reply.session_deadline, env.now)


def check_commits(group: Group | None, env: Env) -> None:
    """Raises AssertionError if a commit that the lane would accept would be decided in another way."""
    if not isinstance(group, ClassicGroup | ConsumerGroup) or is_overdue(group, env):
        return
    members = tuple(group.members.values())
    for member in {one.member_id: one for one in (*members[:1], *members[-1:])}.values():
        at = group.generation_id if isinstance(group, ClassicGroup) else group.members[member.member_id].member_epoch
        ids = product((None, member.instance_id, "another"), (at, at - 1, -1), (True, False))
        for instance_id, generation, knows_epochs in ids:
            command = CommitOffsets("", member.member_id, instance_id, generation, knows_epochs=knows_epochs)
            _check_commit(group, command, env)
    _check_commit(group, CommitOffsets("", "", None, -1), env)
    _check_commit(group, CommitOffsets("", "stranger", None, 1), env)


def _check_commit(group: ClassicGroup | ConsumerGroup, command: CommitOffsets, env: Env) -> None:
    identity = command.member_id, command.group_instance_id, command.generation_id
    steady = steady_commit(group, *identity, knows_epochs=command.knows_epochs)
    if steady is None:
        return
    decision = decide(group, command, env)
    assert decision.reply.error is Error.NONE, (command, decision.reply)
    assert not decision.answers
    assert not decision.effects
    member = group.members.get(command.member_id) if command.generation_id >= 0 else None
    assert steady.client_id == ("" if member is None else member.client_id)
    renewed = (
        () if steady.session_ms is None else (SessionRenewed(command.member_id, env.now + steady.session_ms, env.now),)
    )
    assert tuple(decision.records) == renewed
