"""Reading the audit: a page of records, as far as somebody may see them.

Who may do everything sees everything. Others see what was done to groups and topics that they may describe and, with
`describe` on the cluster, Spark runs; but not from where, and of a group, whose records may name topics, the values
only if they may describe all topics. What was refused may name anything, so only the first see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kcoord.access.audit.encoding import Record
from kcoord.access.rights import Operation, Principal, Resource
from kcoord.database.paging import INT64_MAX, Visible
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries

Q = queries("kcoord")


@dataclass(frozen=True, slots=True)
class Sight:
    """What a reader of the audit may see. `runs`: Spark runs; `everything`: all records, with all they say."""

    groups: Visible
    topics: Visible
    runs: bool = False
    everything: bool = False

    @classmethod
    def of(cls, principal: Principal) -> Sight:
        """That of a principal."""
        runs = principal.may_cluster(Operation.DESCRIBE)
        everything = principal.administers  # as for tokens, which can be given any right
        return cls(principal.visible(Resource.GROUP), principal.visible(Resource.TOPIC), runs, everything)

    def parameters(self) -> dict[str, Any]:
        """In the form that statements take."""
        return {
            "everything": self.everything,
            "runs": self.runs,
            **self.groups.parameters("group"),
            **self.topics.parameters("topic"),
        }

    def seen(self, record: Record) -> Record:
        """A record without what must not be seen of it."""
        if self.everything:
            return record
        record = replace(record, address="", request_id="", principal_id="")
        return replace(record, before=None, after=None, reason="") if self.hides_values(record) else record

    def hides_values(self, record: Record) -> bool:
        """The values of a record and its reason are not shown, whether or not it has any."""
        return record.resource == "group" and not self.topics.unlimited and not self.everything


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which records: None does not restrict them. `who` and `name` are parts of names; `since` inclusive, `until` not.

    `resources`: kinds of things; `before`: records before this number.
    """

    acts: Sequence[str] | None = None
    resources: Sequence[str] | None = None
    result: str | None = None
    who: str | None = None
    name: str | None = None
    since: int | None = None
    until: int | None = None
    before: int | None = None


async def read_records(
    db: Database, connection: Connection, sight: Sight, wanted: AuditFilter, limit: int
) -> tuple[Sequence[Record], int | None]:
    """Records, newest first, and before which number the next page begins; None on the last page."""
    parameters = {
        "acts": None if wanted.acts is None else list(wanted.acts),
        "resources": None if wanted.resources is None else list(wanted.resources),
        "result": wanted.result,
        "who": wanted.who,
        "name": wanted.name,
        "since": 0 if wanted.since is None else wanted.since,
        "until": INT64_MAX if wanted.until is None else wanted.until,
        "before_seq": INT64_MAX if wanted.before is None else wanted.before,
        "limit": limit + 1,
        **sight.parameters(),
    }
    found = await db.records(connection, Record, Q.list_audit, parameters)
    records = [sight.seen(record) for record in found[:limit]]
    return records, records[-1].seq if len(found) > limit else None
