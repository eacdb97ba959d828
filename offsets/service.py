"""The use-cases of committed offsets.

Source: offsets.md 3 and 5; consumer.md 7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial

from groups.catalogue.topics import TopicService
from groups.core.consumer.offsets import check_fetch
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.replies import CommitReply
from groups.engine.service import GroupService
from groups.store.locked import LockedGroup
from kcoord.database import request_age
from kcoord.database.pool import Connection
from kcoord.process import off_loop
from kcoord.process.off_loop import Later
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.acknowledged import AcknowledgedCommits
from offsets.core.commit import NO_RETENTION, Commit, membership_half, overtaken, overtaken_before, records_of
from offsets.core.transactions import stable
from offsets.core.types import (
    ChangeKind,
    FetchedOffset,
    OffsetCommitReply,
    OffsetFetch,
    OffsetFetchReply,
    Provenance,
    TopicPartition,
)
from offsets.lane.fetching import FetchLane
from offsets.lane.lane import CommitLane
from offsets.store import OffsetStore
from offsets.transactions.store import TransactionStore


class OffsetService:
    """Commits and fetches, for one process.

    Methods may raise ProtocolError COORDINATOR_NOT_AVAILABLE; errors of the protocol are replies.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._groups = runtime.get(GroupService)
        self._topics = runtime.get(TopicService)
        self._store = runtime.get(OffsetStore)
        self._lane = runtime.get(CommitLane)
        self._acknowledged = runtime.get(AcknowledgedCommits)
        self._fetches = runtime.get(FetchLane)
        self._transactions = runtime.get(TransactionStore)
        self.metadata_limit = runtime.config.int("offset.metadata.max.bytes")

    def write(self, commit: Commit) -> asyncio.Future[OffsetCommitReply | None]:
        """Write a commit: a future of its reply. Whether the lane does it is decided here.

        If the partition filter has left nothing, the coordinator is not asked at all (offsets.md 2.2).
        None, and nothing was written: ids of topics may mean something else by now, so they must be looked up again.
        Raises ProtocolError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        if not commit.is_for_group:
            filtered: asyncio.Future[OffsetCommitReply | None] = asyncio.get_running_loop().create_future()
            filtered.set_result(OffsetCommitReply(Error.NONE))
            return filtered
        self._groups.check_active(commit.group_id)
        batched = commit.retention_time_ms == NO_RETENTION
        return self._lane.write(commit.group_id, commit if batched else None, partial(self._write_alone, commit))

    async def _write_alone(self, commit: Commit) -> OffsetCommitReply | None:
        """The normal way: in the transaction in which the group decides whether this caller may commit."""
        if commit.catalogue is not None and (await self._topics.current()).version != commit.catalogue:
            return None
        size = off_loop.PER_OFFSET * len(commit.lines)

        receipt, written_at = request_age.current(), 0

        async def write(locked: LockedGroup) -> OffsetCommitReply:
            nonlocal written_at
            assert isinstance(locked.reply, CommitReply)
            written_at = locked.now
            since = overtaken_before(locked.now, self._db.age_ms(locked.connection, receipt))
            if since is not None:
                since = max(since, self._acknowledged.last_at(commit.group_id))
                later = await self._store.committed_since(locked, commit.lines, since)
                if later is not None:
                    return overtaken(commit.group_id, locked.now - later)
            self._acknowledged.wrote(commit.group_id, locked.now)
            records = await off_loop.run_within(locked.connection, size, records_of, commit, locked.now)
            await self._store.write(locked, records, provenance(commit, locked, ChangeKind.COMMIT))
            return OffsetCommitReply(Error.NONE, session_deadline=locked.reply.session_deadline)

        reply = reply_of(await self._groups.execute(await off_loop.run(size, membership_half, commit), write))
        if reply.error is Error.NONE:
            self._acknowledged.note(commit, written_at)
        return reply

    def fetch(self, fetch: OffsetFetch) -> Awaitable[OffsetFetchReply]:
        """OffsetFetch: a read of what is committed. Partitions need not exist; those without an offset are absent from
        the reply (offsets.md 5).

        With `require_stable` it waits for commits of the group that are in progress, and offsets with an open
        transaction are UNSTABLE_OFFSET_COMMIT.
        Raises ProtocolError, also when it is awaited: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a
        member of a consumer group that is not who it claims to be.
        """
        self._groups.check_active(fetch.group_id)
        wanted = None
        if fetch.topics is not None:
            wanted = [(name, p) for name, partitions in fetch.topics if name not in fetch.denied for p in partitions]
            if self._fetches.takes(fetch, wanted):
                return Later(self._fetches.read(fetch, wanted), partial(_fetched, fetch))
        return self._fetch_alone(fetch, wanted)

    async def _fetch_alone(self, fetch: OffsetFetch, wanted: Sequence[TopicPartition] | None) -> OffsetFetchReply:
        if fetch.require_stable:
            found = await self._db.transaction(
                lambda connection: self._fetch_stable(connection, fetch, wanted), key=fetch.group_id
            )
        else:
            await self._groups.check_fetch(fetch.group_id, fetch.member_id, fetch.member_epoch)
            found = [] if wanted == [] else await self._store.fetch(fetch.group_id, wanted)
        return _fetched(fetch, found)

    async def _fetch_stable(
        self, connection: Connection, fetch: OffsetFetch, wanted: Sequence[TopicPartition] | None
    ) -> list[FetchedOffset]:
        """A write that writes nothing: under the group's lock it sees everything written before it."""
        group = await self._groups.lock(connection, fetch.group_id)
        if isinstance(group, ConsumerGroup):
            check_fetch(group, fetch.member_id, fetch.member_epoch)
        offsets, pending = await self._transactions.fetch(connection, fetch.group_id, wanted)
        return stable(offsets, pending, wanted)


def _fetched(fetch: OffsetFetch, found: Sequence[FetchedOffset]) -> OffsetFetchReply:
    if not fetch.denied:
        return OffsetFetchReply(Error.NONE, tuple(found))
    hidden = [
        FetchedOffset(topic, partition, error=Error.TOPIC_AUTHORIZATION_FAILED)
        for topic, partitions in fetch.topics or ()
        if topic in fetch.denied
        for partition in partitions
    ]
    return OffsetFetchReply(Error.NONE, (*(offset for offset in found if offset.topic not in fetch.denied), *hidden))


def reply_of(outcome: OffsetCommitReply | CommitReply) -> OffsetCommitReply:
    """The reply to a commit: that of what wrote it, or the group's refusal."""
    if isinstance(outcome, OffsetCommitReply):
        return outcome
    return OffsetCommitReply(outcome.error, detail=outcome.detail)


def provenance(
    commit: Commit, locked: LockedGroup, kind: ChangeKind, transactional_id: str | None = None
) -> Provenance:
    """The origin of a commit's offsets, for the journal."""
    member = locked.group.members.get(commit.member_id)
    return Provenance(
        kind,
        principal=commit.principal,
        member_id=commit.member_id,
        generation_id=commit.generation_id,
        client_id="" if member is None else member.client_id,
        transactional_id=transactional_id,
    )
