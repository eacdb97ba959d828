"""The JSON of transactions, field by field. Names are those of Kafka's message schemas in snake_case.

Source: http-api.md 2, "transactional commit".
"""

from __future__ import annotations

from typing import Annotated

from kcoord.http.types import CommitInstanceId, Int32, MemberId, ProducerEpoch, ProducerId, TransactionalId
from offsets.api.wire import CommittedTopic, CommitTopic, Items, Request, Response


class TxnCommitRequest(Request, frozen=True):
    """TxnOffsetCommit. Without a member: generation -1."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    topics: Annotated[list[CommitTopic], Items]
    generation_id: Int32 = -1
    member_id: MemberId = ""
    group_instance_id: CommitInstanceId | None = None


class TxnCommitResponse(Response, frozen=True):
    """A result for each partition, in the order of the request. Offsets with error 0 are pending until the end."""

    topics: list[CommittedTopic]
    error_code: Int32 = 0


class EndTxnRequest(Request, frozen=True):
    """EndTxn. `committed` true: pending offsets are committed; false: they are aborted."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool


class EndTxnResponse(Response, frozen=True):
    """The result of the end. Pending offsets are not committed if a later commit superseded them."""

    pending_offsets: int
    committed_offsets: int
    error_code: Int32 = 0


class InitProducerIdResponse(Response, frozen=True):
    """The producer to use from now on."""

    producer_id: int
    producer_epoch: Int32
    error_code: Int32 = 0
