"""How much work a look at a group, or a decision about it, is: how many partitions or topics it involves. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from groups.core.model.commands import ApplyRegexResolution, ApplyTarget, Command, ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group
from groups.core.model.types import TopicView

FEW_NAMES = 100
"""Up to this number of topics their partitions are counted; above it only the topics are."""


def size_of(group: Group | None) -> int:
    """How many partitions, or topic names, a look at the whole of a consumer group involves."""
    if not isinstance(group, ConsumerGroup):
        return 0
    resolved = (names for found in group.resolutions.values() for names in found.topics.values())
    return len(group.members.owners) + len(group.members.names) + sum(map(len, resolved))


def size_of_decision(group: Group | None, commands: Iterable[Command], topics: TopicView) -> int:
    """The same for everything that `commands` may lead to."""
    size = size_of(group)
    if isinstance(group, ConsumerGroup):
        size += _partitions(group.members.names, topics)
    for command in commands:
        match command:
            case ConsumerHeartbeat():
                size += _partitions(command.subscribed_topic_names or (), topics) + len(command.topic_partitions or ())
            case ApplyTarget():
                size += sum(len(target) for target in (command.targets or {}).values())
            case ApplyRegexResolution():
                size += sum(map(len, command.topics.values()))
            case _:
                pass
    return size


def _partitions(names: Collection[str], topics: TopicView) -> int:
    if len(names) > FEW_NAMES:
        return len(names)
    return sum(topics.by_name[name].partitions for name in names if name in topics.by_name)
