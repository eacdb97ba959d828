"""Commit and fetch over HTTP; topics as requests name them, by name or by id.

A commit is taken column by column: an object for each partition would cost more than everything else that is done for
it.
Source: http-api.md 2, "commit, fetch", and 6, quotas; offsets.md 2, 3 and 5.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from msgspec import UNSET, UnsetType

from groups.api.handlers import admit_group
from groups.catalogue.topics import TopicService, partition_counts
from groups.core.model.commands import Heartbeat
from groups.core.model.types import TopicView
from groups.engine.service import GroupService
from kcoord.access.rights import Operation, Principal
from kcoord.http.paths import check_group_id
from kcoord.http.problem import invalid
from kcoord.http.serving import Call, serve
from kcoord.http.types import int64, rfc3339
from kcoord.metrics import OFFSETS_COMMITTED, commands
from kcoord.process import off_loop
from kcoord.process.off_loop import Later, settled, then
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.quotas.budgets import Budget, Metering
from kcoord.quotas.quotas import Quotas
from offsets.acknowledged import AcknowledgedCommits
from offsets.api import endpoints, wire
from offsets.core.commit import NO_RETENTION, Commit, Lines, take
from offsets.core.types import (
    FetchedOffset,
    OffsetCommitReply,
    OffsetFetch,
    OffsetFetchReply,
    PartitionCounts,
)
from offsets.service import OffsetService


async def _renew(call: Call[wire.CommitRequest]) -> None:
    """A commit of a classic member extends its session: one that has to wait must not cost it the membership."""
    body = call.body
    if not body.member_id or body.generation_id_or_member_epoch < 0:
        return
    if not call.principal.may_group(Operation.READ, call.group_id):
        return
    beat = Heartbeat(call.group_id, body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)
    try:
        await settled(call.runtime.get(GroupService).heartbeat(beat))
    except ProtocolError:
        return  # there is no session that could be extended; its next heartbeat says so


def _groups_of(body: wire.ManyFetchRequest) -> int:
    return max(1, len(body.groups))


COMMIT = Metering(Budget.COMMITS, renew=_renew)
FETCH = Metering(Budget.COMMITS)
MANY_FETCH = Metering(Budget.COMMITS, weight=_groups_of)


class Named(NamedTuple):
    """A topic entry of a request. `name` is None if the given id belongs to no topic that the caller may see."""

    name: str | None
    topic_id: str | None


class Topics:
    """Topic names by id and ids by name, for one request.

    `catalogue`: the revision of the copy in which ids were looked up, which may mean something else by now; None:
    topics were named, or looked up as of now.
    """

    catalogue: int | None = None

    def __init__(self, runtime: Runtime, principal: Principal) -> None:
        self._runtime = runtime
        self._principal = principal
        self._view = TopicView()

    async def load(
        self,
        names: Iterable[str],
        topic_ids: Iterable[uuid.UUID] = (),
        partitions: Iterable[tuple[str, int]] = (),
    ) -> None:
        """Look up the topics of these names and ids, and these partitions by topic name.

        Offsets are stored by name: an id that the copy still knows, of a topic that was deleted and created again by
        another process, would reach the offsets of the new one. So ids are looked up in the catalogue as of now.
        """
        may_be_told = {name for name in names if self._describable(name)}
        topics = self._runtime.get(TopicService)
        if any(True for _ in topic_ids):
            self._view = await topics.current()
            return
        named = ((name, partition) for name, partition in partitions if name in may_be_told)
        self._view = await topics.find(names=may_be_told, partitions=named)

    async def resolve(
        self, entries: Sequence[wire.CommitTopic | wire.FetchTopic], where: str = "topics"
    ) -> list[Named]:
        """The topics of `entries`, in order. Raises INVALID_REQUEST for an entry without exactly one of name and id."""
        self.catalogue = None
        keys = [_key(entry, f"{where}[{index}]") for index, entry in enumerate(entries)]
        await self.load(
            (key for key in keys if isinstance(key, str)),
            (key for key in keys if isinstance(key, uuid.UUID)),
            (
                (key, partition.partition)
                for key, entry in zip(keys, entries, strict=True)
                if isinstance(key, str) and isinstance(entry, wire.CommitTopic)
                for partition in entry.partitions
            ),
        )
        return [self._named(key) for key in keys]

    def known(
        self, entries: Sequence[wire.CommitTopic | wire.FetchTopic], *, by_id: bool = False
    ) -> list[Named] | None:
        """As `resolve`, without waiting; None: `resolve` has to look, or to refuse them. `by_id`: see `catalogue`."""
        view = self._runtime.get(TopicService).known()
        if view is None:
            return None
        self._view = view
        may_topic, found = self._principal.may_topic, list[Named]()
        for entry in entries:
            name, topic_id = entry.name, entry.topic_id
            if isinstance(name, UnsetType) is isinstance(topic_id, UnsetType):
                return None
            if not isinstance(name, UnsetType):
                topic = view.by_name.get(name)
            elif by_id and not isinstance(topic_id, UnsetType):
                topic, self.catalogue = view.by_id.get(topic_id), view.version
            else:
                return None
            if topic is not None and may_topic(Operation.DESCRIBE, topic.name):
                found.append(Named(topic.name, topic.topic_id))
            elif not isinstance(name, UnsetType) and not may_topic(Operation.DESCRIBE, name):
                found.append(Named(name, None))
            else:
                return None
        return found

    def counts(self, names: Iterable[str]) -> PartitionCounts:
        """How many partitions topics have, as they were looked up."""
        return partition_counts(self._view, names)

    def _named(self, key: str | uuid.UUID) -> Named:
        if isinstance(key, str):
            return Named(key, self.id_of(key))
        topic = self._view.by_id.get(str(key))
        return Named(topic.name if topic is not None and self._describable(topic.name) else None, str(key))

    def id_of(self, name: str) -> str | None:
        """The id of a topic that was loaded; None if it does not exist or the caller may not see it."""
        topic = self._view.by_name.get(name)
        return topic.topic_id if topic is not None and self._describable(name) else None

    def _describable(self, name: str) -> bool:
        return self._principal.may_topic(Operation.DESCRIBE, name)


def _key(entry: wire.CommitTopic | wire.FetchTopic, where: str) -> str | uuid.UUID:
    if not isinstance(entry.name, UnsetType) and isinstance(entry.topic_id, UnsetType):
        return entry.name
    if isinstance(entry.topic_id, UnsetType) or not isinstance(entry.name, UnsetType):
        raise invalid(f"{where}: send either name or topic_id", where)
    try:
        return uuid.UUID(entry.topic_id)
    except ValueError:
        raise invalid(f"{where}.topic_id: not a valid UUID", f"{where}.topic_id") from None


def commit_of(
    call: Call[Any],
    topics: Topics,
    named: Sequence[Named],
    metadata_limit: int,
    generation_id: int,
    retention_time_ms: int = NO_RETENTION,
) -> Commit:
    """What is to be written of a request. `named`: its topics, which `topics` has looked up.

    Raises INVALID_REQUEST for an offset of more than 64 bits.
    """
    body, may_topic = call.body, call.principal.may_topic
    lines = _lines(body.topics, named)
    names = [name for name, _ in lines.topics]
    denied = [name for name in names if not may_topic(Operation.READ, name)]
    taken = take(lines, topics.counts(names), denied, metadata_limit)
    return Commit(
        call.group_id,
        body.member_id,
        body.group_instance_id,
        generation_id,
        taken.lines,
        call.principal.name,
        topics.catalogue,
        retention_time_ms,
        taken.errors,
        taken.is_for_group,
    )


def _lines(entries: Sequence[wire.CommitTopic], named: Sequence[Named]) -> Lines:
    """The partitions of topics with known names."""
    topics: list[tuple[str, int]] = []
    partitions: list[int] = []
    offsets: list[int] = []
    epochs: list[int] = []
    metadata: list[str] = []
    for index, (topic, entry) in enumerate(zip(named, entries, strict=True)):
        asked = entry.partitions
        if topic.name is None or not asked:
            continue
        topics.append((topic.name, len(asked)))
        partitions += [one.partition for one in asked]
        for one in asked:
            offset = one.committed_offset
            if type(offset) is not int:
                number = len(offsets) - sum(size for _, size in topics[:-1])
                offset = int64(offset, f"topics[{index}].partitions[{number}].committed_offset")
            offsets.append(offset)
        epochs += [one.committed_leader_epoch for one in asked]
        metadata += [one.committed_metadata or "" for one in asked]
    return Lines(tuple(topics), partitions, offsets, epochs, metadata if any(metadata) else None)


def answered(
    entries: Sequence[wire.CommitTopic], named: Sequence[Named], errors: Iterable[Error]
) -> list[wire.CommittedTopic]:
    """The results of a request, topic by topic. `errors`: of the partitions whose topics have names, in its order."""
    found, none, results = iter(errors), Error.NONE, []
    for topic, entry in zip(named, entries, strict=True):
        if topic.name is None:
            partitions = [_refused(one.partition, Error.UNKNOWN_TOPIC_ID) for one in entry.partitions]
        else:
            partitions = [
                _ACCEPTED[one.partition] if error is none else _refused(one.partition, error)
                for one, error in zip(entry.partitions, found, strict=False)
            ]
        results.append(wire.CommittedTopic(topic.name, topic.topic_id, partitions))
    return results


def _refused(partition: int, error: Error) -> wire.CommittedPartition:
    return wire.CommittedPartition(partition, error.code, error.name)


class _Accepted(dict[int, wire.CommittedPartition]):
    """Results are the same for all topics; as many as a topic may have partitions."""

    def __missing__(self, partition: int) -> wire.CommittedPartition:
        found = self[partition] = _refused(partition, Error.NONE)
        return found


_ACCEPTED = _Accepted()


GROUPS_AT_ONCE = 4
"""How many groups of one fetch are read concurrently, so that one request does not take the whole pool."""

Fetch = wire.FetchRequest | wire.FetchGroup

_commits = partial(commands, "commit")


@serve(endpoints.COMMIT, is_hot=True, metering=COMMIT)
def commit(call: Call[wire.CommitRequest]) -> Awaitable[wire.CommitResponse]:
    """OffsetCommit."""
    may_make_group = call.body.generation_id_or_member_epoch < 0 and call.runtime.get(Quotas).limits_joins
    return _admitted(call) if may_make_group else committed(call)


async def _admitted(call: Call[wire.CommitRequest]) -> wire.CommitResponse:
    call.principal.require_group(Operation.READ, call.group_id)
    await admit_group(call.runtime, call.principal, call.group_id)
    return await committed(call)


def committed(call: Call[wire.CommitRequest]) -> Awaitable[wire.CommitResponse]:
    """The answer to a commit that quotas admit, for either protocol. Raises ProtocolError, also when it is awaited."""
    call.principal.require_group(Operation.READ, call.group_id)
    topics = Topics(call.runtime, call.principal)
    named = topics.known(call.body.topics, by_id=True) if _size(call.body) <= off_loop.ABOVE else None
    if named is None:
        return _commit(call, topics)
    service = call.runtime.get(OffsetService)
    commit = _taken(call, topics, named, service.metadata_limit)
    if Error.UNKNOWN_TOPIC_OR_PARTITION in commit.errors:
        return _commit(call, topics)
    return Later(service.write(commit), partial(_written, call, topics, named, commit))


def _size(body: wire.CommitRequest) -> int:
    return off_loop.PER_OFFSET * sum([len(entry.partitions) for entry in body.topics])


async def _commit(call: Call[wire.CommitRequest], topics: Topics) -> wire.CommitResponse:
    """A commit that has to wait before it is written: its topics are looked up, or it is large."""
    named, size = await topics.resolve(call.body.topics), _size(call.body)
    service = call.runtime.get(OffsetService)
    commit = await off_loop.run(size, _taken, call, topics, named, service.metadata_limit)
    reply = await service.write(commit)
    assert reply is not None, "its topics were looked up as of now"
    return await off_loop.run(size, _answered, call, named, commit, reply)


def _taken(call: Call[wire.CommitRequest], topics: Topics, named: Sequence[Named], metadata_limit: int) -> Commit:
    body, retention_ms = call.body, call.body.retention_time_ms
    if isinstance(retention_ms, str):
        retention_ms = int64(retention_ms, "retention_time_ms")
    return commit_of(call, topics, named, metadata_limit, body.generation_id_or_member_epoch, retention_ms)


def _written(
    call: Call[wire.CommitRequest],
    topics: Topics,
    named: Sequence[Named],
    commit: Commit,
    reply: OffsetCommitReply | None,
) -> wire.CommitResponse | Awaitable[wire.CommitResponse]:
    return _commit(call, topics) if reply is None else _answered(call, named, commit, reply)


def _answered(
    call: Call[wire.CommitRequest], named: Sequence[Named], commit: Commit, reply: OffsetCommitReply
) -> wire.CommitResponse:
    _commits(reply.error.name).inc()
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
    OFFSETS_COMMITTED.inc(commit.errors.count(Error.NONE))
    topics = answered(call.body.topics, named, commit.errors)
    lost = _lost(call, commit.member_id, commits=True)
    return wire.CommitResponse(topics, rfc3339(reply.session_deadline), committed_offsets_lost=lost)


def _lost(call: Call[Any], member_id: str, *, commits: bool) -> wire.LostCommits | UnsetType:
    gone = call.runtime.get(AcknowledgedCommits).untold(call.group_id, member_id, commits=commits)
    return UNSET if gone is None else wire.LostCommits(rfc3339(gone.since) or "", rfc3339(gone.until) or "")


@serve(endpoints.FETCH, is_hot=True, metering=FETCH)
def fetch(call: Call[wire.FetchRequest]) -> wire.FetchResponse | Awaitable[wire.FetchResponse]:
    """OffsetFetch for one group."""

    def answer(topics: list[wire.FetchedTopic]) -> wire.FetchResponse:
        lost = _lost(call, call.body.member_id or "", commits=False)
        return wire.FetchResponse(topics, committed_offsets_lost=lost)

    return then(fetched(call, call.group_id, call.body, call.body.require_stable), answer)


@serve(endpoints.MANY_FETCH, is_hot=True, metering=MANY_FETCH)
async def many_fetch(call: Call[wire.ManyFetchRequest]) -> wire.ManyFetchResponse:
    """OffsetFetch for several groups: each is answered separately."""
    slots = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def one(index: int, asked: wire.FetchGroup) -> wire.FetchedGroup:
        try:
            async with slots:
                group_id = check_group_id(asked.group_id, may_be_empty=True)
                topics = await fetched(call, group_id, asked, call.body.require_stable, f"groups[{index}].topics")
        except ProtocolError as error:
            if error.error in (Error.INVALID_REQUEST, Error.COORDINATOR_NOT_AVAILABLE):
                raise  # not specific to this group
            commands("fetch", error.error.name).inc()
            return wire.FetchedGroup(asked.group_id, [], error.error.code, error.error.name, error.detail)
        return wire.FetchedGroup(asked.group_id, topics, 0, Error.NONE.name, None)

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one(index, asked)) for index, asked in enumerate(call.body.groups)]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return wire.ManyFetchResponse([task.result() for task in running])


def fetched(
    call: Call[Any], group_id: str, asked: Fetch, require_stable: bool, where: str = "topics"
) -> Awaitable[list[wire.FetchedTopic]]:
    """What is committed by one group, topic by topic as in the request, for either protocol.

    `where`: the field with the topics. Raises ProtocolError, at once or when it is awaited.
    """
    call.principal.require_group(Operation.DESCRIBE, group_id)
    topics = Topics(call.runtime, call.principal)
    named = () if asked.topics is None else topics.known(asked.topics)
    read = partial(_read, call, topics, group_id, asked, require_stable)
    if named is None:
        assert asked.topics is not None
        return cast("Awaitable[list[wire.FetchedTopic]]", then(topics.resolve(asked.topics, where), read))
    return read(named)


def _read(
    call: Call[Any], topics: Topics, group_id: str, asked: Fetch, require_stable: bool, named: Sequence[Named]
) -> Awaitable[list[wire.FetchedTopic]]:
    wanted = None
    hidden: frozenset[str] = frozenset()
    if asked.topics is not None:
        pairs = zip(named, asked.topics, strict=True)
        wanted = tuple([(topic.name, tuple(entry.partitions)) for topic, entry in pairs if topic.name is not None])
        may_topic = call.principal.may_topic
        hidden = frozenset([name for name, _ in wanted if not may_topic(Operation.DESCRIBE, name)])
    found = call.runtime.get(OffsetService).fetch(
        OffsetFetch(group_id, asked.member_id, asked.member_epoch, wanted, require_stable, hidden)
    )
    return cast("Awaitable[list[wire.FetchedTopic]]", then(found, partial(_told, call, topics, asked.topics, named)))


def _told(
    call: Call[Any],
    topics: Topics,
    entries: Sequence[wire.FetchTopic] | None,
    named: Sequence[Named],
    reply: OffsetFetchReply,
) -> list[wire.FetchedTopic] | Awaitable[list[wire.FetchedTopic]]:
    commands("fetch", Error.NONE.name).inc()
    if entries is None:
        return _everything(call, topics, reply)
    size = off_loop.PER_OFFSET * len(reply.offsets)
    if size > off_loop.ABOVE:
        return off_loop.run(size, _as_asked, entries, named, reply.offsets)
    return _as_asked(entries, named, reply.offsets)


async def _everything(call: Call[Any], topics: Topics, reply: OffsetFetchReply) -> list[wire.FetchedTopic]:
    """A fetch of everything: topics that the caller may not describe are silently left out."""
    by_topic: dict[str, list[wire.FetchedPartition]] = {}
    for offset in reply.offsets:
        if call.principal.may_topic(Operation.DESCRIBE, offset.topic):
            by_topic.setdefault(offset.topic, []).append(_partition(offset))
    await topics.load(by_topic)
    return [wire.FetchedTopic(name, topics.id_of(name), partitions) for name, partitions in by_topic.items()]


def _as_asked(
    asked: Sequence[wire.FetchTopic], named: Sequence[Named], offsets: Iterable[FetchedOffset]
) -> list[wire.FetchedTopic]:
    found = {(offset.topic, offset.partition): offset for offset in offsets}

    def partition(name: str | None, number: int) -> wire.FetchedPartition:
        if name is None:
            return _partition(FetchedOffset("", number, error=Error.UNKNOWN_TOPIC_ID))
        return _partition(found.get((name, number)) or FetchedOffset(name, number))

    return [
        wire.FetchedTopic(topic.name, topic.topic_id, [partition(topic.name, number) for number in entry.partitions])
        for topic, entry in zip(named, asked, strict=True)
    ]


def _partition(offset: FetchedOffset) -> wire.FetchedPartition:
    return wire.FetchedPartition(
        partition=offset.partition,
        committed_offset=offset.committed_offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp,
        error_code=offset.error.code,
        error=offset.error.name,
    )
