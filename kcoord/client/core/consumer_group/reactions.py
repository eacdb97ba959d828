"""What a member does when a request is answered with an error, as data. Source: consumer.md 11.4 and 10.

Errors that are in neither table get the default, which is fatal for heartbeats and raised for commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from kcoord.protocol.errors import Error


class Reaction(Enum):
    """What to do on an error. The record of what was sent is always cleared: the next heartbeat is a full one."""

    BACK_OFF = "another heartbeat after the back-off"
    REDISCOVER = "find the coordinator; the first time in a row another heartbeat at once, else after the back-off"
    REJOIN = (
        "report the partitions lost, then join with epoch 0 and the same member id; at once the first time in a row"
    )
    REPORT = "tell the user, keep the state, go on with heartbeats"
    FAIL = "tell the user and stop: the partitions are lost"


R = Reaction

HEARTBEAT: Mapping[Error, Reaction] = {
    Error.COORDINATOR_LOAD_IN_PROGRESS: R.BACK_OFF,
    Error.COORDINATOR_NOT_AVAILABLE: R.REDISCOVER,
    Error.NOT_COORDINATOR: R.REDISCOVER,
    Error.REQUEST_TIMED_OUT: R.REDISCOVER,
    Error.FENCED_MEMBER_EPOCH: R.REJOIN,
    Error.UNKNOWN_MEMBER_ID: R.REJOIN,
    Error.GROUP_ID_NOT_FOUND: R.REJOIN,
    Error.TOPIC_AUTHORIZATION_FAILED: R.REPORT,
    Error.GROUP_AUTHORIZATION_FAILED: R.FAIL,
    Error.INVALID_REQUEST: R.FAIL,
    Error.GROUP_MAX_SIZE_REACHED: R.FAIL,
    Error.UNSUPPORTED_ASSIGNOR: R.FAIL,
    # Once the previous session is over; until then `release.OldSession` makes the member retry.
    Error.UNRELEASED_INSTANCE_ID: R.FAIL,
    Error.FENCED_INSTANCE_ID: R.FAIL,
    Error.INVALID_REGULAR_EXPRESSION: R.FAIL,
    # The service checks what is reported, which Kafka does not (http-api.md): the member's view is wrong.
    Error.UNKNOWN_TOPIC_ID: R.REJOIN,
    Error.UNKNOWN_TOPIC_OR_PARTITION: R.REJOIN,
    # Kafka throttles by delaying answers; over HTTP it is 429 with Retry-After, and the member keeps its session.
    Error.THROTTLING_QUOTA_EXCEEDED: R.BACK_OFF,
    # Differs from Kafka: there an unexpected failure of the service ends the member. One brief service outage would
    # end all members of all groups; the session bounds how long a member may continue like this.
    Error.UNKNOWN_SERVER_ERROR: R.BACK_OFF,
}

JOIN: Mapping[Error, Reaction] = {
    # The group exists, but has another type, which does not change.
    Error.GROUP_ID_NOT_FOUND: R.FAIL,
    Error.UNKNOWN_SERVER_ERROR: R.FAIL,
}
"""Where a heartbeat with epoch 0 differs."""


class CommitReaction(Enum):
    """What to do on an error of a commit. The membership is left alone: the next heartbeat finds out its state."""

    RETRY = "another attempt, with what the epoch is then"
    OUT = "the group went on without this member: the commit failed"
    RAISE = "tell the user"


COMMIT: Mapping[Error, CommitReaction] = {
    Error.COORDINATOR_LOAD_IN_PROGRESS: CommitReaction.RETRY,
    Error.COORDINATOR_NOT_AVAILABLE: CommitReaction.RETRY,
    Error.NOT_COORDINATOR: CommitReaction.RETRY,
    Error.REQUEST_TIMED_OUT: CommitReaction.RETRY,
    Error.UNSTABLE_OFFSET_COMMIT: CommitReaction.RETRY,
    Error.THROTTLING_QUOTA_EXCEEDED: CommitReaction.RETRY,
    Error.STALE_MEMBER_EPOCH: CommitReaction.RETRY,
    Error.UNKNOWN_MEMBER_ID: CommitReaction.OUT,
    Error.FENCED_MEMBER_EPOCH: CommitReaction.OUT,
    Error.ILLEGAL_GENERATION: CommitReaction.OUT,
    Error.GROUP_ID_NOT_FOUND: CommitReaction.OUT,
}


def heartbeat_reaction(error: Error, *, joining: bool) -> Reaction:
    """The reaction to a heartbeat that was answered with `error`; `joining`: it had epoch 0."""
    special = JOIN.get(error) if joining else None
    return special or HEARTBEAT.get(error, R.FAIL)


def commit_reaction(error: Error) -> CommitReaction:
    """The reaction to a commit that was answered with `error`."""
    return COMMIT.get(error, CommitReaction.RAISE)
