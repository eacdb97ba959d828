"""What answers from memory read and write. Sessions are written behind, for all groups together.

Source: docs/models, rules 15 to 18.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from groups.core.model.types import Millis
from groups.store.store import Copy
from kcoord.database.notifications import ECHO
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime

if TYPE_CHECKING:
    from groups.engine.heartbeats import Unstored

Q = queries("groups")

SESSIONS_AT_ONCE = 1_000
"""Of one statement: others have their turn while it runs, and putting together what it is sent takes a few ms."""


class Flushed(NamedTuple):
    """What became of sessions that were to be stored. `skipped`: another transaction has their rows."""

    gone: Sequence[Unstored]
    skipped: Sequence[Unstored]


class NodeEnded(Exception):
    """The node was declared dead: what it renewed in memory counts no longer."""


class LaneStore:
    """Sessions that were renewed in memory, and until when this node has stored them."""

    def __init__(self, runtime: Runtime) -> None:
        self._db: Database = runtime.db

    async def open(self, incarnation: int) -> Millis:
        """Sessions that end from now on wait for this node; returns the time. Raises NodeEnded."""
        async with self._db.connection() as connection:
            parameters = {"incarnation": incarnation, "override": self._db.clock.override_ms}
            now = await self._db.value(connection, Q.open_lane, parameters)
        if now is None:
            raise NodeEnded
        return int(now)

    async def close(self, incarnation: int) -> None:
        """This node renews nothing in memory any more, and has stored all that it did."""
        async with self._db.connection() as connection:
            await connection.execute(Q.close_lane.encode(), {"incarnation": incarnation})

    async def flush(self, incarnation: int, sessions: Sequence[Unstored], until: Millis, echo: str) -> Flushed:
        """Store sessions, and that all that were renewed before `until` (ms) are stored, but for the skipped.

        Or cannot end by then: one that is renewed at `until` itself had not ended then either.
        `echo` comes back to this process on the channel ECHO.

        Raises NodeEnded, with the sessions stored all the same; ProtocolError COORDINATOR_NOT_AVAILABLE.
        """

        async def work(connection: Connection) -> tuple[Flushed, bool]:
            await connection.execute(Q.renewals_need_no_flush.encode())
            flushed = await self._store(connection, sessions)
            known_until = min((session.known_until for session in flushed.skipped), default=until)
            parameters = {
                "incarnation": incarnation,
                "until": min(until, known_until),
                "channel": ECHO,
                "echo": echo,
            }
            database_ms = await self._db.value(connection, Q.flushed, parameters)
            if database_ms is not None:
                self._db.note_clock(connection, database_ms)
            return flushed, database_ms is not None

        flushed, is_registered = await self._db.transaction(work, receipt=lambda: None)
        if not is_registered:
            raise NodeEnded
        return flushed

    async def _store(self, connection: Connection, sessions: Sequence[Unstored]) -> Flushed:
        classic = [session for session in sessions if session.again or not session.entry.is_consumer]
        consumer = [session for session in sessions if session.again or session.entry.is_consumer]
        stored = 0
        for part in _parts(classic):
            stored += await self._db.value(connection, Q.flush_members, _columns(part))
        for part in _parts(consumer):
            timeouts = {"timeout_ms": [session.renewal.timeout_ms for session in part]}
            stored += await self._db.value(connection, Q.flush_consumer_members, {**_columns(part), **timeouts})
        return Flushed((), ()) if stored == len(sessions) else await self._missing(connection, sessions)

    async def _missing(self, connection: Connection, sessions: Collection[Unstored]) -> Flushed:
        rows = await self._db.rows(connection, Q.missing_sessions, _columns(sessions))
        is_gone = {(pk, member_id): gone for pk, member_id, gone in rows}
        found: dict[bool, list[Unstored]] = {True: [], False: []}
        for session in sessions:
            gone = is_gone.get((session.entry.pk, session.member_id))
            if gone is not None:
                found[gone].append(session)
        return Flushed(gone=found[True], skipped=found[False])

    async def changed(self, copies: Collection[Copy]) -> set[int]:
        """Keys of the groups whose copies are not current."""
        async with self._db.connection() as connection:
            parameters = {
                "id": [copy.stored.pk for copy in copies],
                "version": [copy.stored.version for copy in copies],
                "version_tag": [copy.stored.version_tag for copy in copies],
            }
            return set(await self._db.column(connection, Q.changed_groups, parameters))


def _parts(sessions: Sequence[Unstored]) -> Iterator[Sequence[Unstored]]:
    return (sessions[first : first + SESSIONS_AT_ONCE] for first in range(0, len(sessions), SESSIONS_AT_ONCE))


def _columns(sessions: Collection[Unstored]) -> dict[str, list[object]]:
    return {
        "group_id": [session.entry.pk for session in sessions],
        "member_id": [session.member_id for session in sessions],
        "at": [session.renewal.at for session in sessions],
    }
