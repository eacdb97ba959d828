"""What quotas count of commits and fetches. Source: http-api.md 6."""

from __future__ import annotations

from groups.core.model.commands import Heartbeat
from groups.engine.service import GroupService
from kcoord.access.rights import Operation
from kcoord.http.serving import Call
from kcoord.protocol.errors import ProtocolError
from kcoord.quotas.budgets import Budget, Metering
from offsets.api import wire


async def _renew(call: Call[wire.CommitRequest]) -> None:
    """A commit of a classic member extends its session; one that is told to wait shall not cost the membership."""
    body = call.body
    if not body.member_id or body.generation_id_or_member_epoch < 0:
        return
    if not call.principal.may_group(Operation.READ, call.group_id):
        return
    beat = Heartbeat(call.group_id, body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)
    try:
        await call.runtime.get(GroupService).heartbeat(beat)
    except ProtocolError:
        return  # there is no session that could be extended; its next heartbeat says so


def _groups_of(body: wire.ManyFetchRequest) -> int:
    return max(1, len(body.groups))


COMMIT = Metering(Budget.COMMITS, renew=_renew)
FETCH = Metering(Budget.COMMITS)
MANY_FETCH = Metering(Budget.COMMITS, weight=_groups_of)
