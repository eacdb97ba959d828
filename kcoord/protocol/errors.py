"""The one registry of protocol errors.

Every error that a member or an operator can see is a row here: Kafka's name and number, its HTTP status,
whether the same request may succeed later, and what a client does next. The pure cores, the data plane, the
REST views, the OpenAPI document and the client all read this table; nothing else maps errors.

Source: http-api.md 1; Kafka's `Errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypedDict


class Action(str, Enum):
    """What the caller of a failed request does next."""

    RETRY = "retry"
    REJOIN = "rejoin"
    REDISCOVER = "rediscover"
    FIX = "fix"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """One row of the registry.

    `code` is Kafka's error number, `status` the HTTP status, `help` one sentence for people.
    """

    code: int
    status: int
    retriable: bool
    action: Action
    help: str


_RETRY, _REJOIN, _FIX, _STOP = Action.RETRY, Action.REJOIN, Action.FIX, Action.STOP


class Error(Enum):
    """Kafka's error names; the value is the row."""

    NONE = ErrorInfo(0, 200, False, _RETRY, "Success.")
    UNKNOWN_SERVER_ERROR = ErrorInfo(-1, 500, False, _RETRY, "The server failed in a way it did not expect.")
    UNKNOWN_TOPIC_OR_PARTITION = ErrorInfo(3, 404, True, _FIX, "This topic or partition does not exist.")
    REQUEST_TIMED_OUT = ErrorInfo(7, 504, True, _RETRY, "The request timed out.")
    OFFSET_METADATA_TOO_LARGE = ErrorInfo(12, 400, False, _FIX, "The metadata of a committed offset is too long.")
    COORDINATOR_LOAD_IN_PROGRESS = ErrorInfo(14, 503, True, _RETRY, "The coordinator is loading this group.")
    COORDINATOR_NOT_AVAILABLE = ErrorInfo(15, 503, True, _RETRY, "The coordinator is not available.")
    NOT_COORDINATOR = ErrorInfo(16, 421, True, Action.REDISCOVER, "This node does not coordinate the group.")
    INVALID_TOPIC_EXCEPTION = ErrorInfo(17, 400, False, _FIX, "The topic name is not valid.")
    ILLEGAL_GENERATION = ErrorInfo(22, 409, False, _REJOIN, "The generation is not the current one of the group.")
    INCONSISTENT_GROUP_PROTOCOL = ErrorInfo(23, 409, False, _STOP, "The protocols are not compatible with the group's.")
    INVALID_GROUP_ID = ErrorInfo(24, 400, False, _FIX, "The group id is not valid.")
    UNKNOWN_MEMBER_ID = ErrorInfo(25, 404, False, _REJOIN, "The group has no such member.")
    INVALID_SESSION_TIMEOUT = ErrorInfo(26, 400, False, _FIX, "The session timeout is out of bounds.")
    REBALANCE_IN_PROGRESS = ErrorInfo(27, 409, False, _REJOIN, "The group is rebalancing.")
    INVALID_COMMIT_OFFSET_SIZE = ErrorInfo(28, 413, False, _FIX, "The commit is too large.")
    TOPIC_AUTHORIZATION_FAILED = ErrorInfo(29, 403, False, _STOP, "Not allowed on this topic.")
    GROUP_AUTHORIZATION_FAILED = ErrorInfo(30, 403, False, _STOP, "Not allowed on this group.")
    CLUSTER_AUTHORIZATION_FAILED = ErrorInfo(31, 403, False, _STOP, "Not allowed.")
    TOPIC_ALREADY_EXISTS = ErrorInfo(36, 409, False, _FIX, "A topic of this name already exists.")
    INVALID_PARTITIONS = ErrorInfo(37, 400, False, _FIX, "The number of partitions is not valid.")
    INVALID_CONFIG = ErrorInfo(40, 400, False, _FIX, "A setting is not valid.")
    INVALID_REQUEST = ErrorInfo(42, 400, False, _FIX, "The request is not well formed.")
    INVALID_PRODUCER_EPOCH = ErrorInfo(47, 409, False, _STOP, "A newer producer took over this transactional id.")
    INVALID_TXN_STATE = ErrorInfo(48, 409, False, _FIX, "The transaction is not in a state that allows this.")
    INVALID_PRODUCER_ID_MAPPING = ErrorInfo(49, 409, False, _STOP, "The transactional id belongs to another producer.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = ErrorInfo(53, 403, False, _STOP, "Not allowed on this transactional id.")
    SASL_AUTHENTICATION_FAILED = ErrorInfo(58, 401, False, _STOP, "The token is missing, wrong or expired.")
    NON_EMPTY_GROUP = ErrorInfo(68, 409, False, _FIX, "The group has members.")
    GROUP_ID_NOT_FOUND = ErrorInfo(69, 404, False, _FIX, "There is no such group.")
    MEMBER_ID_REQUIRED = ErrorInfo(79, 409, False, _REJOIN, "Join again with the member id of the response.")
    GROUP_MAX_SIZE_REACHED = ErrorInfo(81, 409, False, _STOP, "The group is full.")
    FENCED_INSTANCE_ID = ErrorInfo(82, 409, False, _STOP, "Another member took over this instance id.")
    GROUP_SUBSCRIBED_TO_TOPIC = ErrorInfo(86, 409, False, _FIX, "The group is subscribed to the topic.")
    UNSTABLE_OFFSET_COMMIT = ErrorInfo(88, 503, True, _RETRY, "A transaction on this offset is open.")
    THROTTLING_QUOTA_EXCEEDED = ErrorInfo(89, 429, True, _RETRY, "Too many requests of this kind.")
    UNKNOWN_TOPIC_ID = ErrorInfo(100, 404, True, _FIX, "There is no topic with this id.")
    FENCED_MEMBER_EPOCH = ErrorInfo(110, 409, False, _REJOIN, "The member epoch was fenced.")
    UNRELEASED_INSTANCE_ID = ErrorInfo(111, 409, False, _RETRY, "The instance id is still in use.")
    UNSUPPORTED_ASSIGNOR = ErrorInfo(112, 400, False, _FIX, "The server has no such assignor.")
    STALE_MEMBER_EPOCH = ErrorInfo(113, 409, True, _RETRY, "The member epoch is not the current one.")
    INVALID_RECORD_STATE = ErrorInfo(121, 409, False, _FIX, "The member does not hold these items.")
    INVALID_REGULAR_EXPRESSION = ErrorInfo(128, 400, False, _FIX, "The regular expression is not valid.")

    @property
    def code(self) -> int:
        """Kafka's error number."""
        return self.value.code

    @property
    def status(self) -> int:
        """The HTTP status of a problem response with this error."""
        return self.value.status


BY_CODE: Mapping[int, Error] = {error.code: error for error in Error}


class PartitionProblem(TypedDict):
    """Why an offset plan cannot include a partition."""

    topic: str
    partition: int
    problem: str


class PartitionError(TypedDict):
    """The error that a partition has by itself. `topic` or `topic_id` None: not known of a topic that was named so."""

    topic: str | None
    topic_id: str | None
    partition: int
    error: str
    error_code: int


class LineProblem(TypedDict):
    """What is wrong with a line of a file of offsets; lines count from 1."""

    line: int
    problem: str


class NamedPartition(TypedDict):
    """A partition of a topic."""

    topic: str
    partition: int


class NamedCoordinator(TypedDict):
    """The node that coordinates a group. `url` is the address for clients, `host` and `port` are of that address."""

    node_id: str
    host: str
    port: int
    url: str


class ProblemFields(TypedDict, total=False):
    """What a problem body may carry besides its fixed members. No other code may add any: the type checker sees to it.

    The OpenAPI document describes each (`kcoord.control.rest.schema.Problem`).
    """

    field: str
    member_id: str
    coordinator: NamedCoordinator
    session_expires_at: str
    problems: list[PartitionProblem]
    problem_count: int
    partition_errors: list[PartitionError]
    lines: list[LineProblem]
    bad_lines: int
    partitions: list[NamedPartition]
    topics: list[str]
    state: str
    run: str
    budget: str
    limit: float
    used: float


class ProtocolError(Exception):
    """A request that is answered with an error.

    Parameters: `error` the registry row; `detail` the fault and the remedy; `fields` extra members of the
    problem body; `action` where it differs from the registry's; `retry_after_ms` for errors that say when to retry.
    """

    def __init__(
        self,
        error: Error,
        detail: str = "",
        *,
        fields: ProblemFields | None = None,
        action: Action | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(detail or error.value.help)
        self.error = error
        self.detail = detail or error.value.help
        self.fields: ProblemFields = fields or {}
        self.action = action or error.value.action
        self.retry_after_ms = retry_after_ms

    def __reduce__(self) -> tuple[object, ...]:
        """Allows pickling, which Celery needs to pass on what a task raised."""
        return type(self).__new__, (type(self), str(self)), {**self.__dict__, "fields": dict(self.fields)}
