"""The store of open transactions: the only writer of producers and of pending offsets.

The order of locks is that of `sql/transactions.sql`: groups by their keys, then one producer.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from groups.store.locked import LockedGroup
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.transactions import LastEnd, PendingOffset, Producer, Transaction
from offsets.core.types import ChangeKind, FetchedOffset, Millis, OffsetRecord, Provenance, TopicPartition

Q = queries("offsets")

DRAWN_IDS = 8
LARGEST_DRAWN_ID = 2**53 - 1
"""The largest integer that every JSON parser represents exactly. Clients may choose ids up to 2^63 - 1."""


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """A group in which a transaction may have something pending. `generation_id`: for a consumer group its epoch."""

    pk: int
    group_id: str
    generation_id: int


@dataclass(frozen=True, slots=True)
class Held:
    """A transactional id inside the database transaction that holds the lock of its producer, and of the groups in
    which it has something pending. `producer` None: none is registered, so no row can be locked. `now` in ms.
    """

    connection: Connection
    groups: tuple[HeldGroup, ...]
    producer: Producer | None
    pending: tuple[PendingOffset, ...]
    now: Millis


class StartOver(Exception):
    """Another request of the transactional id came in between: the database transaction must be run again."""


class TransactionStore:
    """Reads and writes producers and pending offsets."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def find(self, connection: Connection, transactional_id: str) -> Producer | None:
        """The current producer of a transactional id."""
        return await self._producer(connection, Q.find_producer, transactional_id)

    async def is_known(self, connection: Connection, producer_id: int) -> bool:
        """Whether some transactional id has this producer."""
        return bool(await self._db.value(connection, Q.is_known_producer, {"producer_id": producer_id}))

    async def share(self, connection: Connection, transactional_id: str) -> Producer | None:
        """The producer of a transactional id, which cannot be replaced until the transaction ends. For commits."""
        return await self._producer(connection, Q.share_producer, transactional_id)

    async def lock(self, connection: Connection, transactional_id: str) -> Held:
        """Lock the groups that a transaction wrote to, then its producer, and read what is pending.

        Raises StartOver if it wrote to another group in between.
        """
        keys = await self._db.column(connection, Q.groups_of_producer, {"transactional_id": transactional_id})
        groups = await self._db.records(connection, HeldGroup, Q.lock_groups, {"groups": keys}) if keys else []
        producer = await self._producer(connection, Q.lock_producer, transactional_id)
        now = await self._db.now_ms(connection)
        if producer is None:
            return Held(connection, tuple(groups), None, (), now)
        parameters = {"producer_id": producer.producer_id}
        pending = await self._db.records(connection, PendingOffset, Q.pending_of_producer, parameters)
        if not {offset.group for offset in pending} <= {group.pk for group in groups}:
            raise StartOver
        return Held(connection, tuple(groups), producer, tuple(pending), now)

    async def register(self, held: Held, producer: Producer) -> bool:
        """Write a first producer; False if the transactional id now has one, or the producer another id."""
        parameters = {**_identity(producer), "now": held.now}
        return await self._db.value(held.connection, Q.register_producer, parameters) is not None

    async def replace(self, held: Held, producer: Producer, *, ended: bool | None = None) -> None:
        """Abort what is pending, and register `producer` for its transactional id.

        `ended`: the registered one has ended its transaction with that, and `producer` is what it goes on as; this is
        what `last_end` finds. None: it is fenced.
        """
        await self.end(held, ())
        parameters = {**_identity(producer), "committed": ended, "now": held.now}
        await held.connection.execute(Q.replace_producer.encode(), parameters)

    async def last_end(self, held: Held) -> LastEnd | None:
        """The end that gave the registered producer its epoch; None: something else did."""
        assert held.producer is not None
        parameters = {"transactional_id": held.producer.transactional_id}
        return await self._db.record(held.connection, LastEnd, Q.last_end, parameters)

    async def touch(self, held: Held) -> None:
        """Record that the producer is active."""
        assert held.producer is not None
        parameters = {"transactional_id": held.producer.transactional_id, "now": held.now}
        await held.connection.execute(Q.touch_producer.encode(), parameters)

    async def forget(self, before: Millis, limit: int) -> int:
        """Remove up to `limit` producers that ended no transaction since `before` (ms) and have nothing pending."""

        async def work(connection: Connection) -> int:
            idle = await self._db.column(connection, Q.lock_idle_producers, {"before": before, "limit": limit})
            return len(await self._db.column(connection, Q.forget_producers, {"producers": idle}))

        return await self._db.transaction(work)

    async def fresh_id(self, connection: Connection) -> int:
        """An unused producer id. Raises COORDINATOR_NOT_AVAILABLE if all candidates are taken."""
        free = await self._db.value(connection, Q.free_producer_id, {"candidates": drawn_ids()})
        if free is None:
            raise ProtocolError(
                Error.COORDINATOR_NOT_AVAILABLE,
                f"all {DRAWN_IDS} producer ids that were drawn are in use; initialize the transactional id again",
            )
        return int(free)

    async def write(
        self, locked: LockedGroup, producer: Producer, records: Sequence[OffsetRecord], provenance: Provenance
    ) -> None:
        """Write pending offsets, replacing what the producer had pending there. Under the group's lock and `share`.

        No line of the journal: nothing is committed yet.
        """
        if not records:
            return
        await locked.connection.execute(
            Q.write_pending.encode(),
            {
                "producer_id": producer.producer_id,
                "group": locked.pk,
                "now": locked.now,
                "member_id": provenance.member_id,
                "generation_id": provenance.generation_id,
                "client_id": provenance.client_id,
                "principal": provenance.principal,
                "topic": [record.topic for record in records],
                "partition": [record.partition for record in records],
                "committed_offset": [record.offset for record in records],
                "leader_epoch": [record.leader_epoch for record in records],
                "metadata": [record.metadata for record in records],
            },
        )

    async def end(self, held: Held, committed: Sequence[PendingOffset]) -> None:
        """Make `committed` the committed offsets, with a line of the journal each. Nothing stays pending."""
        assert held.producer is not None
        if committed:
            parameters = {
                "producer_id": held.producer.producer_id,
                "transactional_id": held.producer.transactional_id,
                "kind": ChangeKind.TXN_COMMIT.value,
                "now": held.now,
                "group": [offset.group for offset in committed],
                "topic": [offset.topic for offset in committed],
                "partition": [offset.partition for offset in committed],
            }
            await held.connection.execute(Q.commit_pending.encode(), parameters)
        if held.pending:
            await held.connection.execute(Q.remove_pending.encode(), {"producer_id": held.producer.producer_id})

    async def fetch(
        self, connection: Connection, group_id: str, partitions: Sequence[TopicPartition] | None
    ) -> tuple[list[FetchedOffset], set[TopicPartition]]:
        """Committed offsets of a group (None: all), and partitions on which a transaction is open. Under its lock."""
        named: dict[str, object] = {"group_id": group_id}
        statement = Q.fetch_all
        if partitions is not None:
            statement = Q.fetch_named
            named |= {"topic": [topic for topic, _ in partitions], "partition": [p for _, p in partitions]}
        offsets = await self._db.records(connection, FetchedOffset.stored, statement, named)
        pending = await self._db.rows(connection, Q.pending_partitions, {"group_id": group_id})
        return offsets, {(topic, partition) for topic, partition in pending}

    async def abandoned(self, before: Millis, limit: int) -> list[str]:
        """Transactional ids whose transaction has been open since `before` (ms) or longer, oldest first."""
        async with self._db.connection() as connection:
            return await self._db.column(connection, Q.abandoned_transactions, {"before": before, "limit": limit})

    async def transactions(self, connection: Connection, transactional_ids: Sequence[str] | None) -> list[Transaction]:
        """Those of these transactional ids, or of all, in their order; ids that are not registered are left out."""
        parameters = {"transactional_id": None if transactional_ids is None else list(transactional_ids)}
        return await self._db.records(connection, Transaction, Q.list_transactions, parameters)

    async def _producer(self, connection: Connection, statement: str, transactional_id: str) -> Producer | None:
        return await self._db.record(connection, Producer, statement, {"transactional_id": transactional_id})


def drawn_ids() -> list[int]:
    """Candidates for a new producer id.

    Random, because clients may choose ids themselves: in a sequence they could take all following ids. Even a billion
    producers leave each candidate free with a probability of more than 1 - 10^-6.
    """
    return [secrets.randbelow(LARGEST_DRAWN_ID + 1) for _ in range(DRAWN_IDS)]


def _identity(producer: Producer) -> dict[str, object]:
    return {
        "transactional_id": producer.transactional_id,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
    }
