"""The statements of a batch: like `offsets.store`, it writes committed offsets and the journal.

The fence is that of the normal way (invariant 2): the rows of the groups are locked in a statement of their own, and
compared with the copies in the next one, which writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from psycopg import errors as pg

from groups.store.rows import text_array
from kcoord.database.pool import Connection, Database
from kcoord.process.runtime import Runtime
from kcoord.sql import queries
from offsets.core.types import FetchedOffset, Millis, TopicPartition
from offsets.lane.batch import fetch_parameters, parameters
from offsets.lane.tickets import Ticket

Q = queries("offsets")


class NotWritten(Exception):
    """The batch wrote nothing: one of its requests is too old, or a lock was not available."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch wrote, at `now`: the tickets at these positions."""

    now: Millis
    accepted: frozenset[int]


class BatchStore:
    """Writes batches."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def write(self, tickets: Sequence[Ticket]) -> Outcome:
        """Write the offsets of commits in one transaction, and extend the sessions of their members.

        Those that are not among the accepted have written nothing. Raises NotWritten; ProtocolError
        COORDINATOR_NOT_AVAILABLE: Postgres is not available, and the outcome may be unknown.
        """
        receipts = [ticket.receipt for ticket in tickets if ticket.receipt is not None]
        oldest = min(receipts, key=lambda receipt: receipt.at, default=None)
        hastiest = min(receipts, key=lambda receipt: receipt.at + receipt.patience_ms / 1000, default=None)

        async def work(connection: Connection) -> Outcome:
            sent = {**parameters(tickets), "override": self._db.clock.override_ms}
            try:
                await connection.execute(Q.lock_batch.encode(), {"group": sent["group"]})
                now, database_ms, accepted = await self._db.one(connection, Q.write_batch, sent)
            except pg.LockNotAvailable as error:
                raise NotWritten from error
            self._db.note_clock(connection, database_ms)
            if self._db.refusal(connection, oldest) or self._db.refusal(connection, hastiest):
                raise NotWritten  # each of them is judged by itself where it goes next
            return Outcome(now, frozenset(accepted))

        return await self._db.transaction(work, receipt=lambda: oldest)


class Asked(NamedTuple):
    """The partitions of a group that a fetch asks for."""

    group_id: str
    partitions: Sequence[TopicPartition]


class Version(NamedTuple):
    """Key, version and version tag of a group's row."""

    pk: int | None
    version: int
    version_tag: UUID | None


class FetchStore:
    """Reads the offsets of many groups at once."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def read(
        self, asked: Sequence[Asked], group_ids: Sequence[str]
    ) -> tuple[list[list[FetchedOffset]], dict[str, Version]]:
        """The committed offsets that each of `asked` names, and the versions of these groups, as far as they exist.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
        """
        async with self._db.connection() as connection:
            versions: dict[str, Version] = {}
            if group_ids:
                rows = await self._db.rows(connection, Q.versions_of, {"group_id": text_array(group_ids)})
                versions = {group_id: Version(*version) for group_id, *version in rows}
            rows = await self._db.rows(connection, Q.fetch_batch, fetch_parameters(asked))
        found: list[list[FetchedOffset]] = [[] for _ in asked]
        for number, *offset in rows:
            found[number - 1].append(FetchedOffset(*offset))
        return found, versions
