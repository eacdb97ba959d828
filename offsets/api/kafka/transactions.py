"""Transactional commits: InitProducerId, AddOffsetsToTxn, TxnOffsetCommit, EndTxn; and what is under way.

Source: KIP-98, 360, 447, 588, 664, 890, 994 and 1319 for the versions; offsets.md 2 and 4 for the rules, which are the
service's.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial, wraps

from groups.core.model.group import partition_of
from kcoord.access.rights import Operation, Principal
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.types import REMEDIES, TRANSACTIONAL_ID_PATTERN
from kcoord.door.kafka.api import PRODUCER_FENCED, TRANSACTIONAL_ID_NOT_FOUND, Answer, Call
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import Error, ProtocolError
from offsets.api.handlers import Asked, commit_in_transaction
from offsets.api.kafka.commits import answer, check_identity, topics_of
from offsets.commits.transactions.service import TransactionService, counted
from offsets.core.transactions import Producer, Transaction

Handler = Callable[[Call, Fields], Awaitable[Answer]]

NO_PRODUCER = -1
EMPTY, ONGOING = "Empty", "Ongoing"
STATES = {
    EMPTY,
    ONGOING,
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
}
"""Kafka's states of a transaction. Here one ends at once, so that only the first two are seen."""
OFFSETS_TOPIC = "__consumer_offsets"
GIVES_EPOCHS = 5
"""The first version of EndTxn whose clients take the epoch of their next transaction from its answer."""
KNOWS_EPOCHS = 6
"""The first version of TxnOffsetCommit whose clients know member epochs (KIP-1319)."""
_TRANSACTIONAL_ID = re.compile(TRANSACTIONAL_ID_PATTERN)


def _unless_fenced(first: int) -> Callable[[Handler], Handler]:
    """Tell clients from version `first` on that a producer was superseded by PRODUCER_FENCED (KIP-588)."""

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        async def handle(call: Call, request: Fields) -> Answer:
            try:
                return await handler(call, request)
            except ProtocolError as refusal:
                if refusal.error is Error.INVALID_PRODUCER_EPOCH and call.version >= first:
                    return {"error_code": PRODUCER_FENCED, "producer_id": NO_PRODUCER, "producer_epoch": -1}
                raise

        return handle

    return decorate


