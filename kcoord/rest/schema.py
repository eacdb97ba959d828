"""How REST views describe themselves for the OpenAPI document: one decorator, and the schema of a problem.

Source: http-api.md 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from kcoord.http.problem import MEDIA_TYPE
from kcoord.http.serving import COMMON_ERRORS
from kcoord.protocol.errors import Action, Error
from kcoord.rest.fields import Instant, Int32

F = TypeVar("F", bound=Callable[..., Any])

TOKEN_SCHEME = "token"  # noqa: S105 - the name of a security scheme

CONTROL_ERRORS = (*COMMON_ERRORS, Error.REQUEST_TIMED_OUT)
"""What any operation of the control plane may answer."""


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the document names the token of the Authorization header."""

    target_class = "kcoord.rest.base.BearerAuthentication"
    name = TOKEN_SCHEME

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The security scheme."""
        return {"type": "http", "scheme": "bearer", "description": "An API token: `Authorization: Bearer <token>`."}


class PartitionProblem(serializers.Serializer[Any]):
    """Why an offset plan cannot include a partition."""

    topic = serializers.CharField()
    partition = Int32(min_value=0)
    problem = serializers.CharField(help_text="What is wrong, and how to fix it.")


class LineProblem(serializers.Serializer[Any]):
    """What is wrong with a line of a file of offsets."""

    line = Int32(min_value=1, help_text="Lines count from 1.")
    problem = serializers.CharField(help_text="What is wrong, and how to fix it.")


class NamedPartition(serializers.Serializer[Any]):
    """A partition of a topic."""

    topic = serializers.CharField()
    partition = Int32(min_value=0)


class NamedCoordinator(serializers.Serializer[Any]):
    """The node that coordinates a group."""

    node_id = serializers.CharField(help_text="The node's name.")
    host = serializers.CharField(help_text="The host of `url`.")
    port = Int32(min_value=1, max_value=65535, help_text="The port of `url`.")
    url = serializers.CharField(help_text="The node's address for clients.")


class Problem(serializers.Serializer[Any]):
    """An error response (RFC 9457). The fields after `request_id` are present only where they say something."""

    type = serializers.CharField(help_text="URI that identifies the error.")
    title = serializers.CharField(help_text="The error's name.")
    status = serializers.IntegerField(min_value=400, max_value=599, help_text="The HTTP status.")
    detail = serializers.CharField(help_text="What is wrong, and how to fix it.")
    error = serializers.ChoiceField(
        [error.name for error in Error if error is not Error.NONE], help_text="Kafka's name of the error."
    )
    error_code = Int32(help_text="Kafka's number of the error.")
    retriable = serializers.BooleanField(help_text="The same request may succeed later.")
    action = serializers.ChoiceField([action.value for action in Action], help_text="What the client should do next.")
    request_id = serializers.CharField(help_text="Identifies the request in the log.")
    field = serializers.CharField(required=False, help_text="The field or parameter at fault.")
    member_id = serializers.CharField(
        required=False,
        help_text="Of MEMBER_ID_REQUIRED, and of a join that waited: the id to send next. Other errors of a join "
        "repeat the id that was sent.",
    )
    coordinator = NamedCoordinator(
        required=False, help_text="Of NOT_COORDINATOR, if known: the node to which the request should be sent."
    )
    session_expires_at = Instant(
        required=False, help_text="The request renewed the session in spite of the error, until then."
    )
    problems = PartitionProblem(
        many=True, required=False, help_text="Partitions that an offset plan cannot include, the first 100 of them."
    )
    problem_count = Int32(required=False, min_value=1, help_text="How many `problems` there are.")
    lines = LineProblem(many=True, required=False, help_text="Bad lines of a file of offsets, the first 1000 of them.")
    bad_lines = Int32(required=False, min_value=1, help_text="How many bad lines there are.")
    partitions = NamedPartition(
        many=True,
        required=False,
        help_text="Partitions that keep an offset plan from being applied or undone, the first 100 of them.",
    )
    topics = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Topics that were deleted since the plan was made, or that the caller may not read, the first 100.",
    )
    state = serializers.CharField(required=False, help_text="The state of the plan, which does not allow this.")
    run = serializers.CharField(
        required=False, help_text="Id of the run in progress, which keeps another from starting."
    )
    budget = serializers.CharField(required=False, help_text="Of THROTTLING_QUOTA_EXCEEDED: what was used up.")
    limit = serializers.FloatField(required=False, help_text="The limit of that budget, in its unit.")
    used = serializers.FloatField(required=False, help_text="What the caller has used lately, in the same unit.")


def statuses(errors: Iterable[Error]) -> dict[int, list[Error]]:
    """The errors by their HTTP status."""
    found: dict[int, list[Error]] = {}
    for error in dict.fromkeys(errors):
        found.setdefault(error.status, []).append(error)
    return dict(sorted(found.items()))


def error_texts(errors: Iterable[Error], *, has_body: bool, missing: str = "", conflict: str = "") -> dict[int, str]:
    """The description of each error response of an operation, by status."""
    found = {
        status: "\n".join(f"- `{error.name}` ({error.code}): {error.value.help}" for error in grouped)
        for status, grouped in statuses(errors).items()
    }
    if missing:
        found[404] = f"- `INVALID_REQUEST` (42): {missing}"
    if conflict:
        found[409] = f"- `INVALID_REQUEST` (42): {conflict}"
    if has_body:
        found[413] = "- `INVALID_REQUEST` (42): The body is too large."
        found[415] = "- `INVALID_REQUEST` (42): The body is not declared as JSON in UTF-8."
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter of the path."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def parameter(self) -> OpenApiParameter:
        """In the form drf-spectacular takes."""
        return OpenApiParameter(
            self.name, dict(self.schema), OpenApiParameter.PATH, required=True, description=self.description
        )


GROUP_ID = Name(
    "group_id",
    "Id of the group, percent-encoded.",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^(?!\.{1,2}$)[^/\u0000-\u001F\u007F-\u009F]+$"},
)
TOPIC_NAME = Name(
    "name", "Name of the topic.", {"type": "string", "minLength": 1, "maxLength": 249, "pattern": r"^[a-zA-Z0-9._-]+$"}
)


def describe(
    operation_id: str,
    summary: str,
    *,
    tag: str,
    response: Any,
    status: int = 200,
    request: Any = None,
    path: Sequence[Name] = (),
    query: type[serializers.Serializer[Any]] | None = None,
    errors: Sequence[Error] = (),
    examples: Sequence[OpenApiExample] = (),
    description: str = "",
    missing: str = "",
    conflict: str = "",
) -> Callable[[F], F]:
    """Decorator of a view's method: what the document says about it.

    `response` None: no body. `missing`, `conflict`: what a 404 and a 409 mean if no error of the registry covers
    it.
    """
    responses: dict[Any, Any] = {status: OpenApiResponse(response, "Done.")}
    said = error_texts((*CONTROL_ERRORS, *errors), has_body=request is not None, missing=missing, conflict=conflict)
    for code, text in said.items():
        responses[(code, MEDIA_TYPE)] = OpenApiResponse(Problem, text)
    parameters: list[Any] = [name.parameter() for name in path]
    if query is not None:
        parameters.append(query)
    schema = extend_schema(
        operation_id=operation_id,
        summary=summary,
        description=description or summary,
        tags=[tag],
        parameters=parameters,
        request=request,
        responses=responses,
        examples=list(examples),
    )

    def named(method: F) -> F:
        described: F = schema(method)
        described.operation_id = operation_id  # type: ignore[attr-defined]
        return described

    return named
