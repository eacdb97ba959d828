"""The descriptions of commit and fetch.

Source: http-api.md 2, and the error tables of offsets.md 3 and 5.
"""

from __future__ import annotations

from kcoord.http.serving import Endpoint
from kcoord.protocol.errors import Error
from offsets.api import wire

COMMIT = Endpoint(
    "POST",
    "/v1/groups/{group_id}/offsets/commit",
    "commitOffsets",
    "Commit offsets",
    request=wire.CommitRequest,
    response=wire.CommitResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.STALE_MEMBER_EPOCH,
        Error.FENCED_INSTANCE_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.GROUP_ID_NOT_FOUND,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
    ),
    description="Errors about the member fail the whole request; each partition also has an `error_code` of its own "
    "(TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE).",
)

FETCH = Endpoint(
    "POST",
    "/v1/groups/{group_id}/offsets/fetch",
    "fetchOffsets",
    "Fetch committed offsets",
    request=wire.FetchRequest,
    response=wire.FetchResponse,
    errors=(
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.STALE_MEMBER_EPOCH,
    ),
    description="A partition without a committed offset has offset -1 and no error, even if the group does not "
    "exist. With `require_stable` a partition with an open transaction has the `error_code` of "
    "UNSTABLE_OFFSET_COMMIT: fetch it again later.",
)

MANY_FETCH = Endpoint(
    "POST",
    "/v1/offsets/fetch",
    "fetchOffsetsOfManyGroups",
    "Fetch committed offsets of many groups",
    request=wire.ManyFetchRequest,
    response=wire.ManyFetchResponse,
    description="Each group has an `error_code` of its own.",
)
