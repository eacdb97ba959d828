"""What the gateway serves: APIs with their versions and handlers, and the call that a handler gets.

A handler translates between the fields of Kafka's request and answer and the services; it decides nothing itself. What
it returns, and what `refuse` returns for an error, is a mapping by the names of kio's fields
(`kcoord.door.kafka.codec`); the answer may have more fields than the version has.

Descriptions have sets of operations: what the rules of a caller allow on a group, a topic or the cluster. A set has the
operations of Kafka whose requests are served here and would pass the caller's rules: without a log nobody may write,
and what takes `admin` here may be one of several operations there.

Source: KIP-430; `AclOperation` and `AclEntry.supportedOperations` for the numbers and what each kind of resource has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeVar

import msgspec

from kcoord.access.quotas.budgets import Budget
from kcoord.access.rights import CLUSTER_NAME, Operation, Principal, Resource
from kcoord.door.http import serving
from kcoord.door.http.peers import Peer
from kcoord.door.http.problem import invalid
from kcoord.door.kafka.codec import Fields
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProblemFields

UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
PRODUCER_FENCED: Final = 90
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
REBOOTSTRAP_REQUIRED: Final = 129
"""Errors that only Kafka's protocol has; all others are in `kcoord.protocol.errors`. Source: Kafka's `Errors`."""

Answer = Mapping[str, Any]

SUCCESS: Answer = {"error_code": 0}
"""An answer that says nothing else. Return this one from a quick API: it is encoded once for each version."""


NEWER: Mapping[str, int] = {"api_versions": 5, "delete_groups": 3, "txn_offset_commit": 6}
"""Versions of `kcoord.door.kafka.newer`."""


MOST_SOFTWARE = 10_000
"""Clients whose software is remembered."""


class HangUp(Exception):
    """End the connection instead of an answer; the text goes to the log."""


@dataclass(slots=True)
class Session:
    """What a connection knows about its peer.

    `secret` is the token of its login, "" before that, and `token` its digest. `is_refused`: its login failed, and it
    is closed after the answer. `server_host`, `server_port`: the address that the client came by. `software_name`,
    `software_version`: those of ApiVersions, "" if it sent none on this connection. `throttle_ms`: for how long a quota
    keeps it silent after the answer to its present request. `peer`: what quotas of connections count.
    """

    peer: Peer
    client_host: str
    client_port: int
    server_host: str
    server_port: int
    secret: str = ""
    token: str = ""
    mechanism: str = ""
    expects_token: bool = False
    is_refused: bool = False
    software_name: str = ""
    software_version: str = ""
    throttle_ms: int = 0

    @property
    def who(self) -> str:
        """Whose turn it is when requests take turns: that of the token, or of the address before its login."""
        return self.token or self.client_host


class Software:
    """What clients said they are, by client id and host.

    Some clients send ApiVersions on their first connection only, and join on another.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()

    def remember(self, client_id: str, host: str, name: str, version: str) -> None:
        """A client said what it is."""
        self._known[client_id, host] = name, version
        self._known.move_to_end((client_id, host))
        if len(self._known) > MOST_SOFTWARE:
            self._known.popitem(last=False)

    def of(self, client_id: str, host: str) -> tuple[str, str]:
        """Name and version; empty if unknown."""
        return self._known.get((client_id, host), ("", ""))


class Call(msgspec.Struct, frozen=True):
    """One request. `caller` is None for the APIs that need no login. `gateway` serves it."""

    runtime: Runtime
    gateway: Any
    session: Session
    caller: Principal | None
    version: int
    client_id: str

    @property
    def principal(self) -> Principal:
        """The holder of the token that the connection logged in with."""
        assert self.caller is not None, "the API needs a login"
        return self.caller

    @property
    def client_host(self) -> str:
        """The address of the client."""
        return self.session.client_host

    @property
    def software(self) -> tuple[str, str]:
        """Name and version of the client's software, empty if it has named none on any of its connections."""
        if self.session.software_name:
            return self.session.software_name, self.session.software_version
        found: tuple[str, str] = self.gateway.software.of(self.client_id, self.client_host)
        return found

    def over_http(self, body: Any, group_id: str = "", transactional_id: str = "") -> serving.Call[Any]:
        """The call that the same request would be over HTTP, for an operation (`Operation.run`)."""
        return serving.Call(
            self.runtime, self.principal, body, group_id, serving.NO_QUERY, self.client_host, transactional_id
        )


Handler = Callable[[Call, Fields], Answer | Awaitable[Answer | None]]
Refuse = Callable[[Fields, int, int, str], Answer]
Amend = Callable[[Fields, Answer, ProblemFields], Answer]


