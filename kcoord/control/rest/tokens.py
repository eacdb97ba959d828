"""API tokens over the REST API (http-api.md 7).

A caller that creates tokens can grant any right, so this requires a token with `admin` on every resource of every kind.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from kcoord.access.rights import Permission
from kcoord.access.tokens import MOST_OVERLAP_MS, NAME_MAX, Rule, create_token, delete_token, rotate_token
from kcoord.control.rest.answers import Answer, Instant, NextCursor, doc, one_of, shown
from kcoord.control.rest.fields import Choice, InstantInput, Number, PageQuery, StrictSerializer, Text
from kcoord.control.rest.schema import Name, describe
from kcoord.control.rest.views import ControlView, path_name, written_in_time
from kcoord.database.paging import Page
from kcoord.door.http.problem import RequestRefused, invalid
from kcoord.models import AccessRule, ApiToken
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error

MOST_RULES = 1_000
TOKEN_NAME_MAX = 200
_ID = re.compile(rb"[1-9][0-9]{0,17}")

TOKEN_ID = Name("id", "Id of the token.", {"type": "integer", "minimum": 1})


class RuleView(Answer):
    """A rule of a token."""

    effect: Annotated[str, one_of(AccessRule.Effect.values)]
    operation: Annotated[str, one_of(AccessRule.Operation.values)]
    resource: Annotated[str, one_of(AccessRule.Resource.values)]
    pattern: Annotated[str, one_of(AccessRule.Pattern.values)]
    name: str


class NewRule(StrictSerializer):
    """What a token may do: an operation on a name, or on all names with a prefix; the empty prefix matches all.

    A rule whose effect is `deny` wins over those that allow.
    """

    effect = Choice(AccessRule.Effect.values, required=False, default=AccessRule.Effect.ALLOW.value)
    operation = Choice(AccessRule.Operation.values)
    resource = Choice(AccessRule.Resource.values)
    pattern = Choice(AccessRule.Pattern.values, required=False, default=AccessRule.Pattern.LITERAL.value)
    name = Text(allow_blank=True, max_length=NAME_MAX)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The rule. Raises ValidationError for an empty literal, since no resource has an empty name."""
        if not attrs["name"] and attrs["pattern"] == AccessRule.Pattern.LITERAL.value:
            raise serializers.ValidationError(
                {"name": "the name is missing; use pattern `prefix` with an empty name for all names"}
            )
        return attrs


class TokenRequest(StrictSerializer):
    """A token to be created."""

    name = Text(max_length=TOKEN_NAME_MAX, help_text="Who or what uses it; unique.")
    rules = serializers.ListField(child=NewRule(), min_length=1, max_length=MOST_RULES)
    expires_at = InstantInput(required=False, allow_null=True, default=None, help_text="null: never.")


class TokenView(Answer):
    """A token without its secret."""

    id: int
    name: str
    prefix: Annotated[str, doc("The first characters of the secret.")]
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Annotated[Instant | None, doc("Noted about once a minute; null: not yet.")]
    previous_until: Annotated[Instant | None, doc("Until then the secret before the last rotation works, too.")]
    rules: list[RuleView]


class CreatedToken(TokenView):
    """A token that was just created."""

    secret: Annotated[str, doc("Shown only once and never stored.")]


class Rotation(StrictSerializer):
    """How a token is rotated."""

    overlap_ms = Number(
        min_value=0,
        max_value=MOST_OVERLAP_MS,
        required=False,
        default=0,
        help_text="How long the present secret stays valid beside the new one; at most 30 days.",
    )


class TokenPage(Answer):
    """A page of tokens, oldest first."""

    tokens: list[TokenView]
    next_cursor: NextCursor


class TokenAdminView(ControlView):
    """What the token views share."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the calling token, then that it may manage tokens."""
        super().initial(request, *args, **kwargs)
        self.principal.require_administrator("managing tokens")


