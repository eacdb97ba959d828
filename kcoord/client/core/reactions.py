"""What the client does on each answer: the table of classic.md 11.2, as data.

Rows that are absent get the API's default. What http-api.md adds to the table is in `HTTP_REACTIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from kcoord.protocol.errors import Action, Error, ProtocolError


class Api(str, Enum):
    """The requests in the table."""

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    COMMIT = "OffsetCommit"


class Reaction(Enum):
    """What to do on an error.

    "Join again" means at once. The FORGET reactions forget only if the member's generation is still the one that
    the request was sent with.
    """

    RETRY = "send the same request to the same server after the back-off"
    RESEND = "send the same request again at once: its wait ran out"
    REDISCOVER = "find the coordinator, then send the same request after the back-off"
    REDISCOVER_AND_REJOIN = "find the coordinator, then join again after the back-off"
    REJOIN = "join again with the same member id and generation"
    ADOPT_MEMBER_ID = "join again with the member id of the answer"
    FORGET_GENERATION = "forget the generation, keep the member id, join again"
    FORGET_MEMBER = "forget member id and generation, join again"
    REJOIN_AT_POLL = "join again at the next poll; the heartbeat counts as a success"
    FENCED = "fatal, if the generation is unchanged"
    COUNT_AS_FAILED = "a failed heartbeat: send another after the back-off"
    FAIL = "fatal: raise"


R = Reaction

REACTIONS: Mapping[Api, Mapping[Error, Reaction]] = {
    Api.JOIN: {
        Error.COORDINATOR_LOAD_IN_PROGRESS: R.RETRY,
        Error.COORDINATOR_NOT_AVAILABLE: R.REDISCOVER,
        Error.NOT_COORDINATOR: R.REDISCOVER,
        Error.UNKNOWN_MEMBER_ID: R.FORGET_MEMBER,
        Error.REBALANCE_IN_PROGRESS: R.REJOIN,
        Error.MEMBER_ID_REQUIRED: R.ADOPT_MEMBER_ID,
        Error.REQUEST_TIMED_OUT: R.REDISCOVER,
    },
    Api.SYNC: {
        Error.COORDINATOR_NOT_AVAILABLE: R.REDISCOVER_AND_REJOIN,
        Error.NOT_COORDINATOR: R.REDISCOVER_AND_REJOIN,
        Error.UNKNOWN_MEMBER_ID: R.FORGET_MEMBER,
        Error.ILLEGAL_GENERATION: R.FORGET_GENERATION,
        Error.REBALANCE_IN_PROGRESS: R.REJOIN,
        Error.REQUEST_TIMED_OUT: R.REDISCOVER_AND_REJOIN,
    },
    Api.HEARTBEAT: {
        Error.COORDINATOR_NOT_AVAILABLE: R.REDISCOVER,
        Error.NOT_COORDINATOR: R.REDISCOVER,
        Error.UNKNOWN_MEMBER_ID: R.FORGET_MEMBER,
        Error.ILLEGAL_GENERATION: R.FORGET_GENERATION,
        Error.REBALANCE_IN_PROGRESS: R.REJOIN_AT_POLL,
        Error.FENCED_INSTANCE_ID: R.FENCED,
        Error.REQUEST_TIMED_OUT: R.REDISCOVER,
    },
    Api.COMMIT: {
        Error.COORDINATOR_LOAD_IN_PROGRESS: R.RETRY,
        Error.COORDINATOR_NOT_AVAILABLE: R.REDISCOVER,
        Error.NOT_COORDINATOR: R.REDISCOVER,
        Error.UNKNOWN_MEMBER_ID: R.FORGET_MEMBER,
        Error.ILLEGAL_GENERATION: R.FORGET_GENERATION,
        Error.REBALANCE_IN_PROGRESS: R.REJOIN_AT_POLL,
        Error.FENCED_INSTANCE_ID: R.FENCED,
        Error.REQUEST_TIMED_OUT: R.REDISCOVER,
    },
}

DEFAULTS: Mapping[Api, Reaction] = {
    Api.JOIN: R.FAIL,
    Api.SYNC: R.FAIL,
    Api.HEARTBEAT: R.COUNT_AS_FAILED,
    Api.COMMIT: R.FAIL,
}

HTTP_REACTIONS: Mapping[Api, Mapping[tuple[Error, Action], Reaction]] = {
    Api.JOIN: {(Error.REBALANCE_IN_PROGRESS, Action.RETRY): R.RESEND},
    Api.SYNC: {
        (Error.REBALANCE_IN_PROGRESS, Action.RETRY): R.RESEND,
        # Differs from Kafka: there it ends the client, although the coordinator may well answer it (classic.md 13.1).
        (Error.COORDINATOR_LOAD_IN_PROGRESS, Action.RETRY): R.RETRY,
    },
    Api.HEARTBEAT: {},
    Api.COMMIT: {},
}
"""Errors with the action for which the table is not followed: a join or sync whose wait timed out (http-api.md 1,
"Waiting"), a sync while the coordinator loads."""


def reaction(api: Api, failure: ProtocolError) -> Reaction:
    """What the client does when `api` is answered with `failure`."""
    special = HTTP_REACTIONS[api].get((failure.error, failure.action))
    if special is not None:
        return special
    if failure.error is Error.THROTTLING_QUOTA_EXCEEDED:
        # Kafka throttles by delaying answers; over HTTP it is 429 with Retry-After, and the member keeps its session.
        return R.COUNT_AS_FAILED if api is Api.HEARTBEAT else R.RETRY
    return REACTIONS[api].get(failure.error, DEFAULTS[api])
