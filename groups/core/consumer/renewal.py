"""Consumer-heartbeats that change nothing but the deadline of a session, told without deciding them.

Tested as a property: what is accepted here is what `decide` answers in the same way, with one `TimerArmed`
of the session and no effect.

Source: consumer.md 2; architecture.md 4, "Fast lanes".
"""

from __future__ import annotations

from groups.core.consumer.target import resolution_is_due
from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, MemberState
from groups.core.model.replies import ConsumerHeartbeatReply
from groups.core.model.types import GroupConfig, Millis
from kcoord.protocol.errors import Error


def renewal(
    group: ConsumerGroup, command: ConsumerHeartbeat, config: GroupConfig, topics_version: int, now: Millis
) -> ConsumerHeartbeatReply | None:
    """The reply to a heartbeat that only extends a session; None: it has to be decided.

    Only if nothing is overdue in the group. `topics_version`: that of the catalogue; `now` in ms.
    """
    member = group.members.get(command.member_id)
    if member is None or not _says_nothing_new(member, command) or not _is_settled(group, member, command):
        return None
    deadline = now + config.consumer_session_timeout_ms
    session = group.timers.session.get(command.member_id)
    if session is None or session.deadline > deadline:  # another heartbeat of the member waits
        return None
    if group.metadata_version != topics_version:
        return None
    if group.members.regexes and resolution_is_due(group, command.rights.key, config, topics_version, now):
        return None
    return ConsumerHeartbeatReply(
        Error.NONE,
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=config.consumer_heartbeat_interval_ms,
        assignment=None,
        session_deadline=deadline,
    )


def _says_nothing_new(member: ConsumerMember, command: ConsumerHeartbeat) -> bool:
    """What the request says of its member is known, and it does not wait."""
    return (
        command.member_epoch == member.member_epoch > 0
        and command.topic_partitions is None
        and command.subscribed_topic_names is None
        and command.subscribed_topic_regex is None
        and command.server_assignor is None
        and command.resumes is None
        and command.max_wait_ms <= 0
        and command.instance_id in (None, member.instance_id)
        and command.rack_id in (None, member.rack_id)
        and command.rebalance_timeout_ms in (-1, member.rebalance_timeout_ms)
        and command.client_id in ("", member.client_id)
        and command.client_host == member.client_host
        and member.classic is None
        and (not member.subscribed_topic_regex or member.topic_rights == command.rights.key)
    )


def _is_settled(group: ConsumerGroup, member: ConsumerMember, command: ConsumerHeartbeat) -> bool:
    """The group awaits no target, and the member has what it should have.

    A heartbeat that is younger than what is known of its session cannot have been overtaken (`check_order`).
    """
    return (
        0 < group.group_epoch <= group.assignment_epoch
        and member.state is MemberState.STABLE
        and member.member_epoch == group.assignment_epoch
        and command.age_ms == 0
    )
