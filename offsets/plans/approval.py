"""Approval of offset plans by a second person (`plans.second.person`).

A plan is then applied only after someone other than its maker has approved it. An approval is for the plan as it was
computed: planning again, or with less risk, makes another plan, which takes its own. Undoing takes none, because it
brings back what was there. Nor do commands on the server, because anyone who runs them can also change the setting.

Kafka has no counterpart.
"""

from __future__ import annotations

import structlog

from groups.engine.service import GroupService
from kcoord.access.audit.recording import Act, record
from kcoord.access.rights import Operation, Principal
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from offsets.core.plan_types import PlanState
from offsets.plans.refusals import own_plan, waits_for_approval, wrong_state
from offsets.plans.sources import check_readable
from offsets.plans.store import PlanStore
from offsets.plans.summary import PlanHeader

log = structlog.get_logger(__name__)


class PlanApproval:
    """Gives and checks approvals. Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(PlanStore)
        self.required = runtime.config.bool("plans.second.person")
        """Whether plans have to be approved."""

    def awaited(self, plan: PlanHeader) -> bool:
        """Whether a plan cannot be applied before someone approves it."""
        return self.required and plan.state is PlanState.PLANNED and plan.approved_at is None

    def check(self, plan: PlanHeader, principal: Principal) -> None:
        """Raise INVALID_REQUEST with status 409 if a plan may not be applied yet. `principal`: who applies it."""
        if self.awaited(plan) and not principal.is_local:
            raise waits_for_approval(plan)

    async def approve(self, group_id: str, plan_id: str, principal: Principal) -> PlanHeader:
        """Approve a plan that is not applied, and return it; one that is approved stays as it is.

        It takes what applying takes: `alter-offsets` on the group and `read` on the topics. Approvals are recorded
        whether or not they are required.
        Raises ProtocolError INVALID_REQUEST: with status 404 if the group has no such plan, with status 409 if the
        caller made it, or if it was applied; GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
        """
        self._groups.check_active()
        principal.require_group(Operation.ALTER_OFFSETS, group_id)
        found = await self._store.find(group_id, plan_id)
        check_readable(await self._store.topics(found.id), principal, known=False)
        if found.state is not PlanState.PLANNED:
            raise wrong_state("approved", found.state)
        if is_maker(found, principal):
            raise own_plan(found)
        if await self._db.transaction(lambda connection: self._write(connection, found, principal)):
            log.info("offset_plan_approved", group_id=group_id, plan_id=found.id, principal=principal.name)
        return await self._store.find(group_id, found.id)

    async def _write(self, connection: Connection, plan: PlanHeader, principal: Principal) -> bool:
        """Whether this is the approval that counts: another may have come first, or the plan was applied meanwhile."""
        now = await self._db.now_ms(connection)
        if await self._store.approve(connection, plan.id, principal.name, now) is None:
            return False
        before, after = {"plan_id": plan.id, "made_by": plan.created_by}, {"state": "approved"}
        act = Act("offsets.approve", "group", plan.group_id, before, after, plan.reason, principal=principal.name)
        await record(self._db, connection, act)
        return True


def is_maker(plan: PlanHeader, principal: Principal) -> bool:
    """Whether the caller made a plan, also if the plan or the call came through a token that the same account owns."""
    return plan.maker == principal.person