class TokensView(TokenAdminView):
    """`/v1/tokens`."""

    @describe(
        "listTokens",
        "List tokens",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        query=PageQuery,
        response=TokenPage,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
    )
    def get(self, request: Request) -> Response:
        """A page of tokens."""
        query = self.query(PageQuery)
        page = self.by_id(ApiToken.objects.prefetch_related("rules"), query)
        return self.listed(TokenPage, "tokens", Page([_shown(token) for token in page.items], page.next_cursor))

    @describe(
        "createToken",
        "Create a token",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        audit="token.create",
        request=TokenRequest,
        response=CreatedToken,
        status=201,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        examples=[
            OpenApiExample(
                "Member of the groups of one team",
                {
                    "name": "billing",
                    "rules": [
                        {"operation": "read", "resource": "group", "pattern": "prefix", "name": "billing-"},
                        {"operation": "read", "resource": "topic", "pattern": "literal", "name": "orders"},
                    ],
                    "expires_at": None,
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Create a token."""
        self.query()
        given = self.given(TokenRequest)
        if given["expires_at"] is not None and given["expires_at"] <= self.service(_now):
            raise invalid("expires_at: must be in the future", "expires_at")
        rules = [Rule(**rule) for rule in given["rules"]]
        try:
            with written_in_time():
                made = create_token(given["name"], rules, given["expires_at"])
        except ValueError as error:
            raise invalid(f"name: {error}", "name") from None
        token = ApiToken.objects.prefetch_related("rules").get(name=made.name)
        content = shown(CreatedToken, {**_shown(token), "secret": made.secret})
        return Response(content, status=201, headers={"Cache-Control": "no-store"})


class TokenDetailView(TokenAdminView):
    """`/v1/tokens/{id}`."""

    @describe(
        "deleteToken",
        "Delete a token",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        audit="token.delete",
        path=[TOKEN_ID],
        response=None,
        status=204,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        missing="There is no such token.",
        description="Servers stop accepting it within `token.cache.ms`.",
    )
    def delete(self, request: Request, id: str) -> Response:
        """Delete a token with its rules."""
        self.query()
        raw = path_name(request, 2, id, lambda segment: segment.decode("ascii", "replace"))
        deleted = False
        if _ID.fullmatch(raw.encode()):
            with written_in_time():
                deleted = delete_token(int(raw))
        if not deleted:
            raise _unknown(raw)
        return Response(status=204)


class TokenRotationView(TokenAdminView):
    """`/v1/tokens/{id}/rotate`."""

    @describe(
        "rotateToken",
        "Give a token a new secret",
        tag="tokens",
        takes=Permission.ADMIN_EVERYTHING,
        audit="token.rotate",
        path=[TOKEN_ID],
        request=Rotation,
        response=CreatedToken,
        errors=(Error.CLUSTER_AUTHORIZATION_FAILED,),
        missing="There is no such token.",
        description="Name, rules and expiry stay. The present secret is valid for another `overlap_ms`, one before it "
        "no longer. Servers notice within `token.cache.ms`.",
        examples=[OpenApiExample("An hour to exchange it", {"overlap_ms": 3_600_000}, request_only=True)],
    )
    def post(self, request: Request, id: str) -> Response:
        """Rotate a token."""
        self.query()
        given = self.given(Rotation)
        raw = path_name(request, 2, id, lambda segment: segment.decode("ascii", "replace"))
        made = None
        if _ID.fullmatch(raw.encode()):
            with written_in_time():
                made = rotate_token(int(raw), given["overlap_ms"])
        if made is None:
            raise _unknown(raw)
        token = ApiToken.objects.prefetch_related("rules").get(pk=int(raw))
        content = shown(CreatedToken, {**_shown(token), "secret": made.secret})
        return Response(content, headers={"Cache-Control": "no-store"})


def _unknown(raw: str) -> RequestRefused:
    return RequestRefused(404, f"no token has the id {raw[:50]!r}; GET /v1/tokens lists them")


async def _now(runtime: Runtime) -> int:
    async with runtime.db.connection() as connection:
        return await runtime.db.now_ms(connection)


def _shown(token: ApiToken) -> dict[str, Any]:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "previous_until": token.previous_until,
        "rules": sorted(token.rules.all(), key=lambda rule: rule.pk),
    }
