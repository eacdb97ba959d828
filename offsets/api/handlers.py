"""Commit and fetch over HTTP.

Source: http-api.md 2, "commit, fetch"; offsets.md 2, 3 and 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from msgspec import UNSET, UnsetType

from groups.api.metering import admit_group
from kcoord.access.rights import Operation
from kcoord.http.paths import check_group_id
from kcoord.http.serving import Call, serve
from kcoord.http.types import int64, rfc3339
from kcoord.metrics import OFFSETS_COMMITTED, commands
from kcoord.process import off_loop
from kcoord.process.later import Later, then
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.quotas.quotas import Quotas
from offsets.acknowledged import AcknowledgedCommits
from offsets.api import endpoints, metering, wire
from offsets.api.topics import Named, Topics, answered, commit_of
from offsets.core.commit import Commit
from offsets.core.types import (
    FetchedOffset,
    OffsetCommitReply,
    OffsetFetch,
    OffsetFetchReply,
)
from offsets.service import OffsetService

GROUPS_AT_ONCE = 4
"""How many groups of one fetch are read concurrently, so that one request does not take the whole pool."""

Fetch = wire.FetchRequest | wire.FetchGroup

_commits = partial(commands, "commit")


@serve(endpoints.COMMIT, is_hot=True, metering=metering.COMMIT)
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


@serve(endpoints.FETCH, is_hot=True, metering=metering.FETCH)
def fetch(call: Call[wire.FetchRequest]) -> wire.FetchResponse | Awaitable[wire.FetchResponse]:
    """OffsetFetch for one group."""

    def answer(topics: list[wire.FetchedTopic]) -> wire.FetchResponse:
        lost = _lost(call, call.body.member_id or "", commits=False)
        return wire.FetchResponse(topics, committed_offsets_lost=lost)

    return then(fetched(call, call.group_id, call.body, call.body.require_stable), answer)


@serve(endpoints.MANY_FETCH, is_hot=True, metering=metering.MANY_FETCH)
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
