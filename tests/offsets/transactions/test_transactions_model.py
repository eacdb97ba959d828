"""Transactional and plain commits, ends, takeovers and deletions in any order: the rows are as a small model says."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.deletion import OffsetDeletion
from offsets.commits.service import OffsetService
from offsets.commits.transactions.service import TransactionService
from offsets.core.deletion import OffsetDelete
from offsets.core.transactions import Producer, TransactionEnd
from offsets.core.types import OffsetFetch, OffsetFetchReply
from tests.support.commits import OffsetCommit, PartitionCommit
from tests.support.offsets import reply_to, taken

pytestmark = pytest.mark.whole("random sequences; test_transactions has the rules one by one")

T = TypeVar("T")

TOPIC = "orders"
PARTITIONS = (0, 1)
TIMEOUT_MS = 900_000
PRODUCER_IDS = itertools.count(1_000_000)

groups = st.sampled_from("gggh")
ids = st.sampled_from("ttu")
steps = st.sampled_from((0, 0, 0, 0, 0, 0, -1, 1))
partitions = st.sets(st.sampled_from(PARTITIONS), min_size=1)

Place = tuple[str, int]


@dataclass
class Transaction:
    """A transactional id in the model. `pending`: offset and turn of writing, by group and partition."""

    producer_id: int | None = None
    epoch: int = -1
    pending: dict[Place, tuple[int, int]] = field(default_factory=dict)
    opened: dict[Place, int] = field(default_factory=dict)

    def fence(self, epoch: int) -> None:
        self.epoch = epoch
        self.drop()

    def drop(self) -> None:
        self.pending.clear()
        self.opened.clear()


class Transactions(RuleBasedStateMachine):
    """Two groups, two partitions, two transactional ids. A turn is a number for each write, in their order."""

    database: str

    def __init__(self) -> None:
        super().__init__()
        self.run = uuid.uuid4().hex
        self.runner = asyncio.Runner()
        self.clock = VirtualClock(1_000_000)
        self.runtime = Runtime(Config({}), self.database, self.clock)
        self.wait(self.runtime.start())
        self.turns = itertools.count(1)
        self.committed: dict[Place, tuple[int, int]] = {}
        self.lines: list[tuple[str, str, int, int | None]] = []
        self.transactions = {name: Transaction() for name in "tu"}

    def teardown(self) -> None:
        """The journal has a line for each change of a committed offset, and no other."""
        try:
            self.wait(self.check_journal())
        finally:
            self.wait(self.runtime.stop())
            self.runner.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def name(self, short: str) -> str:
        """A name of this example: the rows of earlier ones are still there."""
        return f"{short}-{self.run}"

    @property
    def service(self) -> TransactionService:
        return self.runtime.get(TransactionService)

    def commit_of(self, group: str, chosen: set[int], offset: int) -> OffsetCommit:
        entries = tuple(PartitionCommit(TOPIC, partition, offset) for partition in sorted(chosen))
        return OffsetCommit(self.name(group), "", None, -1, entries)

    def error_of(self, work: Coroutine[Any, Any, Any]) -> Error:
        try:
            reply = self.wait(work)
        except ProtocolError as error:
            return error.error
        return getattr(reply, "error", Error.NONE)

    def producer(self, short: str, step: int) -> Producer:
        """The producer that is registered (0), one before it (-1) or one that takes over (1)."""
        transaction = self.transactions[short]
        if transaction.producer_id is None:
            return Producer(self.name(short), next(PRODUCER_IDS), 0)
        return Producer(self.name(short), transaction.producer_id, max(transaction.epoch + step, 0))

    def let_in(self, short: str, producer: Producer) -> bool:
        """What the model does when a producer speaks; False where it was fenced."""
        transaction = self.transactions[short]
        if producer.producer_epoch < transaction.epoch:
            return False
        if producer.producer_epoch > transaction.epoch:
            transaction.fence(producer.producer_epoch)
        return True

    @rule(group=groups, chosen=partitions)
    def commit(self, group: str, chosen: set[int]) -> None:
        turn = next(self.turns)
        assert (
            self.error_of(reply_to(self.runtime.get(OffsetService), self.commit_of(group, chosen, turn))) is Error.NONE
        )
        for partition in chosen:
            self.committed[group, partition] = turn, turn
            self.lines.append(("commit", group, partition, turn))

    @rule(short=ids, group=groups, chosen=partitions, step=steps)
    def txn_commit(self, short: str, group: str, chosen: set[int], step: int) -> None:
        turn, producer = next(self.turns), self.producer(short, step)
        commit = self.wait(taken(self.runtime.get(TopicService), self.commit_of(group, chosen, turn)))
        error = self.error_of(self.service.commit(producer, commit))
        if not self.let_in(short, producer):
            assert error is Error.INVALID_PRODUCER_EPOCH
            return
        assert error is Error.NONE
        transaction = self.transactions[short]
        transaction.producer_id = producer.producer_id
        for partition in chosen:
            transaction.pending[group, partition] = turn, turn
            transaction.opened.setdefault((group, partition), self.clock.now_ms())

    @rule(short=ids, committed=st.sampled_from((True, True, False)), step=steps)
    def end(self, short: str, committed: bool, step: int) -> None:
        producer, transaction = self.producer(short, step), self.transactions[short]
        if transaction.producer_id is None:
            assert self.wait(self.service.end(producer, committed=committed)) == TransactionEnd()
            return
        if not self.let_in(short, producer):
            assert self.error_of(self.service.end(producer, committed=committed)) is Error.INVALID_PRODUCER_EPOCH
            return
        winners = {
            place: offset
            for place, offset in transaction.pending.items()
            if committed and (place not in self.committed or self.committed[place][1] < offset[1])
        }
        expected = TransactionEnd(len(transaction.pending), len(winners))
        assert self.wait(self.service.end(producer, committed=committed)) == expected
        self.committed |= winners
        self.lines += [("txn_commit", *place, offset) for place, (offset, _) in winners.items()]
        transaction.drop()

    @rule(short=ids)
    def init(self, short: str) -> None:
        producer = self.wait(self.service.init(self.name(short)))
        transaction = self.transactions[short]
        assert producer.producer_epoch == transaction.epoch + 1
        assert transaction.producer_id in (None, producer.producer_id)
        transaction.producer_id = producer.producer_id
        transaction.fence(producer.producer_epoch)

    @rule(group=groups, chosen=partitions)
    def delete_offsets(self, group: str, chosen: set[int]) -> None:
        """A tombstone takes what is pending along."""
        delete = OffsetDelete(self.name(group), tuple((TOPIC, partition) for partition in sorted(chosen)))
        self.wait(self.runtime.get(OffsetDeletion).delete(delete))
        self.forget("delete", {(group, partition) for partition in chosen})

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        self.wait(self.runtime.get(GroupService).delete(self.name(group)))
        self.forget("group_delete", {(group, partition) for partition in PARTITIONS})

    def forget(self, kind: str, places: set[Place]) -> None:
        pending = [transaction.pending for transaction in self.transactions.values()]
        for place in places:
            if place in self.committed or any(place in found for found in pending):
                self.lines.append((kind, *place, None))
            self.committed.pop(place, None)
            for transaction in self.transactions.values():
                transaction.pending.pop(place, None)
                transaction.opened.pop(place, None)

    @rule(ms=st.sampled_from((1, 1, 1, TIMEOUT_MS // 2, TIMEOUT_MS)))
    def time_passes(self, ms: int) -> None:
        self.clock.advance(ms)
        self.wait(self.service.abort_abandoned())
        for transaction in self.transactions.values():
            if any(self.clock.now_ms() - at >= TIMEOUT_MS for at in transaction.opened.values()):
                transaction.fence(transaction.epoch + 1)

    @invariant()
    def fetches_say_what_the_model_says(self) -> None:
        for group in "gh":
            unstable = {place for transaction in self.transactions.values() for place in transaction.pending}
            plain = {p: self.committed[group, p][0] for p in PARTITIONS if (group, p) in self.committed}
            stable = plain | {p: Error.UNSTABLE_OFFSET_COMMIT for p in PARTITIONS if (group, p) in unstable}
            assert self.fetched(group, stable=False) == plain
            assert self.fetched(group, stable=True) == stable

    def fetched(self, group: str, *, stable: bool) -> dict[int, int | Error]:
        fetch = OffsetFetch(self.name(group), topics=((TOPIC, PARTITIONS),), require_stable=stable)

        async def asked() -> OffsetFetchReply:
            return await self.runtime.get(OffsetService).fetch(fetch)

        offsets = self.wait(asked()).offsets
        found = {o.partition: o.committed_offset if o.error is Error.NONE else o.error for o in offsets}
        return {partition: value for partition, value in found.items() if value != -1}

    async def check_journal(self) -> None:
        query = (
            "select kind, split_part(group_name, '-', 1), partition, committed_offset from offset_commit_log"
            " where group_name = any(%(groups)s)"
        )
        async with self.runtime.db.connection() as connection:
            rows = await self.runtime.db.rows(connection, query, {"groups": [self.name(group) for group in "gh"]})
        assert sorted(rows, key=repr) == sorted(self.lines, key=repr)


def test_the_store_of_transactions_does_what_the_model_does(database: str) -> None:
    class OnThisDatabase(Transactions):
        pass

    OnThisDatabase.database = database
    with asyncio.Runner() as runner:
        runner.run(make_topic(database))
    limits = settings(max_examples=15, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(OnThisDatabase, settings=limits)  # type: ignore[no-untyped-call]


async def make_topic(database: str) -> None:
    runtime = Runtime(Config({}), database, VirtualClock(1_000_000))
    await runtime.start()
    await runtime.get(TopicService).create(TOPIC, len(PARTITIONS))
    await runtime.stop()
