"""What the client raises. Every class names the entry of the error registry it stands for, if any."""

from __future__ import annotations

from collections.abc import Mapping

from kcoord.protocol.errors import Error, ProtocolError


class KcoordError(Exception):
    """Any error the client raises deliberately.

    `error` is the protocol's error (None for mistakes that never reached the server), `detail` the fault and the
    remedy.
    """

    error: Error | None = None

    def __init__(self, detail: str = "", *, error: Error | None = None) -> None:
        if error is not None:
            self.error = error
        self.detail = detail or (self.error.value.help if self.error else "")
        super().__init__(f"{self.error.name}: {self.detail}" if self.error else self.detail)

    @property
    def retriable(self) -> bool:
        """The same call may succeed later."""
        return self.error is not None and self.error.value.retriable

    @property
    def fatal(self) -> bool:
        """This consumer cannot continue as it is."""
        return False

    @property
    def kafka_code(self) -> int | None:
        """Kafka's error number."""
        return None if self.error is None else self.error.code


class FatalError(KcoordError):
    """Retrying does not help: the settings, the rights or the identity of this consumer are wrong."""

    @property
    def fatal(self) -> bool:
        """Always true."""
        return True


class InvalidConfigurationError(FatalError, ValueError):
    """A setting of the consumer is not valid; `setting` names it."""

    error = Error.INVALID_CONFIG

    def __init__(self, setting: str, detail: str) -> None:
        self.setting = setting
        super().__init__(f"{setting}: {detail}")


class IllegalStateError(KcoordError):
    """The call does not fit the state of the consumer: not subscribed, not assigned, closed, used by two threads."""


class WakeupError(KcoordError):
    """Another thread called `wakeup()`."""


class ClientTimeoutError(KcoordError, TimeoutError):
    """The call could not be completed within its timeout; the last failure is its cause."""

    error = Error.REQUEST_TIMED_OUT


class CommitFailedError(KcoordError):
    """The group moved on without this member: its partitions may be read by others, the offsets were not committed."""

    error = Error.UNKNOWN_MEMBER_ID


class UnknownTopicIdError(CommitFailedError):
    """The topic that was read no longer exists, or another one has its name: the offsets count for neither.

    Nothing was committed for it. The next `poll` reports its partitions lost and finds new positions.
    """

    error = Error.UNKNOWN_TOPIC_ID


class RebalanceInProgressError(KcoordError):
    """The group is rebalancing: call `poll()` to finish it, then retry the commit for what is still assigned."""

    error = Error.REBALANCE_IN_PROGRESS

    @property
    def retriable(self) -> bool:
        """After a poll: yes."""
        return True


class NoOffsetForPartitionError(KcoordError):
    """A partition has no committed offset, and auto_offset_reset is "none"."""


class OffsetOutOfRangeError(KcoordError):
    """A record source raises this for an offset it does not have."""


class AuthenticationError(FatalError):
    """The token is missing, wrong or expired."""

    error = Error.SASL_AUTHENTICATION_FAILED


class GroupAuthorizationError(FatalError):
    """Not allowed on this group."""

    error = Error.GROUP_AUTHORIZATION_FAILED


class TopicAuthorizationError(FatalError):
    """Not allowed on a topic."""

    error = Error.TOPIC_AUTHORIZATION_FAILED


class FencedInstanceIdError(FatalError):
    """Another consumer runs with the same group_instance_id."""

    error = Error.FENCED_INSTANCE_ID


class InconsistentGroupProtocolError(FatalError):
    """The group's members and this one have no assignor or protocol type in common."""

    error = Error.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupIdError(FatalError):
    """The group id is not valid."""

    error = Error.INVALID_GROUP_ID


class InvalidSessionTimeoutError(FatalError):
    """The server does not allow this session_timeout_ms."""

    error = Error.INVALID_SESSION_TIMEOUT


class GroupMaxSizeReachedError(FatalError):
    """The group is full."""

    error = Error.GROUP_MAX_SIZE_REACHED


class UnreleasedInstanceIdError(FatalError):
    """Another consumer runs with this group_instance_id: its session did not end as one left by a crash would have."""

    error = Error.UNRELEASED_INSTANCE_ID


class UnsupportedAssignorError(FatalError):
    """The service has no assignor with the name in group_remote_assignor."""

    error = Error.UNSUPPORTED_ASSIGNOR


class InvalidRegularExpressionError(FatalError):
    """The subscribed pattern is not a regular expression in RE2 syntax."""

    error = Error.INVALID_REGULAR_EXPRESSION


class StaleMemberEpochError(KcoordError):
    """The member's epoch has changed since the request was sent; a retry is sent with the new one."""

    error = Error.STALE_MEMBER_EPOCH


class OffsetMetadataTooLargeError(KcoordError):
    """The metadata of a committed offset is longer than the server allows."""

    error = Error.OFFSET_METADATA_TOO_LARGE


class UnknownTopicOrPartitionError(KcoordError):
    """The topic or partition does not exist."""

    error = Error.UNKNOWN_TOPIC_OR_PARTITION


class InvalidRecordStateError(KcoordError):
    """This worker does not hold the item any more: its lock expired, or an operator released or rejected it."""

    error = Error.INVALID_RECORD_STATE


class CoordinatorNotAvailableError(KcoordError):
    """No server answered, or the one that did cannot serve the group now."""

    error = Error.COORDINATOR_NOT_AVAILABLE


class UnexpectedError(KcoordError):
    """A server error for which the client has no specific class; `error` says which."""

    error = Error.UNKNOWN_SERVER_ERROR


_CLASSES: Mapping[Error, type[KcoordError]] = {
    kind.error: kind
    for kind in (
        AuthenticationError,
        GroupAuthorizationError,
        TopicAuthorizationError,
        FencedInstanceIdError,
        InconsistentGroupProtocolError,
        InvalidGroupIdError,
        InvalidSessionTimeoutError,
        GroupMaxSizeReachedError,
        UnreleasedInstanceIdError,
        UnsupportedAssignorError,
        InvalidRegularExpressionError,
        StaleMemberEpochError,
        OffsetMetadataTooLargeError,
        UnknownTopicOrPartitionError,
        UnknownTopicIdError,
        InvalidRecordStateError,
        CoordinatorNotAvailableError,
        RebalanceInProgressError,
    )
    if kind.error is not None
}


def error_of(failure: ProtocolError) -> KcoordError:
    """The exception for users when a request failed."""
    kind = _CLASSES.get(failure.error, UnexpectedError)
    raised = kind(failure.detail, error=failure.error)
    raised.__cause__ = failure
    return raised
