"""How fast members read: what they committed in the last minutes, in records per minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.rows import Millis
from kcoord.database.pool import Connection, Database
from kcoord.sql import queries

Q = queries("frontend")

WINDOW_MS = 300_000
MINUTE_MS = 60_000
LEAST_MS = 15_000
"""A member that began to commit a shorter while ago has no rate yet."""
MOST_PARTITIONS = 100
"""A member that owns more is not rated in a table: each partition costs a look into the journal."""
MOST_LINES = 300
"""Lines of the journal that are searched, on each partition, for the first commit of its owner within the window."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a member committed on the partitions that it owns. `since` (ms): its first commit within the window.

    `records`: from there to the committed offsets. None: it committed nothing.
    """

    member_id: str
    records: int | None
    since: Millis | None


def per_minute(progress: Progress, now: Millis) -> int | None:
    """Records that a member reads in a minute; None if it has just begun."""
    if progress.since is None or progress.records is None:
        return 0
    span = now - progress.since
    return None if span < LEAST_MS else round(progress.records * MINUTE_MS / span)


async def member_rates(
    db: Database,
    connection: Connection,
    group: Mapping[str, Any],
    member_ids: Sequence[str],
    now: Millis,
    most: int = MOST_PARTITIONS,
) -> dict[str, int]:
    """Records per minute by member id: of members that own partitions, at most `most`, and have not just begun.

    `group`: its key (`pk`), `group_id`, and the parameters of the viewer. A partition counts for its present owner,
    from the owner's first commit on it.
    """
    asked = {
        **group, "member_ids": list(member_ids), "since": now - WINDOW_MS, "now": now, "most": most,
        "lines": MOST_LINES,
    }  # fmt: skip
    found = await db.records(connection, Progress, Q.member_progress, asked)
    rates = ((one.member_id, per_minute(one, now)) for one in found)
    return {member_id: rate for member_id, rate in rates if rate is not None}
