"""The description of an endpoint, from which both the OpenAPI document and the server are built."""

from __future__ import annotations

from dataclasses import dataclass

from kcoord.protocol.errors import Error


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter of the query string."""

    name: str
    description: str
    required: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of the data plane.

    `path` is a template with at most one of `{group_id}` and `{transactional_id}` in it; `request` and `response` are
    msgspec structs, `request` None if it has no body; `errors` are those specific to the call, besides those that
    every endpoint can answer (`COMMON_ERRORS`). `takes_empty_group_id`: the call answers for the empty group id with
    its own error.
    """

    method: str
    path: str
    operation_id: str
    summary: str
    response: type
    request: type | None = None
    errors: tuple[Error, ...] = ()
    query: tuple[Query, ...] = ()
    description: str = ""
    takes_empty_group_id: bool = False


COMMON_ERRORS = (
    Error.INVALID_REQUEST,
    Error.SASL_AUTHENTICATION_FAILED,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.THROTTLING_QUOTA_EXCEEDED,
    Error.UNKNOWN_SERVER_ERROR,
)
"""What any endpoint may answer."""
