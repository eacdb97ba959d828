"""The descriptions of transactional commits.

Source: http-api.md 2, and the error table of offsets.md 4.1.
"""

from __future__ import annotations

from kcoord.http.endpoint import Endpoint
from kcoord.protocol.errors import Error
from offsets.api import txn_wire

PRODUCER = (
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Error.INVALID_PRODUCER_EPOCH,
    Error.INVALID_PRODUCER_ID_MAPPING,
)

TXN_COMMIT = Endpoint(
    "POST",
    "/v1/groups/{group_id}/offsets/txn-commit",
    "txnCommitOffsets",
    "Commit offsets when and if a transaction is committed",
    request=txn_wire.TxnCommitRequest,
    response=txn_wire.TxnCommitResponse,
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
    "`require_stable` answers UNSTABLE_OFFSET_COMMIT for their partitions. The first commit of a transaction begins "
    "it. What concerns producer or member fails the whole request; each partition has an `error_code` of its own "
    "(TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE). A "
    "transaction that is not ended within `transaction.max.timeout.ms` is aborted. No session is renewed.",
    takes_empty_group_id=True,
)

END_TXN = Endpoint(
    "POST",
    "/v1/transactions/{transactional_id}/end",
    "endTransaction",
    "End a transaction",
    request=txn_wire.EndTxnRequest,
    response=txn_wire.EndTxnResponse,
    errors=PRODUCER,
    description="Everything that is pending is committed, or aborted, at once, in whatever groups. Without an answer "
    "send it again: a transaction that has ended already is a success with nothing pending. An offset that was "
    "committed after a pending one on its partition is kept.",
)

INIT_PRODUCER_ID = Endpoint(
    "POST",
    "/v1/transactions/{transactional_id}/init",
    "initProducerId",
    "Take over a transactional id",
    response=txn_wire.InitProducerIdResponse,
    errors=(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,),
    description="Gives the producer id and epoch to work under. Whoever worked under the transactional id before is "
    "fenced, and its open transaction aborted.",
)
