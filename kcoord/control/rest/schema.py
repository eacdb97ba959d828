"""How REST views describe themselves for the OpenAPI document: one decorator, and the schema of a problem.

Source: http-api.md 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from msgspec import Meta
from rest_framework import serializers

from kcoord.access.rights import Permission
from kcoord.control.rest.answers import Answer, Double, Instant, Int32, Natural32, doc, one_of, reference
from kcoord.door.http.problem import MEDIA_TYPE
from kcoord.door.http.serving import COMMON_ERRORS
from kcoord.door.http.types import INT32_MAX
from kcoord.protocol.errors import Action, Error

F = TypeVar("F", bound=Callable[..., Any])

TOKEN_SCHEME = "token"  # noqa: S105 - the name of a security scheme

CONTROL_ERRORS = (*COMMON_ERRORS, Error.REQUEST_TIMED_OUT)
"""What any operation of the control plane may answer."""


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the document names the token of the Authorization header."""

    target_class = "kcoord.control.rest.base.BearerAuthentication"
    name = TOKEN_SCHEME

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The security scheme."""
        return {"type": "http", "scheme": "bearer", "description": "An API token: `Authorization: Bearer <token>`."}


class PartitionProblem(Answer):
    """Why an offset plan cannot include a partition."""

    topic: str
    partition: Natural32
    problem: Annotated[str, doc("What is wrong, and how to fix it.")]


class PartitionError(Answer):
    """The error that a partition has by itself in a commit that is refused."""

    topic: Annotated[str | None, doc("null: not known of a topic that was named by its id.")]
    topic_id: Annotated[str | None, doc("null: not known of a topic that was named by its name.")]
    partition: Int32
    error: Annotated[str, doc("UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID or TOPIC_AUTHORIZATION_FAILED.")]
    error_code: Int32


class LineProblem(Answer):
    """What is wrong with a line of a file of offsets."""

    line: Annotated[int, Meta(ge=1, le=INT32_MAX, description="Lines count from 1.")]
    problem: Annotated[str, doc("What is wrong, and how to fix it.")]


class NamedPartition(Answer):
    """A partition of a topic."""

    topic: str
    partition: Natural32


class NamedCoordinator(Answer):
    """The node that coordinates a group."""

    node_id: Annotated[str, doc("The node's name.")]
    host: Annotated[str, doc("The host of `url`.")]
    port: Annotated[int, Meta(ge=1, le=65535, description="The port of `url`.")]
    url: Annotated[str, doc("The node's address for clients.")]


class _AnyProblem(TypedDict):
    type: Annotated[str, doc("URI that identifies the error.")]
    title: Annotated[str, doc("The error's name.")]
    status: Annotated[int, Meta(ge=400, le=599, description="The HTTP status.")]
    detail: Annotated[str, doc("What is wrong, and how to fix it.")]
    error: Annotated[
        str, one_of([error.name for error in Error if error is not Error.NONE], "Kafka's name of the error.")
    ]
    error_code: Annotated[Int32, doc("Kafka's number of the error.")]
    retriable: Annotated[bool, doc("The same request may succeed later.")]
    action: Annotated[str, one_of([action.value for action in Action], "What the client should do next.")]
    request_id: Annotated[str, doc("Identifies the request in the log.")]


class Problem(_AnyProblem, total=False):
    """An error response (RFC 9457). The fields after `request_id` are present only where they say something."""

    field: Annotated[str, doc("The field or parameter at fault.")]
    member_id: Annotated[
        str,
        doc(
            "Of MEMBER_ID_REQUIRED, and of a join that waited: the id to send next. Other errors of a join repeat "
            "the id that was sent."
        ),
    ]
    coordinator: Annotated[
        NamedCoordinator,
        doc("Of NOT_COORDINATOR, if known: the node to which the request should be sent."),
    ]
    session_expires_at: Annotated[Instant, doc("The request renewed the session in spite of the error, until then.")]
    problems: Annotated[
        list[PartitionProblem],
        doc("Partitions that an offset plan cannot include, the first 100 of them."),
    ]
    problem_count: Annotated[int, Meta(ge=1, le=INT32_MAX, description="How many `problems` there are.")]
    partition_errors: Annotated[
        list[PartitionError],
        doc("Partitions of a refused commit that do not exist or may not be read, with their own error."),
    ]
    lines: Annotated[list[LineProblem], doc("Bad lines of a file of offsets, the first 1000 of them.")]
    bad_lines: Annotated[int, Meta(ge=1, le=INT32_MAX, description="How many bad lines there are.")]
    partitions: Annotated[
        list[NamedPartition],
        doc("Partitions that keep an offset plan from being applied or undone, the first 100 of them."),
    ]
    topics: Annotated[
        list[str],
        doc("Topics that were deleted since the plan was made, or that the caller may not read, the first 100."),
    ]
    state: Annotated[str, doc("The state of the plan, which does not allow this.")]
    run: Annotated[str, doc("Id of the run in progress, which keeps another from starting.")]
    budget: Annotated[str, doc("Of THROTTLING_QUOTA_EXCEEDED: what was used up.")]
    limit: Annotated[Double, doc("The limit of that budget, in its unit.")]
    used: Annotated[Double, doc("What the caller has used lately, in the same unit.")]


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
    takes: Permission,
    response: type | str | None,
    audit: str = "request",
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

    `takes`: what the caller needs, which `ControlView.require` or the service checks.
    `response`: its declaration; None: no body. `missing`, `conflict`: what a 404 and a 409 mean if no error of the
    registry covers it. `audit`: the act of `kcoord.access.audit.acts` that the operation performs.
    """
    responses: dict[Any, Any] = {status: OpenApiResponse(response and reference(response), "Done.")}
    said = error_texts((*CONTROL_ERRORS, *errors), has_body=request is not None, missing=missing, conflict=conflict)
    for code, text in said.items():
        responses[(code, MEDIA_TYPE)] = OpenApiResponse(reference(Problem), text)
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
        described.operation_id, described.audit, described.takes = operation_id, audit, takes  # type: ignore[attr-defined]
        return described

    return named
