"""What quotas count of the calls of members.

Source: http-api.md 6. A quota never costs a membership: heartbeats over the limit are carried out, and members that are
in the group may always join again, sync and leave.
"""

from __future__ import annotations

from groups.api import consumer_wire, share_wire, wire
from groups.core.model.group import Group
from groups.engine.service import GroupService
from kcoord.access.rights import Principal
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.quotas.budgets import Budget, Metering
from kcoord.quotas.quotas import Quotas


def _members_of(body: wire.ManyHeartbeatsRequest) -> int:
    return len(body.heartbeats)


def _all_kept(body: wire.ManyHeartbeatsRequest, answer: wire.ManyHeartbeatsResponse) -> bool:
    return all(result.error_code == Error.NONE.code for result in answer.heartbeats)


def _kept(body: wire.HeartbeatRequest, answer: wire.HeartbeatResponse) -> bool:
    return True  # errors are raised, and are the answer


def _consumer_kept(
    body: consumer_wire.ConsumerHeartbeatRequest | share_wire.ShareHeartbeatRequest,
    answer: consumer_wire.ConsumerHeartbeatResponse,
) -> bool:
    """The answer says nothing but that the member is still in the group."""
    return answer.assignment is None and 0 < body.member_epoch == answer.member_epoch


HEARTBEAT = Metering(Budget.HEARTBEATS, keeps=_kept)
MANY_HEARTBEATS = Metering(Budget.HEARTBEATS, weight=_members_of, keeps=_all_kept)
CONSUMER = Metering(Budget.HEARTBEATS, keeps=_consumer_kept)
SHARE = Metering(Budget.HEARTBEATS, keeps=_consumer_kept)


async def admit_member(
    runtime: Runtime,
    principal: Principal,
    group_id: str,
    member_id: str,
    instance_id: str | None,
    *,
    is_new: bool = False,
) -> None:
    """Count a join that makes a member, and a group if it does not exist. `is_new`: even if the request has an id.

    Raises THROTTLING_QUOTA_EXCEEDED. Nothing is read unless somebody has a limit of members or groups.
    """
    quotas = runtime.get(Quotas)
    if not quotas.limits_joins or (member_id and not is_new):
        return
    if quotas.meter(principal).keys().isdisjoint((Budget.MEMBERS, Budget.GROUPS)):
        return
    group = (await runtime.get(GroupService).describe(group_id, partitions=False)).group
    if group is not None and _is_in(group, member_id, instance_id):
        return
    quotas.admit(principal, {Budget.MEMBERS: 1} if group is not None else {Budget.MEMBERS: 1, Budget.GROUPS: 1})


def _is_in(group: Group, member_id: str, instance_id: str | None) -> bool:
    return member_id in group.members or (
        instance_id is not None and any(member.instance_id == instance_id for member in group.members.values())
    )


async def admit_group(runtime: Runtime, principal: Principal, group_id: str) -> None:
    """Count a request that makes the group unless it exists. Raises THROTTLING_QUOTA_EXCEEDED."""
    quotas = runtime.get(Quotas)
    if not quotas.limits_joins or Budget.GROUPS not in quotas.meter(principal):
        return
    if (await runtime.get(GroupService).describe(group_id, partitions=False)).group is None:
        quotas.admit(principal, {Budget.GROUPS: 1})
