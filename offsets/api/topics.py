"""Topics as requests name them: by name, or by id."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import UnsetType

from groups.catalogue.topics import TopicService, partition_counts
from groups.core.model.types import TopicView
from kcoord.access.rights import Operation, Principal
from kcoord.http.problem import invalid
from kcoord.process.runtime import Runtime
from offsets.api import wire
from offsets.core.types import OffsetCommit, PartitionCounts


@dataclass(frozen=True, slots=True)
class Named:
    """A topic entry of a request. `name` is None if the given id belongs to no topic that the caller may see."""

    name: str | None
    topic_id: str | None


class Topics:
    """Topic names by id and ids by name, for one request."""

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

    def known(self, entries: Sequence[wire.FetchTopic]) -> list[Named] | None:
        """As `resolve`, without waiting, of topics that are named; None: `resolve` has to look, or to refuse them."""
        view = self._runtime.get(TopicService).known()
        if view is None:
            return None
        found: list[Named] = []
        for entry in entries:
            name = entry.name
            if isinstance(name, UnsetType) or not isinstance(entry.topic_id, UnsetType):
                return None
            topic = view.by_name.get(name)
            if not self._describable(name):
                found.append(Named(name, None))
            elif topic is None:
                return None
            else:
                found.append(Named(name, topic.topic_id))
        return found

    def counts(self, commit: OffsetCommit) -> PartitionCounts:
        """How many partitions the topics of a commit have, as they were looked up for it."""
        return partition_counts(self._view, {entry.topic for entry in commit.partitions})

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
