"""The descriptions of commit, fetch and transactional commits.

Source: http-api.md 2, and the error tables of offsets.md 3, 4 and 5.
"""

from __future__ import annotations

from kcoord.access.rights import Permission
from kcoord.door.http.serving import Endpoint
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
    takes=Permission.READ_GROUP,
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
    takes=Permission.DESCRIBE_GROUP,
)

MANY_FETCH = Endpoint(
    "POST",
    "/v1/offsets/fetch",
    "fetchOffsetsOfManyGroups",
    "Fetch committed offsets of many groups",
    request=wire.ManyFetchRequest,
    response=wire.ManyFetchResponse,
    description="Each group has an `error_code` of its own.",
    takes=Permission.DESCRIBE_GROUP,
)


PRODUCER = (
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.INVALID_PRODUCER_EPOCH,
    Error.INVALID_PRODUCER_ID_MAPPING,
)

TXN_COMMIT = Endpoint(
    "POST",
    "/v1/groups/{group_id}/offsets/txn-commit",
    "txnCommitOffsets",
    "Commit offsets as part of a transaction",
    request=wire.TxnCommitRequest,
    response=wire.TxnCommitResponse,
    errors=(
        *PRODUCER,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.INVALID_GROUP_ID,
        Error.UNKNOWN_MEMBER_ID,
        Error.ILLEGAL_GENERATION,
        Error.FENCED_INSTANCE_ID,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
    ),
    description="The offsets are pending until the end of the transaction: a fetch does not see them, and one with "
    "`require_stable` answers UNSTABLE_OFFSET_COMMIT for their partitions. The first commit of a "
    "transaction begins it. Errors about the producer or member fail the whole request; each partition "
    "also has an `error_code` of its own (TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, "
    "UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE). A transaction that is not ended within "
    "`transaction.max.timeout.ms` is aborted. No session is renewed.",
    takes_empty_group_id=True,
    takes=Permission.READ_TRANSACTIONAL_ID,
)

END_TXN = Endpoint(
    "POST",
    "/v1/transactions/{transactional_id}/end",
    "endTransaction",
    "End a transaction",
    request=wire.EndTxnRequest,
    response=wire.EndTxnResponse,
    errors=PRODUCER,
    description="Commits or aborts all pending offsets of the transaction at once, in all groups. If there is no "
    "response, send the request again: ending a transaction twice succeeds, with nothing pending. An offset that was "
    "committed on a partition after the pending one is kept.",
    takes=Permission.READ_TRANSACTIONAL_ID,
)

INIT_PRODUCER_ID = Endpoint(
    "POST",
    "/v1/transactions/{transactional_id}/init",
    "initProducerId",
    "Take over a transactional id",
    response=wire.InitProducerIdResponse,
    errors=(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,),
    description="Returns the producer id and epoch to use. The previous producer of the transactional id is "
    "fenced, and its open transaction aborted.",
    takes=Permission.READ_TRANSACTIONAL_ID,
)
