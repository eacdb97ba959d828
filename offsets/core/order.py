"""Which commits were overtaken: a later one of a partition was written before them.

A client that gives up sends its offsets elsewhere. If the first server was frozen, or waited for Postgres, and goes on
then, its older commit would turn the newer one back. Heartbeats have the same rule (`groups.core.consumer.checks`,
`check_order`). Commits that came to one process are written there in their order, so that only those of others count.
"""

from __future__ import annotations

from kcoord.protocol.errors import Error
from offsets.core.types import Millis, OffsetCommitReply

OVERTAKEN_MS: Millis = 500
"""By how much a commit must have been received before the other one was written. Clients that give up have waited for
longer. Clocks of processes differ by less, and shorter gaps of a process are not seen (`kcoord.database.request_age`).
"""


def overtaken_before(now: Millis, age_ms: Millis) -> Millis | None:
    """A commit of this age is overtaken by one of its partitions written later than this, up to `now`.

    None: it is so young that none can have overtaken it.
    """
    return None if age_ms <= OVERTAKEN_MS else now - age_ms + OVERTAKEN_MS


def overtaken(group_id: str, ago_ms: Millis) -> OffsetCommitReply:
    """COORDINATOR_NOT_AVAILABLE: nothing was written. `ago_ms`: how long ago the later commit was written.

    Differs from Kafka: there commits of different connections are written in whatever order they are handled.
    """
    detail = (
        f"a later commit of group {group_id!r} on one of these partitions was written {ago_ms} ms ago, before this one"
    )
    return OffsetCommitReply(Error.COORDINATOR_NOT_AVAILABLE, detail=detail)
