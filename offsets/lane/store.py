"""The statements of a flight: like `offsets.store`, it writes committed offsets and the journal.

The fence is that of the normal way (invariant 2): the rows of the groups are locked in a statement of their own, and
compared with the copies in the next one, which writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import errors as pg

from kcoord.database.pool import Connection, Database
from kcoord.database.request_age import Receipt
from kcoord.process.runtime import Runtime
from kcoord.sql import queries
from offsets.core.types import Millis
from offsets.lane.bookings import Booking
from offsets.lane.flight import parameters

Q = queries("offsets")


class NotWritten(Exception):
    """The flight wrote nothing: one of its requests is too old, or a lock was not available."""


@dataclass(frozen=True, slots=True)
class Flown:
    """What a flight wrote, at `now`: the bookings at these positions."""

    now: Millis
    accepted: frozenset[int]


class FlightStore:
    """Writes flights."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def write(self, bookings: Sequence[Booking]) -> Flown:
        """Write the offsets of commits in one transaction, and extend the sessions of their members.

        Those that are not among the accepted have written nothing. Raises NotWritten; ProtocolError
        COORDINATOR_NOT_AVAILABLE: Postgres is not available, and the outcome may be unknown.
        """
        oldest = _oldest(bookings)

        async def work(connection: Connection) -> Flown:
            sent = {**parameters(bookings), "override": self._db.clock.override_ms()}
            try:
                await connection.execute(Q.lock_flight.encode(), {"group": sent["group"]})
                now, database_ms, accepted = await self._db.one(connection, Q.write_flight, sent)
            except pg.LockNotAvailable as error:
                raise NotWritten from error
            self._db.note_clock(connection, database_ms)
            if self._db.refusal(connection, oldest) is not None:
                raise NotWritten  # each of them is judged by itself where it goes next
            return Flown(now, frozenset(accepted))

        return await self._db.transaction(work, receipt=lambda: oldest)


def _oldest(bookings: Sequence[Booking]) -> Receipt | None:
    receipts = (booking.receipt for booking in bookings if booking.receipt is not None)
    return min(receipts, key=lambda receipt: receipt.at, default=None)
