"""The rules of accounts, groups of people and tokens over the REST API (http-api.md 7).

Differs from Kafka: changing rules takes `admin` on everything, not on the cluster alone, since those who add rules can
give themselves any right. Managing tokens takes the same.
"""

from __future__ import annotations

from typing import Annotated, Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from kcoord.access import store
from kcoord.access.rights import Permission
from kcoord.access.roles import ROLES, role
from kcoord.access.store import HolderName, RuleFilter, UnknownHolder
from kcoord.access.tokens import NAME_MAX, Rule
from kcoord.control.rest.answers import Answer, NextCursor, one_of, shown
from kcoord.control.rest.fields import Choice, PageQuery, StrictSerializer, Text
from kcoord.control.rest.schema import describe
from kcoord.control.rest.tokens import MOST_RULES, NewRule
from kcoord.control.rest.views import ControlView, written_in_time
from kcoord.database.paging import Page
from kcoord.door.http.problem import RequestRefused, invalid
from kcoord.models import AccessRule
from kcoord.protocol.errors import Error

PATTERNS = ("literal", "prefix", "any", "match")
PRINCIPAL_MAX = 300


class AclFilter(StrictSerializer):
    """Which rules; without a parameter, all."""

    principal = Text(required=False, max_length=PRINCIPAL_MAX, help_text="`User:name`, `Group:name` or `Token:name`.")
    effect = Choice(AccessRule.Effect.values, required=False, help_text="Rules that allow, or that deny.")
    operation = Choice(AccessRule.Operation.values, required=False, help_text="Rules for this operation.")
    resource = Choice(AccessRule.Resource.values, required=False, help_text="Rules for this kind of resource.")
    name = Text(
        required=False,
        allow_blank=True,
        max_length=NAME_MAX,
        help_text="Name or prefix; `pattern` says how to compare.",
    )
    pattern = Choice(
        PATTERNS,
        required=False,
        default="any",
        help_text="How `name` is compared: with rules of this pattern, of `any` pattern, or with `match` all "
        "that are about the resource of this name.",
    )


class AclQuery(AclFilter, PageQuery):
    """A page of the rules that match."""


class NewAcls(StrictSerializer):
    """Rules for one holder: either `rules`, or the `role` that they make up, on names that begin with `prefix`."""

    principal = Text(max_length=PRINCIPAL_MAX, help_text="`User:name`, `Group:name` (of accounts) or `Token:name`.")
    rules = serializers.ListField(child=NewRule(), required=False, min_length=1, max_length=MOST_RULES)
    role = Choice(tuple(ROLES), required=False)
    prefix = Text(required=False, allow_blank=True, default="", max_length=NAME_MAX, help_text="With `role` only.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The rules. Raises ValidationError unless there is either `rules` or `role`."""
        if ("rules" in attrs) == ("role" in attrs):
            raise serializers.ValidationError({"rules": "send either rules or a role"})
        if attrs["prefix"] and "role" not in attrs:
            raise serializers.ValidationError({"prefix": "it belongs to a role; rules have a name and a pattern each"})
        return attrs


class AclView(Answer):
    """A rule with its holder."""

    id: int
    principal: str
    effect: Annotated[str, one_of(AccessRule.Effect.values)]
    operation: Annotated[str, one_of(AccessRule.Operation.values)]
    resource: Annotated[str, one_of(AccessRule.Resource.values)]
    pattern: Annotated[str, one_of(AccessRule.Pattern.values)]
    name: str


class AclPage(Answer):
    """A page of rules, oldest first."""

    acls: list[AclView]
    next_cursor: NextCursor


class AclList(Answer):
    """The rules that were added, or removed."""

    acls: list[AclView]


class AclsView(ControlView):
    """`/v1/acls`."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the calling token, then that it may manage rules."""
        super().initial(request, *args, **kwargs)
        self.principal.require_administrator("managing rules")

    @describe(
        "listAcls",
        "List rules",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        query=AclQuery,
        response=AclPage,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
    )
    def get(self, request: Request) -> Response:
        """A page of the rules that match."""
        query = self.query(AclQuery)
        page = self.by_id(store.listed(_filter(query)), query)
        return self.listed(AclPage, "acls", Page([_shown(row) for row in page.items], page.next_cursor))

    @describe(
        "createAcls",
        "Add rules",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        audit="rule.add",
        request=NewAcls,
        response=AclList,
        status=201,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        missing="There is no such principal.",
        description="Rules that the holder has already are not added, and not in the answer.",
        examples=[
            OpenApiExample(
                "Operators of the groups of one team",
                {"principal": "Group:billing-operators", "role": "operator", "prefix": "billing-"},
                request_only=True,
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Add rules."""
        self.query()
        given = self.given(NewAcls)
        holder = _holder(given["principal"])
        try:
            rules = (
                role(given["role"]).rules(given["prefix"])
                if "role" in given
                else [Rule(**rule) for rule in given["rules"]]
            )
            with written_in_time():
                added = store.add_rules(holder, rules)
        except UnknownHolder as error:
            raise RequestRefused(404, f"principal: {error}; create it first") from None
        except ValueError as error:
            raise invalid(str(error), str(error).partition(":")[0]) from None
        return Response(shown(AclList, {"acls": [_shown(row) for row in added]}), status=201)

    @describe(
        "deleteAcls",
        "Remove rules",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        audit="rule.remove",
        query=AclFilter,
        response=AclList,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        description="Removes the rules that match, all of them or none; at least one parameter is needed.",
    )
    def delete(self, request: Request) -> Response:
        """Remove the rules that match."""
        query = self.query(AclFilter)
        wanted = _filter(query)
        if wanted.is_empty:
            raise invalid("principal: say which rules to remove, by at least one parameter", "principal")
        with written_in_time():
            removed = [_shown(row) for row in store.remove_rules(store.listed(wanted))]
        return Response(shown(AclList, {"acls": removed}))


def _holder(text: str) -> HolderName:
    try:
        return store.parse_holder(text)
    except ValueError as error:
        raise invalid(f"principal: {error}", "principal") from None


def _filter(query: Any) -> RuleFilter:
    return RuleFilter(
        [_holder(query["principal"])] if "principal" in query else None,
        query.get("effect"),
        [query["operation"]] if "operation" in query else None,
        query.get("resource"),
        query.get("name"),
        query["pattern"],
    )


def _shown(row: AccessRule) -> dict[str, Any]:
    return {
        "id": row.pk,
        "principal": str(store.holder_of(row)),
        "effect": row.effect,
        "operation": row.operation,
        "resource": row.resource,
        "pattern": row.pattern,
        "name": row.name,
    }
