"""The events of a group about changes of its offsets by people and by the service."""

from __future__ import annotations

from collections.abc import Iterable

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.events import MOST_TOPICS, EventKind, GroupEvent
from groups.core.model.group import Group
from offsets.core.types import TopicPartition


def offsets_event(
    kind: EventKind,
    group: Group,
    partitions: Iterable[TopicPartition],
    *,
    principal: str = "",
    plan_id: str | None = None,
    reason: str = "",
) -> GroupEvent:
    """An event about these partitions of a group: how many, and the names of their topics. See `GroupEvent`."""
    changed = list(partitions)
    told: dict[str, object | None] = {
        "partitions": len(changed),
        "topics": sorted({topic for topic, _ in changed})[:MOST_TOPICS],
        "principal": principal or None,
        "plan_id": plan_id,
        "reason": reason or None,
    }
    detail = {key: value for key, value in told.items() if value is not None}
    return GroupEvent(kind, generation_of(group), detail=detail)


def generation_of(group: Group | None) -> int:
    """The generation, or the epoch, that an event of a group shows; 0 if the group does not exist."""
    if group is None:
        return 0
    return group.group_epoch if isinstance(group, EpochGroup) else group.generation_id
