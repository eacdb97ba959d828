"""Operations: what the data plane can be asked for, each a description and a function that answers a typed call.

Both the OpenAPI document and the server are built from the description. An operation returns its answer, or something
to await: a coroutine, which becomes a task, or `Later` (`kcoord.process.off_loop`), which does not. How a request
becomes a call is in `kcoord.door.http.door`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kcoord.access.quotas.budgets import UNMETERED, Metering
from kcoord.access.rights import Permission, Principal
from kcoord.process.runtime import Runtime
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
    its own error. `takes`: what the caller needs; the function that answers checks it.
    """

    method: str
    path: str
    operation_id: str
    summary: str
    response: type
    takes: Permission
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


B = TypeVar("B")

NO_QUERY: Mapping[str, Sequence[str]] = {}


class Call(msgspec.Struct, Generic[B], frozen=True):
    """An authenticated request. `query` has every value of each parameter.

    `group_id` and `transactional_id` are "" on paths without one.
    """

    runtime: Runtime
    principal: Principal
    body: B
    group_id: str
    query: Mapping[str, Sequence[str]]
    client_host: str
    transactional_id: str = ""


Handler = Callable[[Call[Any]], msgspec.Struct | Awaitable[msgspec.Struct]]


class Operation:
    """An endpoint with the function that answers it, `run`. Parameters: those of `serve`."""

    def __init__(
        self,
        endpoint: Endpoint,
        run: Handler,
        *,
        waits: bool,
        is_hot: bool,
        is_quick: bool,
        is_big: bool,
        metering: Metering,
    ) -> None:
        self.endpoint = endpoint
        self.run = run
        self.waits = waits
        self.is_hot = is_hot
        self.is_quick = is_quick
        self.is_big = is_big
        self.metering = metering
        self.encode: Callable[[msgspec.Struct], bytes] = msgspec.json.Encoder().encode
        self.decoder: msgspec.json.Decoder[Any] | None = (
            None if endpoint.request is None else msgspec.json.Decoder(endpoint.request)
        )
        self.parameters = {parameter.name: parameter for parameter in endpoint.query}


def serve(
    endpoint: Endpoint,
    *,
    waits: bool = False,
    is_hot: bool = False,
    is_quick: bool = False,
    is_big: bool = False,
    metering: Metering = UNMETERED,
) -> Callable[[Handler], Operation]:
    """Decorator: the function answers `endpoint`.

    `waits`: it may hold the request, which ends early if its client goes away or its token ends. `is_hot`: members call
    it all the time, see the setting `log.hot.requests`. `is_quick`: it is nearly always answered from memory, so it
    needs no turn (`kcoord.requests.turnstile`). `is_big`: even a request with a small body waits for a place
    (`Turnstile.place`). `metering`: what quotas count.
    """

    def bind(run: Handler) -> Operation:
        return Operation(endpoint, run, waits=waits, is_hot=is_hot, is_quick=is_quick, is_big=is_big, metering=metering)

    return bind
