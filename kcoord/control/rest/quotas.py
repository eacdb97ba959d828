"""Quotas over the REST API (http-api.md 6): read with `describe`, changed with `admin` on the cluster."""

from __future__ import annotations

from typing import Annotated, Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from kcoord.access.quotas.budgets import BY_KEY, Budget
from kcoord.access.quotas.quotas import Kind
from kcoord.access.quotas.stored import LARGEST, NAME_MAX, change, checked_limit
from kcoord.access.rights import Permission
from kcoord.control.rest.answers import Answer, Double, Instant, Natural, NextCursor, doc, one_of, shown
from kcoord.control.rest.fields import Choice, PageQuery, StrictSerializer, Text
from kcoord.control.rest.schema import describe
from kcoord.control.rest.views import ControlView, written_in_time
from kcoord.door.http.problem import invalid
from kcoord.models import Quota
from kcoord.models import Throttled as ThrottledRow
from kcoord.protocol.errors import Error

KINDS = [kind.value for kind in Kind]
BUDGETS = list(BY_KEY)


class LimitNumber(serializers.FloatField):
    """A limit: a JSON number, null for none."""

    default_error_messages = {"invalid": "must be a number above 0, or null for no limit"}

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            required=False,
            allow_null=True,
            min_value=0,
            max_value=LARGEST,
            help_text=f"{budget.value.unit}; null: none.",
        )

    def to_internal_value(self, data: Any) -> float:
        """The number."""
        if isinstance(data, bool) or not isinstance(data, int | float) or not data > 0:
            self.fail("invalid")
        return super().to_internal_value(data)


class LimitsToSet(StrictSerializer):
    """Limits by budget, each in the unit of its budget; null: no limit."""

    def get_fields(self) -> dict[str, Any]:
        """One for each budget."""
        return {budget.key: LimitNumber(budget) for budget in Budget}


class QuotaChange(StrictSerializer):
    """Limits to set and to remove of one token, user, group of people, or the default."""

    kind = Choice(KINDS)
    name = Text(required=False, default="", allow_blank=True, max_length=NAME_MAX, help_text="Empty for the default.")
    set = LimitsToSet(required=False)
    remove = serializers.ListField(
        child=Choice(BUDGETS), required=False, default=list, max_length=len(BUDGETS), help_text="Budgets."
    )


class QuotaView(Answer):
    """One limit."""

    kind: Annotated[str, one_of(KINDS)]
    name: str
    budget: Annotated[str, one_of(BUDGETS)]
    limit: Annotated[Double | None, doc("In the budget's unit; null: no limit.")]


class BudgetView(Answer):
    """A budget and the limit of principals without a quota."""

    budget: Annotated[str, one_of(BUDGETS)]
    unit: str
    meaning: str
    limit: Annotated[Double | None, doc("null: no limit.")]


class QuotaPage(Answer):
    """All budgets, and a page of the quotas."""

    budgets: list[BudgetView]
    quotas: list[QuotaView]
    next_cursor: NextCursor


class Quoted(Answer):
    """The limits of one token, user, group of people, or the default, after a change."""

    quotas: list[QuotaView]


class ThrottledView(Answer):
    """A principal that was throttled. `times` is noted about once a minute."""

    kind: Annotated[str, one_of(KINDS)]
    name: str
    budget: Annotated[str, one_of(BUDGETS)]
    limit: Annotated[Double, doc("In the budget's unit.")]
    used: Annotated[Double, doc("In the same unit, when it was throttled last.")]
    times: Annotated[Natural, doc("Requests since `since`, as far as they are noted.")]
    since: Instant
    throttled_at: Instant


class ThrottledList(Answer):
    """Who was throttled lately, the last one first."""

    throttled: list[ThrottledView]


MOST_THROTTLED = 100


class QuotasView(ControlView):
    """`/v1/quotas`."""

    @describe(
        "listQuotas",
        "List quotas",
        tag="quotas",
        takes=Permission.DESCRIBE_CLUSTER,
        query=PageQuery,
        response=QuotaPage,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        description="Takes `describe` on the cluster. The most specific quota counts: that of a token, of the user who "
        "owns it, of the groups that the user is in (the highest limit), the default, the limit of the budget itself.",
    )
    def get(self, request: Request) -> Response:
        """A page of quotas."""
        query = self.query(PageQuery)
        self.require()
        page = self.by_id(Quota.objects.all(), query)
        budgets = [
            {
                "budget": budget.key,
                "unit": budget.value.unit,
                "meaning": budget.value.meaning,
                "limit": budget.value.limit,
            }
            for budget in Budget
        ]
        return self.listed(QuotaPage, "quotas", page, budgets=budgets)

    @describe(
        "alterQuotas",
        "Set and remove limits",
        tag="quotas",
        takes=Permission.ADMIN_CLUSTER,
        audit="quota.change",
        request=QuotaChange,
        response=Quoted,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        description="Takes `admin` on the cluster. All of it is done or nothing; every server is told at once.",
        examples=[
            OpenApiExample(
                "Twice as much CPU time for every token",
                {"kind": "default", "set": {"cpu": 1000}, "remove": ["bytes"]},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Change the quota of one entity."""
        self.query()
        given = self.given(QuotaChange)
        self.require()
        kind, name = Kind(given["kind"]), given["name"]
        wanted = {
            BY_KEY[key]: None if limit is None else checked_limit(limit, BY_KEY[key])
            for key, limit in given.get("set", {}).items()
        }
        try:
            with written_in_time():
                change(kind, name, wanted, frozenset(BY_KEY[key] for key in given["remove"]))
        except ValueError as error:
            raise invalid(str(error), str(error).partition(":")[0]) from None
        now = Quota.objects.filter(kind=kind.value, name=name).order_by("id")
        return Response(shown(Quoted, {"quotas": list(now)}))


class ThrottledPrincipalsView(ControlView):
    """`/v1/quotas/throttled`."""

    @describe(
        "listThrottled",
        "List principals that were throttled lately",
        tag="quotas",
        takes=Permission.DESCRIBE_CLUSTER,
        response=ThrottledList,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        description=f"Takes `describe` on the cluster. The last {MOST_THROTTLED} of the last hour, of all servers.",
    )
    def get(self, request: Request) -> Response:
        """Who was throttled."""
        self.query()
        self.require()
        found = ThrottledRow.objects.order_by("-throttled_at", "kind", "name", "budget")[:MOST_THROTTLED]
        return Response(shown(ThrottledList, {"throttled": list(found)}))
