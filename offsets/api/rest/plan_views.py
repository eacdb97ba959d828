"""Offset plans: create, review, approve, apply, undo (http-api.md 4).

Reading plans requires `describe` on the group; lines on topics that the caller may not describe are left out. Creating,
approving, applying and undoing require `alter-offsets` on the group and `read` on every topic of the plan.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from groups.api.rest.group_views import NAMED, NamedGroupView
from kcoord.access.rights import Permission, Principal, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.schema import GROUP_ID, Name, describe
from kcoord.database.paging import DEFAULT_LIMIT, Page
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.resets.offset_file import read_offset_file
from kcoord.resets.strategies import Reset, Scope, Strategy
from offsets.api.rest import plan_serializers as s
from offsets.core.plan_types import Line
from offsets.plans.approval import PlanApproval
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader, seen_plans

PLAN_ID = Name("plan_id", "Id of the plan.", {"type": "string", "format": "uuid"})
_DENIED = (Error.GROUP_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED)
_MISSING = "The group has no such plan."
_EXAMPLE = {
    "strategy": "to-offset",
    "topics": [{"name": "orders", "partitions": [0, 1]}],
    "offset": 5,
    "reason": "process the bad batch again",
}

Work = Callable[[Runtime], Awaitable[PlanHeader]]
Step = Callable[[str, str, Principal], Awaitable[PlanHeader]]


class PlanBase(NamedGroupView):
    """Shared by the views of one plan."""

    def answer(
        self, work: Work, *, cursor: str | None = None, limit: int = 0, risky: bool = False, status: int = 200
    ) -> Response:
        """The plan that `work` returns, with a page of its lines."""
        principal, visible = self.principal, self.visible(Resource.TOPIC)

        async def read(runtime: Runtime) -> tuple[PlanHeader, Page[Line]]:
            (found,) = await seen_plans(runtime, [await work(runtime)], principal)
            return found, await runtime.get(PlanService).lines(
                found, cursor=cursor, limit=limit or DEFAULT_LIMIT, visible=visible, risky=risky
            )

        found, page = self.service(read)
        content = {**asdict(found), "partitions": page.items, "next_cursor": page.next_cursor}
        return Response(shown(s.PlanView, content), status=status)

    def stepped(self, step: Callable[[Runtime], Step], plan_id: str) -> Response:
        """The plan after a step that the request asks for by its path alone. Raises INVALID_REQUEST."""
        self.query()
        if self.request.data:
            raise invalid("the body must be empty")
        principal = self.principal
        return self.answer(lambda runtime: step(runtime)(self.group_id, plan_id, principal))


class PlanOffsetsView(PlanBase):
    """`/v1/groups/{group_id}/offsets/plan`."""

    @describe(
        "planOffsets",
        "Plan a reset of a group's offsets",
        tag="offsets",
        takes=Permission.ALTER_GROUP,
        audit="offsets.plan",
        path=[GROUP_ID],
        request=s.PlanRequest,
        response=s.PlanView,
        status=201,
        errors=(*NAMED, *_DENIED, Error.UNKNOWN_TOPIC_OR_PARTITION),
        description="Computes and stores a plan; nothing is committed until it is applied. The group may have "
        "members and need not exist. If any partition cannot be planned, the whole plan is refused; "
        "`problems` lists these partitions. The response has the first page of lines; GET the plan with "
        "`cursor` for the others.",
        examples=[OpenApiExample("Reset to an offset", _EXAMPLE, request_only=True)],
    )
    def post(self, request: Request, group_id: str) -> Response:
        """Create a plan."""
        self.query()
        self.require(self.group_id)
        given = self.given(s.PlanRequest)
        reset = _reset(given, self.group_id)
        principal = self.principal
        return self.answer(
            lambda runtime: runtime.get(PlanService).create(self.group_id, reset, principal, given["reason"]),
            status=201,
        )


class PlansView(NamedGroupView):
    """`/v1/groups/{group_id}/offsets/plans`."""

    @describe(
        "listOffsetPlans",
        "List the offset plans of a group, newest first",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID],
        query=s.PlanQuery,
        response=s.PlanPage,
        errors=NAMED,
        description="Plans outlive their group; they are kept as long as the commit history "
        "(`offsets.journal.retention.days`).",
    )
    def get(self, request: Request, group_id: str) -> Response:
        """A page of plans."""
        query = self.query(s.PlanQuery)
        principal = self.principal

        async def read(runtime: Runtime) -> Page[PlanHeader]:
            page = await runtime.get(PlanService).recent(self.group_id, **query)
            return Page(await seen_plans(runtime, page.items, principal), page.next_cursor)

        return self.listed(s.PlanPage, "plans", self.service(read), group_id=self.group_id)


class PlanDetailView(PlanBase):
    """`/v1/groups/{group_id}/offsets/plans/{plan_id}`."""

    @describe(
        "getOffsetPlan",
        "Get an offset plan with a page of its lines",
        tag="offsets",
        takes=Permission.DESCRIBE_GROUP,
        path=[GROUP_ID, PLAN_ID],
        query=s.LinesQuery,
        response=s.PlanView,
        errors=NAMED,
        missing=_MISSING,
    )
    def get(self, request: Request, group_id: str, plan_id: str) -> Response:
        """One plan."""
        query = self.query(s.LinesQuery)
        return self.answer(
            lambda runtime: runtime.get(PlanService).get(self.group_id, plan_id),
            cursor=query.get("cursor"),
            limit=query["limit"],
            risky=query["risky"],
        )


class ApplyPlanView(PlanBase):
    """`/v1/groups/{group_id}/offsets/plans/{plan_id}/apply`."""

    @describe(
        "applyOffsetPlan",
        "Apply an offset plan",
        tag="offsets",
        takes=Permission.ALTER_GROUP,
        audit="offsets.apply",
        path=[GROUP_ID, PLAN_ID],
        response=s.PlanView,
        errors=(*NAMED, *_DENIED, Error.NON_EMPTY_GROUP, Error.UNSTABLE_OFFSET_COMMIT),
        missing=_MISSING,
        description="Commits all new offsets of the plan or none. Refused while the group has members "
        "(NON_EMPTY_GROUP), while a transaction on one of its partitions is open (UNSTABLE_OFFSET_COMMIT), and with "
        "INVALID_REQUEST and status 409 if the plan waits for approval, was already applied, or if since it was made "
        "an offset on one of its partitions was committed or removed, or its topic deleted.",
    )
    def post(self, request: Request, group_id: str, plan_id: str) -> Response:
        """Apply a plan."""
        return self.stepped(lambda runtime: runtime.get(PlanService).apply, plan_id)


class ApprovePlanView(PlanBase):
    """`/v1/groups/{group_id}/offsets/plans/{plan_id}/approve`."""

    @describe(
        "approveOffsetPlan",
        "Approve an offset plan that someone else made",
        tag="offsets",
        takes=Permission.ALTER_GROUP,
        audit="offsets.approve",
        path=[GROUP_ID, PLAN_ID],
        response=s.PlanView,
        errors=(*NAMED, *_DENIED),
        missing=_MISSING,
        description="With `plans.second.person` a plan can be applied only after this. The first approval counts; "
        "approving once more changes nothing. Refused with INVALID_REQUEST and status 409 if the caller, or another "
        "token of the same account, made the plan, or if it was applied.",
    )
    def post(self, request: Request, group_id: str, plan_id: str) -> Response:
        """Approve a plan."""
        return self.stepped(lambda runtime: runtime.get(PlanApproval).approve, plan_id)


class UndoPlanView(PlanBase):
    """`/v1/groups/{group_id}/offsets/plans/{plan_id}/undo`."""

    @describe(
        "undoOffsetPlan",
        "Undo an offset plan that was applied",
        tag="offsets",
        takes=Permission.ALTER_GROUP,
        audit="offsets.undo",
        path=[GROUP_ID, PLAN_ID],
        response=s.PlanView,
        errors=(*NAMED, *_DENIED, Error.NON_EMPTY_GROUP, Error.UNSTABLE_OFFSET_COMMIT),
        missing=_MISSING,
        description="Restores the exact offsets from before the plan was applied, on all of its partitions or none. "
        "Refused like applying; with INVALID_REQUEST and status 409 also if an offset on one of its "
        "partitions was committed or removed since it was applied.",
    )
    def post(self, request: Request, group_id: str, plan_id: str) -> Response:
        """Undo a plan."""
        return self.stepped(lambda runtime: runtime.get(PlanService).undo, plan_id)


def _reset(given: Mapping[str, Any], group_id: str) -> Reset:
    """The reset that a request asks for. A file is read here, not on the event loop, because it may take a while."""
    strategy = Strategy(given["strategy"])
    csv = given.get("csv")
    # A file that does not belong to the strategy is not read: its presence is the error.
    offsets = (
        None if csv is None else read_offset_file(csv).of_group(group_id) if strategy is Strategy.FROM_FILE else {}
    )
    if given.get("from_group") is not None:
        check_group_id(given["from_group"])
    return Reset(
        strategy,
        _scope(given.get("topics")),
        offset=given.get("offset"),
        by=given.get("by"),
        at=given.get("at"),
        duration=given.get("duration"),
        from_group=given.get("from_group"),
        csv=offsets,
        clamp=given["clamp"],
        keep_unknown=given["keep_unknown"],
    )


def _scope(topics: list[Mapping[str, Any]] | None) -> Scope:
    if topics is None:
        return None
    return tuple(
        (topic["name"], None if topic.get("partitions") is None else tuple(topic["partitions"])) for topic in topics
    )
