"""What people and tokens changed, from every record that the service keeps, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.rows import Millis
from kcoord.database.pool import Database
from kcoord.rest.paging import INT64_MAX
from kcoord.sql import queries

Q = queries("frontend")

PAGE_SIZE = 50
SOURCES = ("admin", "event", "plan", "run", "topic")

AuditKey = tuple[Millis, str, str]
"""Instant, source and key within it: the place of an act in the list."""

AFTER_ALL = (INT64_MAX, "zzzz", "")


@dataclass(frozen=True, slots=True)
class Act:
    """Something that a person or token did. `who` "": not recorded. `name`: the group, topic, run or row it is about.

    `detail` by source: of an event as in `groups.core.model.events`; plan_id, run_id and what else is known.
    """

    at: Millis
    source: str
    key: str
    who: str
    act: str
    name: str
    generation_id: int
    member_id: str | None
    detail: Mapping[str, Any]

    @property
    def place(self) -> AuditKey:
        """Its place in the list."""
        return self.at, self.source, self.key


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which acts: None does not restrict them. `who` and `name` are parts of names; `since` inclusive, `until` not."""

    sources: Sequence[str] = SOURCES
    kinds: Sequence[str] | None = None
    who: str | None = None
    name: str | None = None
    since: Millis | None = None
    until: Millis | None = None
    before: AuditKey | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """A page of acts, newest first. `next`: where the next page begins; None on the last page."""

    now: Millis
    acts: tuple[Act, ...]
    next: AuditKey | None


async def audit(db: Database, wanted: AuditFilter, limit: int = PAGE_SIZE) -> Audit:
    """A page of acts. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
    start: AuditKey = AFTER_ALL if wanted.until is None else (wanted.until, "", "")
    at, source, key = start if wanted.before is None else min(start, wanted.before)
    parameters = {
        "sources": list(wanted.sources),
        "kinds": None if wanted.kinds is None else list(wanted.kinds),
        "who": wanted.who,
        "name": wanted.name,
        "since": wanted.since or 0,
        "before_at": at,
        "before_source": source,
        "before_key": key,
        "limit": limit + 1,
    }
    async with db.snapshot() as connection:
        found = await db.records(connection, Act, Q.audit_page, parameters)
        now = await db.now_ms(connection)
    acts = tuple(found[:limit])
    return Audit(now, acts, acts[-1].place if len(found) > limit else None)
