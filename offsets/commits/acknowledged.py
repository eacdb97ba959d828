"""The commits that this process acknowledged last, which it compares with the database whenever it has connected again.

A standby that is promoted while it lags never received the last commits, and a server that restarts without flushed
logs may lose some, too. What this process acknowledged it can store again: the members need not know.

Not known here, and so neither found nor stored again: commits of processes that ended since, commits in transactions,
and those before the last ones (MOST_KEPT, OLDEST_MS).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import structlog

from groups.core.model.commands import ResetOffsets, Tick
from groups.core.model.events import EventKind
from groups.core.model.replies import Done
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord import metrics
from kcoord.database.notifications import NODES
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.door.http.health import Check
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.store import OffsetStore
from offsets.core.commit import Commit, lines_of, records_of
from offsets.core.types import ChangeKind, Millis, OffsetRecord, Provenance, TopicPartition
from offsets.journal.events import offsets_event

log = structlog.get_logger(__name__)

Q = queries("offsets")

MOST_KEPT = 200_000
"""Offsets; each commit counts for COMMIT_WEIGHT more. About 20 MB."""
COMMIT_WEIGHT = 8
MOST_GROUPS = 100_000
"""Whose last write is remembered."""
OLDEST_MS: Millis = 3_600_000
"""Older commits are not compared: their day of the journal may have been dropped."""
AT_ONCE = 1_000
"""Offsets in one statement, at least: one commit may exceed it."""
TRIES = 5
PAUSE_SECONDS = 1.0
NOTED_SECONDS = 86_400.0
"""How long /readyz and answers to members tell of commits that were missing."""
MOST_TOLD = 100_000
"""Members that are known to have been told."""

_MISSING, _STORED_AGAIN = (metrics.LOST_COMMITS.labels(outcome) for outcome in ("missing", "stored_again"))


class Line(NamedTuple):
    """An acknowledged offset of one partition; `at` (ms): as in the journal."""

    commit: Commit
    at: Millis
    record: OffsetRecord

    @property
    def key(self) -> TopicPartition:
        """The partition, within its group."""
        return self.record.topic, self.record.partition


@dataclass(frozen=True, slots=True)
class Loss:
    """What was missing after reconnects of this process: acknowledged offsets, the partitions and groups they are of,
    and how many partitions were stored again. `at` (s): when the last of it was found, by the monotonic clock.
    """

    at: float = 0.0
    offsets: int = 0
    partitions: int = 0
    groups: int = 0
    stored_again: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """What all processes found of the last day: `offsets` that were missing, of those acknowledged from `since` until
    `until` (ms), when that was found. Offsets 0: none.
    """

    since: Millis = 0
    until: Millis = 0
    offsets: int = 0


class AcknowledgedCommits:
    """Compares by itself after each reconnect of this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(OffsetStore)
        self._kept: deque[tuple[Millis, Commit]] = deque()
        self._weight = 0
        self._last: dict[str, Millis] = {}
        self._working: asyncio.Task[None] | None = None
        self._is_due = self._compares = False
        self._recorded = 0
        self._told: set[tuple[str, str]] = set()
        self.loss = Loss()
        self.gone = Gone()
        runtime.notifications.on_reconnected(self._reconnected)
        runtime.notifications.on(NODES, lambda _: self._begin())
        runtime.on_stop(self._close)

    def note(self, commit: Commit, at: Millis) -> None:
        """A commit was written at `at` by the database's clock, and is being acknowledged."""
        self.wrote(commit.group_id, at)
        self._kept.append((at, commit))
        self._weight += COMMIT_WEIGHT + len(commit.lines)
        while self._weight > MOST_KEPT:
            self._weight -= COMMIT_WEIGHT + len(self._kept.popleft()[1].lines)

    def wrote(self, group_id: str, at: Millis) -> None:
        """Offsets of the group are written at `at`, in the order in which their commits came to this process."""
        if len(self._last) >= MOST_GROUPS:
            self._last.clear()
        self._last[group_id] = at

    def last_at(self, group_id: str) -> Millis:
        """When this process last wrote offsets of a group; 0: not known."""
        return self._last.get(group_id, 0)

    def untold(self, group_id: str, member_id: str, *, commits: bool) -> Gone | None:
        """What to tell a member of commits that are gone, with the answer to a fetch, or to one that `commits`.

        None: nothing, or it was told with a commit since then, by this process.
        Differs from Kafka: answers tell of it, but over HTTP only, because Kafka's protocol has no field for it.
        """
        gone, member = self.gone, (group_id, member_id)
        if not gone.offsets or member in self._told:
            return None
        if commits:
            if len(self._told) >= MOST_TOLD:
                self._told.clear()
            self._told.add(member)
        return gone

    def _reconnected(self) -> None:
        self._compares = True
        self._begin()

    def _begin(self) -> None:
        self._is_due = True
        if self._working is None or self._working.done():
            self._working = asyncio.get_running_loop().create_task(self._work(), name="kcoord-acknowledged")

    async def _close(self) -> None:
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    async def _work(self) -> None:
        while self._is_due:
            self._is_due = False
            await self._try()

    async def _try(self) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                if self._compares and self._kept:
                    await self._db.drop_lost()
                    await self.compare()
                self._compares = False
                await self.look()
            except ProtocolError as error:
                log.warning("acknowledged_commits_not_compared", reason=error.detail, attempt=attempt)
            except Exception:
                log.exception("acknowledged_commits_not_compared")
                return
            else:
                return
            await asyncio.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """Read what processes found. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
        async with self._db.connection() as connection:
            after = await self._db.now_ms(connection) - int(NOTED_SECONDS * 1000)
            gone = Gone(*await self._db.one(connection, Q.lost_commits, {"after": after}))
        if gone.until != self.gone.until:
            self._told.clear()
        self.gone = gone

    async def _record(self, missing: Sequence[Line]) -> None:
        """Let all processes know of lines of which it was not recorded before that they are missing."""
        found = [line.at for line in missing if line.at > self._recorded]
        if not found:
            return

        async def write(connection: Connection) -> None:
            until = await self._db.now_ms(connection)
            values = {"since": min(found), "until": until, "offsets": len(found), "channel": NODES}
            await connection.execute(Q.record_lost_commits.encode(), values)

        await self._db.transaction(write)
        self._recorded = max(found)

    async def compare(self) -> None:
        """Store again what the database no longer has, and say so. Raises ProtocolError COORDINATOR_NOT_AVAILABLE."""
        missing, looked_at_all = await self._all_missing()
        await self._record(missing)
        by_group: dict[str, list[Line]] = {}
        for line in missing:
            by_group.setdefault(line.commit.group_id, []).append(line)
        done: set[int] = set()
        before = self.loss
        try:
            for group_id, lines in by_group.items():
                latest = list({line.key: line for line in lines}.values())
                stored = await self._store_again(group_id, latest)
                done |= {id(line.commit) for line in lines}
                self._tell(len(lines), len(latest), stored)
        finally:
            if done:
                self._keep([(at, commit) for at, commit in self._kept if id(commit) not in done])
            if self.loss != before:
                log.error("acknowledged_commits_lost", **asdict(self.loss), there_may_be_more=looked_at_all)

    def _tell(self, offsets: int, partitions: int, stored: int) -> None:
        """Of one more group."""
        _MISSING.inc(offsets)
        _STORED_AGAIN.inc(stored)
        loss = self.loss
        self.loss = Loss(
            time.monotonic(), loss.offsets + offsets, loss.partitions + partitions, loss.groups + 1,
            loss.stored_again + stored,
        )  # fmt: skip

    async def _all_missing(self) -> tuple[list[Line], bool]:
        """What is missing, in order, and whether something was missing in everything that was kept.

        From the newest back: first what was written since the fail-over, which is there, then what was lost. Postgres
        loses the end of its log, never what lies before it, so the first that is there again ends the search.
        """
        async with self._db.connection() as connection:
            oldest = await self._db.now_ms(connection) - OLDEST_MS
        missing: list[Line] = []
        lines: list[Line] = []
        for at, commit in reversed(tuple(self._kept)):
            if at < oldest:
                break
            lines = [*_lines(commit, at), *lines]
            if len(lines) >= AT_ONCE:
                found = await self._missing(lines)
                if missing and not found:
                    return missing, False
                missing, lines = found + missing, []
        found = await self._missing(lines)
        return found + missing, bool(found)

    def _keep(self, kept: Iterable[tuple[Millis, Commit]]) -> None:
        self._kept.clear()
        self._weight = 0
        for at, commit in kept:
            self.note(commit, at)

    async def _missing(self, lines: Sequence[Line]) -> list[Line]:
        if not lines:
            return []
        parameters = {**_columns(lines), "group_name": [line.commit.group_id for line in lines]}
        async with self._db.connection() as connection:
            numbers = await self._db.value(connection, Q.missing_lines, parameters)
        if numbers is None:
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "this database is a standby")
        return [lines[number - 1] for number in numbers]

    async def _store_again(self, group_id: str, lines: Sequence[Line]) -> int:
        """Returns of how many partitions. A group that the database no longer has is created, without members.

        Raises ProtocolError COORDINATOR_NOT_AVAILABLE.
        """

        stored: list[tuple[Millis, Commit]] = []

        async def write(locked: LockedGroup) -> int:
            stored.clear()
            parameters = {**_columns(lines), "group": locked.pk, "group_name": group_id}
            numbers = await self._db.column(locked.connection, Q.lines_to_store_again, parameters)
            chosen = [lines[number - 1] for number in numbers]
            for commit in {id(line.commit): line.commit for line in chosen}.values():
                records = [line.record for line in chosen if line.commit is commit]
                await self._store.write(locked, records, _provenance(commit))
                stored.append((locked.now, commit._replace(lines=lines_of(records))))
            locked.events.append(
                offsets_event(
                    EventKind.OFFSETS_RESTORED,
                    locked.group,
                    [line.key for line in chosen],
                    reason=f"{len(lines)} acknowledged offsets were missing after the database had failed over",
                )
            )
            return len(chosen)

        outcome: Any = await self._groups.execute(Tick(group_id), write, anywhere=True)
        if isinstance(outcome, Done):
            outcome = await self._groups.execute(ResetOffsets(group_id, create=True), write, anywhere=True)
        if isinstance(outcome, Done):
            return 0
        for at, commit in stored:
            self.note(commit, at)
        return int(outcome)


def note(loss: Loss) -> dict[str, Check]:
    """What /readyz says of a loss: nothing if there was none for a day. The server serves all the same."""
    if not loss.offsets or time.monotonic() - loss.at > NOTED_SECONDS:
        return {}
    detail = (
        f"{loss.offsets:,} acknowledged offsets of {loss.groups:,} groups were missing after the database had failed "
        f"over, {round((time.monotonic() - loss.at) / 60):,} min ago: of {loss.partitions:,} partitions "
        f"{loss.stored_again:,} were stored again, the others had later ones; see docs/high-availability.md"
    )
    return {"commits": Check(True, detail)}


def checks(runtime: Runtime) -> dict[str, Check]:
    """What /readyz says of acknowledged commits."""
    found = runtime.made(AcknowledgedCommits)
    return {} if found is None else note(found.loss) or _found_elsewhere(found.gone)


def _found_elsewhere(gone: Gone) -> dict[str, Check]:
    if not gone.offsets:
        return {}
    detail = (
        f"other servers found {gone.offsets:,} offsets missing that they had acknowledged from {rfc3339(gone.since)} "
        f"until {rfc3339(gone.until)}, and stored them again unless there were later ones; what servers that have "
        "ended acknowledged then is gone; see docs/high-availability.md"
    )
    return {"commits": Check(True, detail)}


def _lines(commit: Commit, at: Millis) -> list[Line]:
    return [Line(commit, at, replace(record, commit_timestamp=at)) for record in records_of(commit, at)]


def _columns(lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "topic": [line.record.topic for line in lines],
        "partition": [line.record.partition for line in lines],
        "committed_offset": [line.record.offset for line in lines],
        "at": [line.at for line in lines],
    }


def _provenance(commit: Commit) -> Provenance:
    return Provenance(ChangeKind.RESTORE, member_id=commit.member_id, generation_id=commit.generation_id)
