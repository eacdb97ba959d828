"""The equivalence of answers from memory: what they accept, `decide` answers in the same way, with the same effect."""

from __future__ import annotations

from groups.core.classic import members as classic
from groups.core.consumer import renewal as consumer
from groups.core.model.commands import Command, ConsumerHeartbeat, Heartbeat
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
