"""The descriptions of the membership calls.

Source: http-api.md 2, and the error tables of classic.md 2 to 5.
"""

from __future__ import annotations

from groups.api import wire
from kcoord.access.rights import Permission
from kcoord.door.http.serving import Endpoint, Query
from kcoord.protocol.errors import Error

GROUP = "/v1/groups/{group_id}"

_MEMBERSHIP = (Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_GROUP_ID, Error.UNKNOWN_MEMBER_ID)

JOIN = Endpoint(
    "POST",
    f"{GROUP}/join",
    "joinGroup",
    "Join a group",
    request=wire.JoinRequest,
    response=wire.JoinResponse,
    errors=(
        *_MEMBERSHIP,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.MEMBER_ID_REQUIRED,
        Error.REBALANCE_IN_PROGRESS,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.FENCED_INSTANCE_ID,
    ),
    description="Waits until the rebalance completes, at most `max_wait_ms`. After that the response is "
    "REBALANCE_IN_PROGRESS with action `retry`: send the same request again, with the `member_id` of the "
    "response.",
    takes=Permission.READ_GROUP,
)

SYNC = Endpoint(
    "POST",
    f"{GROUP}/sync",
    "syncGroup",
    "Get the assignment; the leader sends it",
    request=wire.SyncRequest,
    response=wire.SyncResponse,
    errors=(
        *_MEMBERSHIP,
        Error.ILLEGAL_GENERATION,
        Error.REBALANCE_IN_PROGRESS,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.FENCED_INSTANCE_ID,
    ),
    description="Waits until the leader has sent the assignment, at most `max_wait_ms`.",
    takes=Permission.READ_GROUP,
)

HEARTBEAT = Endpoint(
    "POST",
    f"{GROUP}/heartbeat",
    "heartbeat",
    "Keep a membership alive",
    request=wire.HeartbeatRequest,
    response=wire.HeartbeatResponse,
    errors=(*_MEMBERSHIP, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID),
    description="REBALANCE_IN_PROGRESS also renews the session: join again.",
    takes=Permission.READ_GROUP,
)

MANY_HEARTBEATS = Endpoint(
    "POST",
    "/v1/heartbeats",
    "heartbeats",
    "Keep many memberships alive",
    request=wire.ManyHeartbeatsRequest,
    response=wire.ManyHeartbeatsResponse,
    description="For agents that host many members. Each entry has a result of its own.",
    takes=Permission.READ_GROUP,
)

LEAVE = Endpoint(
    "POST",
    f"{GROUP}/leave",
    "leaveGroup",
    "Leave a group, one member or several",
    request=wire.LeaveRequest,
    response=wire.LeaveResponse,
    errors=(Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_GROUP_ID),
    description="Each entry has a result with an `error_code` of its own.",
    takes=Permission.READ_GROUP,
)

COORDINATOR = Endpoint(
    "GET",
    "/v1/coordinator",
    "findCoordinator",
    "Find the coordinator of groups",
    response=wire.CoordinatorResponse,
    query=(Query("group_id", "Id of a group. Repeatable.", required=True, repeated=True),),
    takes=Permission.DESCRIBE_GROUP,
)

ASSIGN = Endpoint(
    "POST",
    "/v1/assign",
    "assign",
    "Compute an assignment",
    request=wire.AssignRequest,
    response=wire.AssignResponse,
    errors=(Error.UNSUPPORTED_ASSIGNOR,),
    description="For leaders without an assignor of their own. Nothing is stored: send the result in a sync.",
    takes=Permission.NOTHING,
)
