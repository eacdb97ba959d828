"""Committed offsets for tests: commits of simple consumers, and what is stored, in the journal and on the timeline."""

from __future__ import annotations

from typing import Any

from groups.topics import TopicService, Watermark, partition_counts
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.service import OffsetService
from offsets.core.commit import Commit
from tests.support.commits import OffsetCommit, PartitionCommit, Reply, results_of, take

MINUTE_MS = 60_000


async def make_topics(runtime: Runtime, **topics: int) -> None:
    """Topics by name, with their numbers of partitions."""
    for name, partitions in topics.items():
        await runtime.get(TopicService).create(name, partitions)


async def taken(topics: TopicService, asked: OffsetCommit) -> Commit:
    """What is to be written of a commit."""
    names = {entry.topic for entry in asked.partitions}
    view = await topics.find(partitions=[(entry.topic, entry.partition) for entry in asked.partitions])
    return take(asked, partition_counts(view, names))


async def reply_to(offsets: OffsetService, asked: OffsetCommit) -> Reply:
    """The reply to a commit, with the result of each partition."""
    commit = await taken(offsets._topics, asked)
    reply = await offsets.write(commit)
    assert reply is not None
    results = results_of(asked, commit) if reply.error is Error.NONE else ()
    return Reply(reply.error, results, reply.session_deadline, reply.detail)


async def commit(runtime: Runtime, group_id: str, topic: str, *partitions: int, offset: int = 5, **commit: Any) -> None:
    """Commit an offset on some partitions, without membership unless it is given."""
    entries = tuple(PartitionCommit(topic, partition, offset) for partition in partitions)
    values = {"member_id": "", "group_instance_id": None, "generation_id": -1, **commit}
    reply = await reply_to(runtime.get(OffsetService), OffsetCommit(group_id, partitions=entries, **values))
    assert reply.error is Error.NONE, reply
    assert {error for _, _, error in reply.results} == {Error.NONE}, reply


async def report(topics: TopicService, *ends: int, start: int = 0) -> None:
    """Report where the partitions of `orders` end."""
    await topics.set_watermarks("orders", [Watermark(p, start, end) for p, end in enumerate(ends)], truncated=True)


async def rows(runtime: Runtime, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    async with runtime.db.connection() as connection:
        return await runtime.db.rows(connection, statement, parameters)


async def stored(runtime: Runtime) -> list[tuple[str, str, int, int]]:
    """Group, topic, partition and offset of everything committed."""
    statement = """
        select g.group_id, o.topic, o.partition, o.committed_offset
        from offsets_committedoffset o join groups_group g on g.id = o.group_id
        order by 1, 2, 3
    """
    return await rows(runtime, statement)  # type: ignore[return-value]


async def journal(runtime: Runtime, kind: str) -> list[tuple[str, str, int, int | None, str]]:
    """Group, topic, partition, offset and principal of the lines of one kind."""
    statement = """
        select group_name, topic, partition, committed_offset, principal from offset_commit_log
        where kind = %(kind)s order by 1, 2, 3
    """
    return await rows(runtime, statement, kind=kind)  # type: ignore[return-value]


async def events(runtime: Runtime, group_id: str, kind: str) -> list[dict[str, Any]]:
    """Details of a group's events of one kind, the oldest first."""
    statement = "select detail from groups_event where group_name = %(group_id)s and kind = %(kind)s order by id"
    return [detail for (detail,) in await rows(runtime, statement, group_id=group_id, kind=kind)]


async def put_pending(runtime: Runtime, group_id: str, topic: str, partition: int, producer_id: int = 1) -> None:
    """An offset of an open transaction, as its commit writes it."""
    statement = """
        insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset, leader_epoch,
                                           metadata, commit_timestamp, opened_at, record_offset, member_id,
                                           generation_id, client_id, principal)
        select %(producer_id)s, id, %(topic)s, %(partition)s, 9, -1, '', 0, 0, nextval('offset_commit_log_id_seq'),
               '', -1, '', ''
        from groups_group where group_id = %(group_id)s
    """
    async with runtime.db.connection() as connection:
        parameters = {"producer_id": producer_id, "group_id": group_id, "topic": topic, "partition": partition}
        await connection.execute(statement.encode(), parameters)
