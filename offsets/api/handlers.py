"""Commit, fetch and transactional commits over HTTP; topics as requests name them, by name or by id.

A commit is taken column by column: an object for each partition would cost more than everything else that is done for
it.

Source: http-api.md 2, "commit, fetch" and "transactional commit", and 6, quotas; offsets.md 2, 3, 4 and 5.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import UNSET, UnsetType

from groups.api.handlers import admit_group
from groups.core.model.commands import Heartbeat
from groups.core.model.types import TopicView
from groups.engine.service import GroupService
from groups.topics import TopicService, partition_counts
from kcoord.access.quotas.budgets import Budget, Metering
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import Operation, Principal
from kcoord.door.http.paths import check_group_id
from kcoord.door.http.problem import invalid
from kcoord.door.http.serving import Call, serve
from kcoord.door.http.types import int64, rfc3339
from kcoord.metrics import OFFSETS_COMMITTED, commands
from kcoord.process import off_loop
from kcoord.process.off_loop import Later, settled, then
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, PartitionError, ProblemFields, ProtocolError
from offsets.api import endpoints, wire
from offsets.commits.acknowledged import AcknowledgedCommits
from offsets.commits.service import OffsetService
from offsets.commits.transactions.service import TransactionService, accepted, counted
from offsets.core.commit import NO_RETENTION, Commit, Lines, take
from offsets.core.transactions import Producer
from offsets.core.types import FetchedOffset, OffsetCommitReply, OffsetFetch, OffsetFetchReply, PartitionCounts

R = TypeVar("R")


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


class AskedTopic(NamedTuple):
    """A topic of a commit, by name or by id, and its columns as in `Lines`."""

    partitions: list[int]
    offsets: list[int]
    leader_epochs: list[int]
    metadata: list[str] | None
    name: str | UnsetType
    topic_id: str | UnsetType


class Asked(NamedTuple):
    """A commit as either door reads it. The fields are those of `Commit`."""

    topics: Sequence[AskedTopic]
    generation_id: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int = NO_RETENTION
    knows_epochs: bool = True


Finish = Callable[[Sequence[Named], Commit, OffsetCommitReply], R]
"""Makes the answer of a door to a commit that was accepted."""


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

    async def resolve(self, entries: Sequence[AskedTopic | wire.FetchTopic], where: str = "topics") -> list[Named]:
        """The topics of `entries`, in order. Raises INVALID_REQUEST for an entry without exactly one of name and id."""
        self.catalogue = None
        keys = [_key(entry, f"{where}[{index}]") for index, entry in enumerate(entries)]
        await self.load(
            (key for key in keys if isinstance(key, str)),
            (key for key in keys if isinstance(key, uuid.UUID)),
            (
                (key, partition)
                for key, entry in zip(keys, entries, strict=True)
                if isinstance(key, str) and isinstance(entry, AskedTopic)
                for partition in entry.partitions
            ),
        )
        return [self._named(key) for key in keys]

    def known(self, entries: Sequence[AskedTopic | wire.FetchTopic], *, by_id: bool = False) -> list[Named] | None:
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


def _key(entry: AskedTopic | wire.FetchTopic, where: str) -> str | uuid.UUID:
    if not isinstance(entry.name, UnsetType) and isinstance(entry.topic_id, UnsetType):
        return entry.name
    if isinstance(entry.topic_id, UnsetType) or not isinstance(entry.name, UnsetType):
        raise invalid(f"{where}: send either name or topic_id", where)
    try:
        return uuid.UUID(entry.topic_id)
    except ValueError:
        raise invalid(f"{where}.topic_id: not a valid UUID", f"{where}.topic_id") from None


def asked_topics(entries: Sequence[wire.CommitTopic]) -> list[AskedTopic]:
    """The topics of a request over HTTP. Raises INVALID_REQUEST for an offset of more than 64 bits."""
    found = []
    for index, entry in enumerate(entries):
        asked = entry.partitions
        offsets = [one.committed_offset for one in asked]
        if str in map(type, offsets):
            place = f"topics[{index}].partitions"
            offsets = [int64(offset, f"{place}[{at}].committed_offset") for at, offset in enumerate(offsets)]
        texts = [one.committed_metadata for one in asked]
        found.append(
            AskedTopic(
                [one.partition for one in asked],
                cast("list[int]", offsets),
                [one.committed_leader_epoch for one in asked],
                [text or "" for text in texts] if any(texts) else None,
                entry.name,
                entry.topic_id,
            )
        )
    return found


def commit_of(call: Call[Any], asked: Asked, topics: Topics, named: Sequence[Named], metadata_limit: int) -> Commit:
    """What is to be written of a request. `named`: its topics, which `topics` has looked up."""
    may_topic = call.principal.may_topic
    lines = _lines(asked.topics, named)
    names = [name for name, _ in lines.topics]
    denied = [name for name in names if not may_topic(Operation.READ, name)]
    taken = take(lines, topics.counts(names), denied, metadata_limit)
    return Commit(
        call.group_id,
        asked.member_id,
        asked.group_instance_id,
        asked.generation_id,
        taken.lines,
        call.principal.name,
        topics.catalogue,
        asked.retention_time_ms,
        taken.errors,
        taken.is_for_group,
        asked.knows_epochs,
    )


def _lines(entries: Sequence[AskedTopic], named: Sequence[Named]) -> Lines:
    """The partitions of topics with known names."""
    found = [
        (topic.name, entry)
        for topic, entry in zip(named, entries, strict=True)
        if topic.name is not None and entry.partitions
    ]
    if len(found) == 1:  # as most commits: nothing is copied
        ((name, entry),) = found
        return Lines(
            ((name, len(entry.partitions)),), entry.partitions, entry.offsets, entry.leader_epochs, entry.metadata
        )
    columns = [entry[:4] for _, entry in found]
    has_metadata = any(entry.metadata for _, entry in found)
    return Lines(
        tuple((name, len(entry.partitions)) for name, entry in found),
        [number for column in columns for number in column[0]],
        [offset for column in columns for offset in column[1]],
        [epoch for column in columns for epoch in column[2]],
        [text for column in columns for text in column[3] or [""] * len(column[0])] if has_metadata else None,
    )


def by_topic(
    entries: Sequence[AskedTopic], named: Sequence[Named], errors: Sequence[Error]
) -> Iterator[tuple[AskedTopic, Named, Sequence[Error]]]:
    """The topics of a request with what became of their partitions. `errors`: of those whose topics have names."""
    start = 0
    for entry, topic in zip(entries, named, strict=True):
        count = len(entry.partitions)
        if topic.name is None:
            yield entry, topic, [Error.UNKNOWN_TOPIC_ID] * count
        else:
            yield entry, topic, errors[start : start + count]
            start += count


def answered(
    entries: Sequence[AskedTopic], named: Sequence[Named], errors: Sequence[Error]
) -> list[wire.CommittedTopic]:
    """The results of a request over HTTP, topic by topic. `errors`: as in `by_topic`."""
    none = Error.NONE
    return [
        wire.CommittedTopic(
            topic.name,
            topic.topic_id,
            [
                _ACCEPTED[number] if error is none else _refused(number, error)
                for number, error in zip(entry.partitions, found, strict=True)
            ],
        )
        for entry, topic, found in by_topic(entries, named, errors)
    ]


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
    call.principal.require_group(Operation.READ, call.group_id)
    may_make_group = call.body.generation_id_or_member_epoch < 0 and call.runtime.get(Quotas).limits_joins
    if may_make_group or _size(call.body.topics) > off_loop.ABOVE:
        return _commit_later(call, may_make_group=may_make_group)
    asked = _asked(call.body)
    return committed(call, asked, partial(_response, call, asked))


async def _commit_later(call: Call[wire.CommitRequest], *, may_make_group: bool) -> wire.CommitResponse:
    if may_make_group:
        await admit_group(call.runtime, call.principal, call.group_id)
    asked = await off_loop.run(_size(call.body.topics), _asked, call.body)
    return await committed(call, asked, partial(_response, call, asked))


def _asked(body: wire.CommitRequest) -> Asked:
    retention_ms = body.retention_time_ms
    return Asked(
        asked_topics(body.topics),
        body.generation_id_or_member_epoch,
        body.member_id,
        body.group_instance_id,
        int64(retention_ms, "retention_time_ms") if isinstance(retention_ms, str) else retention_ms,
    )


def _response(
    call: Call[Any], asked: Asked, named: Sequence[Named], commit: Commit, reply: OffsetCommitReply
) -> wire.CommitResponse:
    topics = answered(asked.topics, named, commit.errors)
    lost = _lost(call, commit.member_id, commits=True)
    return wire.CommitResponse(topics, rfc3339(reply.session_deadline), committed_offsets_lost=lost)


def committed(call: Call[Any], asked: Asked, finish: Finish[R]) -> Awaitable[R]:
    """The answer to a commit that quotas admit, and whose group the caller may read, for either door.

    Raises ProtocolError, also when it is awaited.
    """
    topics = Topics(call.runtime, call.principal)
    named = topics.known(asked.topics, by_id=True) if _size(asked.topics) <= off_loop.ABOVE else None
    if named is None:
        return _commit(call, asked, topics, finish)
    service = call.runtime.get(OffsetService)
    commit = commit_of(call, asked, topics, named, service.metadata_limit)
    if commit.errors.count(Error.NONE) != len(commit.errors):
        return _commit(call, asked, topics, finish)
    return Later(service.write(commit), partial(_written, call, asked, topics, finish, named, commit))


def _written(
    call: Call[Any],
    asked: Asked,
    topics: Topics,
    finish: Finish[R],
    named: Sequence[Named],
    commit: Commit,
    reply: OffsetCommitReply | None,
) -> R | Awaitable[R]:
    if reply is None:
        return _commit(call, asked, topics, finish)
    return _counted(finish, asked, named, commit, reply)


def _size(topics: Sequence[AskedTopic] | Sequence[wire.CommitTopic]) -> int:
    return off_loop.PER_OFFSET * sum([len(entry.partitions) for entry in topics])


async def _commit(call: Call[Any], asked: Asked, topics: Topics, finish: Finish[R]) -> R:
    """A commit that has to wait before it is written: its topics are looked up, or it is large."""
    named, size = await topics.resolve(asked.topics), _size(asked.topics)
    service = call.runtime.get(OffsetService)
    commit = await off_loop.run(size, commit_of, call, asked, topics, named, service.metadata_limit)
    try:
        reply = await service.write(commit)
    except ProtocolError as error:
        raise _with_own_errors(error, asked, named, commit) from None
    assert reply is not None, "its topics were looked up as of now"
    return await off_loop.run(size, _counted, finish, asked, named, commit, reply)


def _counted(finish: Finish[R], asked: Asked, named: Sequence[Named], commit: Commit, reply: OffsetCommitReply) -> R:
    _commits(reply.error.name).inc()
    if reply.error is not Error.NONE:
        raise _with_own_errors(ProtocolError(reply.error, reply.detail), asked, named, commit)
    OFFSETS_COMMITTED.inc(commit.errors.count(Error.NONE))
    return finish(named, commit, reply)


_OWN = frozenset({Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID})


def _with_own_errors(refusal: ProtocolError, asked: Asked, named: Sequence[Named], commit: Commit) -> ProtocolError:
    """The refusal of a commit, with the partitions about which the group is not asked (offsets.md 2.2)."""
    own: list[PartitionError] = [
        {
            "topic": topic.name,
            "topic_id": topic.topic_id,
            "partition": number,
            "error": error.name,
            "error_code": error.code,
        }
        for entry, topic, errors in by_topic(asked.topics, named, commit.errors)
        for number, error in zip(entry.partitions, errors, strict=True)
        if error in _OWN
    ]
    if own:
        fields: ProblemFields = {**refusal.fields, "partition_errors": own}
        refusal.fields = fields
    return refusal


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


@serve(endpoints.TXN_COMMIT, metering=Metering(Budget.COMMITS))
async def txn_commit(call: Call[wire.TxnCommitRequest]) -> wire.TxnCommitResponse:
    """TxnOffsetCommit."""
    body = call.body
    call.principal.require_transactional_id(body.transactional_id)
    call.principal.require_group(Operation.READ, call.group_id)
    producer = _producer(body.transactional_id, body)
    asked = Asked(asked_topics(body.topics), body.generation_id, body.member_id, body.group_instance_id)

    def finish(named: Sequence[Named], commit: Commit, _reply: OffsetCommitReply) -> wire.TxnCommitResponse:
        return wire.TxnCommitResponse(answered(asked.topics, named, commit.errors))

    return await commit_in_transaction(call, producer, asked, finish)


async def commit_in_transaction(
    call: Call[Any], producer: Producer, asked: Asked, finish: Finish[R], *, knows_epochs: bool = False
) -> R:
    """The answer to a TxnOffsetCommit whose group and producer the caller may use, for either door.

    `knows_epochs`: as in `accepted`.
    """
    topics = Topics(call.runtime, call.principal)
    named = await topics.resolve(asked.topics)
    commit = commit_of(call, asked, topics, named, call.runtime.get(OffsetService).metadata_limit)
    work = accepted(call.runtime.get(TransactionService).commit(producer, commit), knows_epochs=knows_epochs)
    try:
        reply = await counted("txn_commit", work)
    except ProtocolError as error:
        raise _with_own_errors(error, asked, named, commit) from None
    OFFSETS_COMMITTED.inc(commit.errors.count(Error.NONE))
    return finish(named, commit, reply)


@serve(endpoints.END_TXN, metering=Metering(Budget.COMMITS))
async def end_txn(call: Call[wire.EndTxnRequest]) -> wire.EndTxnResponse:
    """EndTxn, and the marker that follows it."""
    call.principal.require_transactional_id(call.transactional_id)
    producer = _producer(call.transactional_id, call.body)
    service = call.runtime.get(TransactionService)
    ended = await counted("end_txn", service.end(producer, committed=call.body.committed))
    return wire.EndTxnResponse(ended.ended, ended.committed)


@serve(endpoints.INIT_PRODUCER_ID, metering=Metering(Budget.COMMITS))
async def init_producer_id(call: Call[None]) -> wire.InitProducerIdResponse:
    """InitProducerId."""
    call.principal.require_transactional_id(call.transactional_id)
    service = call.runtime.get(TransactionService)
    producer = await counted("init_producer_id", service.init(call.transactional_id))
    return wire.InitProducerIdResponse(producer.producer_id, producer.producer_epoch)


def _producer(transactional_id: str, body: wire.TxnCommitRequest | wire.EndTxnRequest) -> Producer:
    return Producer(transactional_id, int64(body.producer_id, "producer_id"), body.producer_epoch)
