"""A page of the audit's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.rows import Millis
from kcoord.audit.encoding import Record
from kcoord.audit.reading import AuditFilter, Sight, read_records
from kcoord.database.pool import Database

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Audit:
    """A page of records, newest first. `next`: before which number the next page begins; None on the last page."""

    now: Millis
    records: Sequence[Record]
    next: int | None


async def audit(db: Database, sight: Sight, wanted: AuditFilter, limit: int = PAGE_SIZE) -> Audit:
    """A page of records, as far as its reader may see them. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
    async with db.snapshot() as connection:
        records, following = await read_records(db, connection, sight, wanted, limit)
        now = await db.now_ms(connection)
    return Audit(now, records, following)