@_unless_fenced(4)
async def init_producer_id(call: Call, request: Fields) -> Answer:
    """InitProducerId 0 to 5. Without a transactional id: for a producer that only wants to be idempotent."""
    service = call.runtime.get(TransactionService)
    transactional_id = request.transactional_id
    if transactional_id is None:
        work = service.init_without_id()
    else:
        _require(call.principal, transactional_id)
        work = service.init(transactional_id, _expected(request))
    producer = await counted("init_producer_id", work)
    return {"error_code": 0, "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}


def _expected(request: Fields) -> Producer | None:
    if request.get("producer_id", NO_PRODUCER) == NO_PRODUCER:
        return None
    return _producer(request)


@_unless_fenced(2)
async def add_offsets_to_txn(call: Call, request: Fields) -> Answer:
    """AddOffsetsToTxn 0 to 4."""
    _require(call.principal, request.transactional_id)
    call.principal.require_group(Operation.READ, check_group_id(request.group_id))
    await counted("add_offsets_to_txn", call.runtime.get(TransactionService).begin(_producer(request)))
    return {"error_code": 0}


async def txn_offset_commit(call: Call, request: Fields) -> Answer:
    """TxnOffsetCommit 0 to 6, of topics by id from 6 on.

    It also does what AddOffsetsToTxn would: clients of version 5 do not send that any more (KIP-890).

    Differs from Kafka: it does so below version 5 too, where a broker refuses a commit without AddOffsetsToTxn.
    """
    principal = call.principal
    _require(principal, request.transactional_id)
    group_id = check_group_id(request.group_id, may_be_empty=True)
    principal.require_group(Operation.READ, group_id)
    check_identity(request)
    asked = Asked(
        topics_of(request.topics),
        request.get("generation_id", -1),
        request.get("member_id", ""),
        request.get("group_instance_id", None),
    )
    finish = partial(answer, request.topics, asked)
    knows_epochs = call.version >= KNOWS_EPOCHS
    work = commit_in_transaction(
        call.over_http(None, group_id), _producer(request), asked, finish, knows_epochs=knows_epochs
    )
    return await work


@_unless_fenced(2)
async def end_txn(call: Call, request: Fields) -> Answer:
    """EndTxn 0 to 5. From 5 on each transaction has an epoch of its own (KIP-890), and the answer has the next one.

    Differs from Kafka: to commit where nothing is pending is no error.

    Differs from Kafka: the epoch that ended commits nothing after the answer; a broker answers before it has written
    the end marker, and what the epoch commits until then becomes part of the transaction that has ended.
    """
    _require(call.principal, request.transactional_id)
    service = call.runtime.get(TransactionService)
    goes_on = call.version >= GIVES_EPOCHS
    work = service.end(_producer(request), committed=request.committed, goes_on=goes_on)
    ended = await counted("end_txn", work)
    if ended.following is None:
        return {"error_code": 0}
    following = ended.following
    return {"error_code": 0, "producer_id": following.producer_id, "producer_epoch": following.producer_epoch}


async def list_transactions(call: Call, request: Fields) -> Answer:
    """ListTransactions 0 to 1. Transactional ids that the caller may not use are left out."""
    found = await call.runtime.get(TransactionService).transactions(longer_ms=request.get("duration_filter", -1))

    def is_wanted(transaction: Transaction) -> bool:
        return (
            call.principal.may_transactional_id(transaction.transactional_id)
            and (not request.state_filters or _state(transaction) in request.state_filters)
            and (not request.producer_id_filters or transaction.producer_id in request.producer_id_filters)
        )

    return {
        "error_code": 0,
        "unknown_state_filters": [name for name in request.state_filters if name not in STATES],
        "transaction_states": [
            {
                "transactional_id": transaction.transactional_id,
                "producer_id": transaction.producer_id,
                "transaction_state": _state(transaction),
            }
            for transaction in found
            if is_wanted(transaction)
        ],
    }


def _state(transaction: Transaction) -> str:
    return EMPTY if transaction.opened_at is None else ONGOING


async def describe(call: Call, request: Fields) -> Answer:
    """DescribeTransactions 0. The topic of a transaction is Kafka's `__consumer_offsets`, as it has offsets only."""
    allowed = [name for name in request.transactional_ids if call.principal.may_transactional_id(name)]
    found = {each.transactional_id: each for each in await call.runtime.get(TransactionService).transactions(allowed)}
    timeout_ms = call.runtime.config.int("transaction.max.timeout.ms")
    partitions = call.runtime.config.int("offsets.topic.num.partitions")

    def described(name: str) -> Answer:
        transaction = found.get(name)
        if transaction is None:
            refused = (
                TRANSACTIONAL_ID_NOT_FOUND if name in allowed else Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code
            )
            return _undescribed(name, refused)
        numbers = sorted({partition_of(group_id, partitions) for group_id in transaction.groups})
        return {
            "error_code": 0,
            "transactional_id": name,
            "transaction_state": _state(transaction),
            "transaction_timeout": timeout_ms,
            "transaction_start_time": -1 if transaction.opened_at is None else transaction.opened_at,
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.producer_epoch,
            "topics": [{"topic": OFFSETS_TOPIC, "partitions": numbers}] if numbers else (),
        }

    return {"transaction_states": [described(name) for name in request.transactional_ids]}


def refused_descriptions(request: Fields, version: int, code: int, detail: str) -> Answer:
    """The answer to DescribeTransactions with the same error for every transactional id."""
    return {"transaction_states": [_undescribed(name, code) for name in request.transactional_ids]}


def _undescribed(name: str, code: int) -> Answer:
    return {
        "error_code": code,
        "transactional_id": name,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": (),
    }


def _require(principal: Principal, transactional_id: str) -> None:
    """Raise INVALID_REQUEST, or TRANSACTIONAL_ID_AUTHORIZATION_FAILED, unless the caller may use the id."""
    if not _TRANSACTIONAL_ID.match(transactional_id):
        raise ProtocolError(Error.INVALID_REQUEST, f"transactional_id: {REMEDIES['transactional_id']}")
    principal.require_transactional_id(transactional_id)


def _producer(request: Fields) -> Producer:
    """The producer that a request names. Raises INVALID_REQUEST for numbers that no producer has."""
    if request.producer_id < 0 or request.producer_epoch < 0:
        raise ProtocolError(Error.INVALID_REQUEST, "producer_id, producer_epoch: not those of a producer")
    return Producer(request.transactional_id, request.producer_id, request.producer_epoch)