def refuse_whole(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer of an API whose error is at the top."""
    return {"error_code": code, "error_message": detail}


@dataclass(frozen=True, slots=True)
class Api:
    """An API of Kafka's protocol.

    Parameters: `key` its number, `name` that of kio's module, `versions` the first and the last that are served.
    `handler` returns the answer, or a coroutine that does, None for no answer at all, and may raise ProtocolError,
    which `refuse(request, version, code, detail)` turns into an answer, and `amend(request, answer, fields)` puts into
    it what else the error says. `waits`: a request may be parked, and ends when
    its connection does. `is_hot`: members call it all the time, so it needs no turn. `is_quick`: most requests are
    answered from memory, without a task (`kcoord.door.kafka.dispatch.respond`). Such a handler must not change the
    request: others may be given the same one. `is_later`: the handler mostly returns a `Later`, for which no task is
    needed either. `budget`: what quotas count it as; None: only its bytes. `audit`: the act of
    `kcoord.access.audit.acts` that it performs; "": it changes nothing, or what members change.
    """

    key: int
    name: str
    versions: tuple[int, int]
    handler: Handler = field(repr=False)
    refuse: Refuse = field(default=refuse_whole, repr=False)
    amend: Amend | None = field(default=None, repr=False)
    needs_login: bool = True
    waits: bool = False
    is_hot: bool = False
    is_quick: bool = False
    is_later: bool = False
    budget: Budget | None = Budget.READS
    audit: str = ""

    @classmethod
    def of(
        cls,
        operation: serving.Operation,
        key: int,
        name: str,
        versions: tuple[int, int],
        handler: Handler,
        refuse: Refuse = refuse_whole,
        amend: Amend | None = None,
        *,
        waits: bool = False,
        is_later: bool = False,
    ) -> Api:
        """An API that is an operation of HTTP, too: what it is to the server, and to quotas, is said there."""
        return cls(
            key,
            name,
            versions,
            handler,
            refuse,
            amend,
            waits=waits,
            is_hot=operation.is_hot,
            is_quick=operation.is_quick,
            is_later=is_later,
            budget=operation.metering.budget,
        )

    def serves(self, version: int) -> bool:
        """Whether this version is served."""
        return self.versions[0] <= version <= self.versions[1]


@cache
def request_class(name: str, version: int) -> type:
    """kio's class of a request. Loaded when first asked for: that takes about 10 ms."""
    return _entity(name, version, "request")


@cache
def response_class(name: str, version: int) -> type:
    """kio's class of an answer."""
    return _entity(name, version, "response")


def _entity(name: str, version: int, kind: str) -> type:
    is_newer = version == NEWER.get(name)
    module = import_module("kcoord.door.kafka.newer" if is_newer else f"kio.schema.{name}.v{version}.{kind}")
    wanted = f"{name.replace('_', '')}{kind}"
    return next(value for key, value in vars(module).items() if key.lower() == wanted and isinstance(value, type))


S = TypeVar("S", bound=msgspec.Struct)


def struct_of(cls: type[S], **fields: Any) -> S:
    """A struct of the REST API. Raises INVALID_REQUEST if a field is out of bounds."""
    try:
        return msgspec.convert(fields, cls)
    except msgspec.ValidationError as error:
        raise invalid(str(error)) from None


class AclOperation(IntEnum):
    """Kafka's numbers of operations; each is a bit of a set."""

    READ = 3
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11


_TAKES: dict[Resource, dict[AclOperation, Operation]] = {
    Resource.GROUP: {
        AclOperation.READ: Operation.READ,
        AclOperation.DELETE: Operation.DELETE,
        AclOperation.DESCRIBE: Operation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE,
        AclOperation.ALTER_CONFIGS: Operation.ADMIN,
    },
    Resource.TOPIC: {
        AclOperation.READ: Operation.READ,
        AclOperation.CREATE: Operation.ADMIN,
        AclOperation.DELETE: Operation.ADMIN,
        AclOperation.ALTER: Operation.ADMIN,
        AclOperation.DESCRIBE: Operation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE,
    },
    Resource.CLUSTER: {
        AclOperation.DESCRIBE: Operation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS: Operation.DESCRIBE,
    },
}
"""Which of this service's operations each of Kafka's takes. Settings of topics and of the server cannot be altered."""


def authorized_operations(principal: Principal, resource: Resource, name: str = CLUSTER_NAME) -> int:
    """The operations that `principal` may do with the resource called `name`, as the bits of a 32-bit number."""
    allows = principal.rules.allows
    return sum(1 << bit for bit, operation in _TAKES[resource].items() if allows(operation, resource, name))
