"""Transactional commits over HTTP.

Source: http-api.md 2, "transactional commit"; offsets.md 2 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kcoord.access.rights import Operation
from kcoord.http.serving import Call, serve
from kcoord.http.types import int64
from kcoord.metrics import OFFSETS_COMMITTED
from kcoord.protocol.errors import Error
from kcoord.quotas.budgets import Budget, Metering
from offsets.api import txn_endpoints, txn_wire
from offsets.api.handlers import Asked, Finish, Named, R, Topics, answered, asked_topics, commit_of
from offsets.core.commit import Commit
from offsets.core.transactions import Producer
from offsets.core.types import OffsetCommitReply
from offsets.service import OffsetService
from offsets.transactions.doors import accepted, counted
from offsets.transactions.service import TransactionService


@serve(txn_endpoints.TXN_COMMIT, metering=Metering(Budget.COMMITS))
async def txn_commit(call: Call[txn_wire.TxnCommitRequest]) -> txn_wire.TxnCommitResponse:
    """TxnOffsetCommit."""
    body = call.body
    call.principal.require_transactional_id(body.transactional_id)
    call.principal.require_group(Operation.READ, call.group_id)
    producer = _producer(body.transactional_id, body)
    asked = Asked(asked_topics(body.topics), body.generation_id, body.member_id, body.group_instance_id)

    def finish(named: Sequence[Named], commit: Commit, _reply: OffsetCommitReply) -> txn_wire.TxnCommitResponse:
        return txn_wire.TxnCommitResponse(answered(asked.topics, named, commit.errors))

    return await commit_in_transaction(call, producer, asked, finish)


async def commit_in_transaction(
    call: Call[Any], producer: Producer, asked: Asked, finish: Finish[R], *, knows_epochs: bool = False
) -> R:
    """The answer to a TxnOffsetCommit whose group and producer the caller may use, for either door.

    `knows_epochs`: as in `accepted`.
    """
    topics = Topics(call.runtime, call.principal)
    named = await topics.resolve(asked.topics)
    commit = commit_of(call, asked, topics, named, call.runtime.get(OffsetService).metadata_limit)
    work = accepted(call.runtime.get(TransactionService).commit(producer, commit), knows_epochs=knows_epochs)
    reply = await counted("txn_commit", work)
    OFFSETS_COMMITTED.inc(commit.errors.count(Error.NONE))
    return finish(named, commit, reply)


@serve(txn_endpoints.END_TXN, metering=Metering(Budget.COMMITS))
async def end_txn(call: Call[txn_wire.EndTxnRequest]) -> txn_wire.EndTxnResponse:
    """EndTxn, and the marker that follows it."""
    call.principal.require_transactional_id(call.transactional_id)
    producer = _producer(call.transactional_id, call.body)
    service = call.runtime.get(TransactionService)
    ended = await counted("end_txn", service.end(producer, committed=call.body.committed))
    return txn_wire.EndTxnResponse(ended.ended, ended.committed)


@serve(txn_endpoints.INIT_PRODUCER_ID, metering=Metering(Budget.COMMITS))
async def init_producer_id(call: Call[None]) -> txn_wire.InitProducerIdResponse:
    """InitProducerId."""
    call.principal.require_transactional_id(call.transactional_id)
    service = call.runtime.get(TransactionService)
    producer = await counted("init_producer_id", service.init(call.transactional_id))
    return txn_wire.InitProducerIdResponse(producer.producer_id, producer.producer_epoch)


def _producer(transactional_id: str, body: txn_wire.TxnCommitRequest | txn_wire.EndTxnRequest) -> Producer:
    return Producer(transactional_id, int64(body.producer_id, "producer_id"), body.producer_epoch)
