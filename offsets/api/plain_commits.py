"""Commits as members send them all the time: known topics, partitions that exist, nothing that is refused.

They are taken from the request column by column and answered without a look at each partition. Everything else goes
through `offsets.api.commits`, which answers the same for these.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UnsetType

from groups.core.model.types import Topic, TopicView
from kcoord.access.rights import Operation, Principal
from offsets.api import wire
from offsets.core.commit import Commit, Lines

_LONGEST_CHARACTER = 2
"""In UTF-16 code units, which the limit of metadata counts."""


def plain_commit(
    group_id: str, body: wire.CommitRequest, view: TopicView, principal: Principal, metadata_limit: int
) -> Commit | None:
    """The commit of a request; None: it is not that simple."""
    if body.retention_time_ms != -1:
        return None
    topics: list[tuple[str, int]] = []
    partitions: list[int] = []
    offsets: list[int] = []
    epochs: list[int] = []
    metadata: list[str] = []
    by_id = False
    for entry in body.topics:
        topic = _topic(entry, view, principal)
        if topic is None or not entry.partitions:
            return None
        by_id = by_id or not isinstance(entry.topic_id, UnsetType)
        numbers = [partition.partition for partition in entry.partitions]
        if min(numbers) < 0 or max(numbers) >= topic.partitions or len(set(numbers)) != len(numbers):
            return None
        topics.append((topic.name, len(numbers)))
        partitions += numbers
        for partition in entry.partitions:
            offset = partition.committed_offset
            if type(offset) is not int:
                return None
            offsets.append(offset)
        epochs += [partition.committed_leader_epoch for partition in entry.partitions]
        metadata += [partition.committed_metadata or "" for partition in entry.partitions]
    if not partitions or (len(topics) > 1 and len({name for name, _ in topics}) != len(topics)):
        return None
    longest = max(map(len, metadata))
    if longest * _LONGEST_CHARACTER > metadata_limit or any("\0" in text for text in metadata):
        return None
    return Commit(
        group_id,
        body.member_id,
        body.group_instance_id,
        body.generation_id_or_member_epoch,
        Lines(tuple(topics), partitions, offsets, epochs, metadata if longest else None),
        principal.name,
        view.version if by_id else None,
    )


def _topic(entry: wire.CommitTopic, view: TopicView, principal: Principal) -> Topic | None:
    """The topic of an entry, if the caller may commit offsets on it, and so may know of it."""
    if isinstance(entry.topic_id, UnsetType):
        topic = None if isinstance(entry.name, UnsetType) else view.by_name.get(entry.name)
    else:
        topic = view.by_id.get(entry.topic_id) if isinstance(entry.name, UnsetType) else None
    return topic if topic is not None and principal.may_topic(Operation.READ, topic.name) else None


def all_accepted(entries: Sequence[wire.CommitTopic], plain: Commit, view: TopicView) -> list[wire.CommittedTopic]:
    """The results of a plain commit of these entries, in the order of the request."""
    return [
        wire.CommittedTopic(name, view.by_name[name].topic_id, [_accepted(p.partition) for p in entry.partitions])
        for (name, _), entry in zip(plain.lines.topics, entries, strict=True)
    ]


_ACCEPTED: dict[int, wire.CommittedPartition] = {}
"""Results are the same for all topics; as many as a topic may have partitions."""


def _accepted(partition: int) -> wire.CommittedPartition:
    result = _ACCEPTED.get(partition)
    if result is None:
        result = _ACCEPTED[partition] = wire.CommittedPartition(partition, 0, "NONE")
    return result
