"""Topics as requests name them, by name or by id; from those of a commit to what is written of it, and back.

A commit is taken column by column: an object for each partition would cost more than everything else that is done for
it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import UnsetType

from groups.catalogue.topics import TopicService, partition_counts
from groups.core.model.types import TopicView
from kcoord.access.rights import Operation, Principal
from kcoord.http.problem import invalid
from kcoord.http.serving import Call
from kcoord.http.types import int64
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.api import wire
from offsets.core.commit import NO_RETENTION, Commit, Lines, take
from offsets.core.types import PartitionCounts


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
