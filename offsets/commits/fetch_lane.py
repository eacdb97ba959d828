"""The fetch lane of a process: what is asked while Postgres answers goes with the next statement.

For fetches that name partitions and do not wait for open transactions. A fetch of everything, or of very much, is a
statement of its own.

Source: architecture.md 4, "Fast lanes"; offsets.md 5; consumer.md 7.2.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Coroutine, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from groups.core.consumer.offsets import check_fetch
from groups.core.model.consumer_group import ConsumerGroup
from groups.engine.service import GroupService
from groups.store.rows import number_array, text_array
from kcoord import metrics
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests.turnstile import Batches
from offsets.core.types import FetchedOffset, OffsetFetch, TopicPartition

log = structlog.get_logger(__name__)

Q = queries("offsets")

MOST_FETCHES = 256
"""Of one statement."""
MOST_PARTITIONS = 4_096
"""Of one statement; it exceeds them by one fetch."""
LARGEST = 1_000
"""Partitions of a fetch that may share a statement."""
MOST_WAITING = 10_000
"""Fetches that wait. Beyond that they are answered COORDINATOR_NOT_AVAILABLE with `Retry-After`."""


@dataclass(slots=True, eq=False)
class _Ticket:
    """One fetch. `found`: what is committed, once the caller is who it claims to be."""

    fetch: OffsetFetch
    wanted: Sequence[TopicPartition]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    found: asyncio.Future[list[FetchedOffset]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class FetchLane:
    """Reads committed offsets of many groups together. With `fetch.lane` off each fetch reads its own."""

    def __init__(self, runtime: Runtime) -> None:
        self._groups = runtime.get(GroupService)
        self._store = runtime.get(FetchStore)
        self._is_on = runtime.config.bool("fetch.lane")
        self._retry_after_ms = runtime.config.int("http.retry.after.ms")
        self._waiting: deque[_Ticket] = deque()
        self._batches = Batches(lambda: len(self._waiting), self._prepare)
        metrics.ADMISSION_WAITING.labels("fetches").set_function(lambda: len(self._waiting))
        self._checks: set[asyncio.Task[None]] = set()
        runtime.on_stop(self._batches.close)

    def takes(self, fetch: OffsetFetch, wanted: Sequence[TopicPartition] | None) -> bool:
        """Whether a fetch of these partitions (None: all) may share a statement."""
        return self._is_on and not fetch.require_stable and wanted is not None and 0 < len(wanted) <= LARGEST

    def read(self, fetch: OffsetFetch, wanted: Sequence[TopicPartition]) -> asyncio.Future[list[FetchedOffset]]:
        """What is committed of these partitions; those without an offset are absent.

        The future raises ProtocolError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a member of a
        consumer group that is not who it claims to be, and COORDINATOR_NOT_AVAILABLE. Raises the latter if too many
        wait.
        """
        if len(self._waiting) >= MOST_WAITING:
            detail = f"{MOST_WAITING} fetches wait to be read; the same request may succeed later"
            raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, detail, retry_after_ms=self._retry_after_ms)
        ticket = _Ticket(fetch, wanted)
        self._waiting.append(ticket)
        self._batches.call()
        return ticket.found

    def _prepare(self) -> Coroutine[Any, Any, None] | None:
        tickets, room = list[_Ticket](), MOST_PARTITIONS
        while self._waiting and len(tickets) < MOST_FETCHES and room > 0:
            ticket = self._waiting.popleft()
            if not ticket.found.done():
                tickets.append(ticket)
                room -= len(ticket.wanted)
        return self._write_batch(tickets) if tickets else None

    async def _write_batch(self, tickets: Sequence[_Ticket]) -> None:
        metrics.BATCH_FETCHES.observe(len(tickets))
        named = sorted({ticket.fetch.group_id for ticket in tickets if _names_member(ticket.fetch)})
        try:
            asked = [Asked(ticket.fetch.group_id, ticket.wanted) for ticket in tickets]
            found, versions = await self._store.read(asked, named)
        except Exception as error:
            if not isinstance(error, ProtocolError):
                log.exception("fetches_failed", fetches=len(tickets))
            for ticket in tickets:
                _refuse(ticket, copy(error))  # each adds its frames to the traceback
            return
        for ticket, offsets in zip(tickets, found, strict=True):
            self._answer(ticket, offsets, versions.get(ticket.fetch.group_id))

    def _answer(self, ticket: _Ticket, offsets: list[FetchedOffset], version: Version | None) -> None:
        try:
            is_member = self._is_member(ticket.fetch, version)
        except ProtocolError as error:
            _refuse(ticket, error)
            return
        if not is_member:
            fetch = ticket.fetch
            asked = self._groups.check_fetch(fetch.group_id, fetch.member_id, fetch.member_epoch)
            check = asyncio.get_running_loop().create_task(asked, context=ticket.context)
            self._checks.add(check)
            check.add_done_callback(partial(self._checked, ticket, offsets))
        elif not ticket.found.done():
            ticket.found.set_result(offsets)

    def _is_member(self, fetch: OffsetFetch, version: Version | None) -> bool:
        """Whether the caller is known to be who it claims to be: by the copy of the group, if that is current.

        `version`: of its group as of the fetch, if it exists. False: its rows must be read. Raises as `read`.
        """
        if not _names_member(fetch) or version is None:  # a group that does not exist has no offsets either
            return True
        stored = self._groups.copy_of(fetch.group_id)
        if stored is None or Version(stored.pk, stored.version, stored.version_tag) != version:
            return False
        if isinstance(stored.group, ConsumerGroup):
            check_fetch(stored.group, fetch.member_id, fetch.member_epoch)
        return True

    def _checked(self, ticket: _Ticket, offsets: list[FetchedOffset], check: asyncio.Task[None]) -> None:
        self._checks.discard(check)
        error = None if check.cancelled() else check.exception()
        if error is not None:
            _refuse(ticket, error)
        elif check.cancelled():
            ticket.found.cancel()
        elif not ticket.found.done():
            ticket.found.set_result(offsets)


def _refuse(ticket: _Ticket, error: BaseException) -> None:
    if not ticket.found.done():
        ticket.found.set_exception(error)


def _names_member(fetch: OffsetFetch) -> bool:
    return fetch.member_id is not None or fetch.member_epoch >= 0


def fetch_parameters(asked: Sequence[tuple[str, Sequence[TopicPartition]]]) -> dict[str, Any]:
    """The parameters of `fetch_batch`: groups, each with the partitions that are asked for."""
    topics: dict[str, int] = {}
    topic = [topics.setdefault(name, len(topics) + 1) for _, partitions in asked for name, _ in partitions]
    last = list(accumulate(len(partitions) for _, partitions in asked))
    return {
        "group_id": text_array(group_id for group_id, _ in asked),
        "first": number_array([1, *(at + 1 for at in last[:-1])]),
        "last": number_array(last),
        "topic": number_array(topic),
        "topics": text_array(topics),
        "partition": number_array(partition for _, partitions in asked for _, partition in partitions),
    }


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
