"""The group epoch, and the target: which member should have which partitions, computed for all of them at once.

The digest of the subscribed topics decides whether the epoch must rise.
Source: consumer.md 2.5 (steps 3 and 4), 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from groups.core.assignors import SHARE, Assignor, AssignorFailed, GroupSpec, MemberSpec, Partitions
from groups.core.model.causes import Cause
from groups.core.model.commands import ApplyTarget
from groups.core.model.consumer_group import EpochGroup, ShareGroup
from groups.core.model.consumer_records import (
    GroupEpochBumped,
    MetadataChecked,
    TargetComputed,
    TargetFailed,
    TargetRequested,
)
from groups.core.model.consumer_state import RegexKey
from groups.core.model.effects import ComputeTarget
from groups.core.model.replies import Done
from groups.core.model.turn import Turn
from groups.core.model.types import Millis, TopicView
from kcoord.protocol.errors import Error, ProtocolError


def metadata_hash(group: EpochGroup, topics: TopicView) -> str:
    """Digest of the subscribed topics that exist: their ids, names and partition counts. "" if none exists."""
    known = [topics.by_name[name] for name in sorted(group.subscribed_topics()) if name in topics.by_name]
    if not known:
        return ""
    lines = "\n".join(f"{topic.topic_id}\t{topic.name}\t{topic.partitions}" for topic in known)
    return sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def refresh_epoch(turn: Turn, cause: Cause | None, member_id: str | None) -> None:
    """Bump the group epoch for `cause`, or because the subscribed topics changed since the last look.

    Nothing is compared while the catalogue is unchanged. Differs from Kafka: its groups are notified of changes of
    their topics and forget them on a restart; ours compare the version of the catalogue, which they store (consumer.md
    4.4).
    """
    group, topics = turn.consumer, turn.env.topics
    if cause is None and group.metadata_version == topics.version:
        return
    digest = metadata_hash(group, topics)
    if cause is None and digest != group.metadata_hash:
        cause = Cause.TOPICS_CHANGED
    if cause is None:
        turn.emit(MetadataChecked(topics.version, turn.now))
        return
    turn.emit(GroupEpochBumped(group.group_epoch + 1, cause, member_id, digest, topics.version, turn.now))


LOST_AFTER_MS: Millis = 30_000
"""A computation that has not returned by then is requested again."""
RETRY_AFTER_MS: Millis = 10_000
"""How soon a computation that failed in the background is requested again."""


def assignors_of(group: EpochGroup, assignors: Mapping[str, Assignor]) -> Mapping[str, Assignor]:
    """Those that may compute the target of the group; `assignors` are for groups of the consumer protocol."""
    return SHARE if isinstance(group, ShareGroup) else assignors


def preferred_assignor(group: EpochGroup, assignors: Mapping[str, Assignor]) -> str:
    """The name with the most votes; on a tie, or without votes, the first as configured (consumer.md 5.2)."""
    return max(assignors_of(group, assignors), key=lambda name: group.members.votes.get(name, 0))


def update_target(turn: Turn) -> None:
    """Compute the target if the group epoch is ahead of it, or request it in the background if that takes long
    (consumer.md 5.1).

    Differs from Kafka: whether it is computed in the background depends on its size, and is not a group setting.
    Raises `ProtocolError` UNKNOWN_SERVER_ERROR when the assignor fails.
    """
    group, config = turn.consumer, turn.config
    if group.group_epoch <= group.assignment_epoch:
        return
    if deferred_ms(turn) is not None:
        return
    if group.target_job is not None and turn.now < group.target_job.deadline:
        return
    name = preferred_assignor(group, turn.env.assignors)
    work = ComputeTarget(group.group_id, group.group_epoch, name, group, turn.env.topics)
    limit = config.consumer_assignment_inline_limit
    # The first target of a group is computed at once: until it exists its members have no epoch.
    if limit is not None and group.assignment_epoch and _size(group, turn.env.topics) > limit:
        turn.emit(TargetRequested(group.group_epoch, name, turn.now + LOST_AFTER_MS, turn.now))
        turn.ask(work)
        return
    result = compute(work, turn.env.assignors)
    if result.targets is None:
        raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, f"assignor {name!r} failed: {result.failure}")
    _store(turn, result, result.targets)


def deferred_ms(turn: Turn) -> Millis | None:
    """The delay after which the target that the group awaits may be computed; None: at once, or it awaits none."""
    group = turn.consumer
    if not group.awaits_target:
        return None
    # If a target was never computed, the timestamp is 0: longer ago than any interval.
    left = group.assignment_timestamp + turn.limits.assignment_interval_ms - turn.now
    return left if left > 0 else None


def compute(work: ComputeTarget, assignors: Mapping[str, Assignor]) -> ApplyTarget:
    """Run the assignor. Pure, and safe to run in any thread; a failure of the assignor is part of the result."""
    topics = _topics(work.group, work.topics)
    spec = _spec(work.group, work.topics)
    try:
        targets = assignors_of(work.group, assignors)[work.assignor].assign(spec, topics)
        _check(spec, topics, targets, shared=isinstance(work.group, ShareGroup))
    except Exception as error:  # noqa: BLE001 - an assignor is a plug-in: whatever it raises, it has failed
        failure = str(error) if isinstance(error, AssignorFailed) else repr(error)
        return ApplyTarget(work.group_id, work.group_epoch, work.assignor, None, failure)
    everybody = {member_id: targets.get(member_id, {}) for member_id in spec.members}
    return ApplyTarget(work.group_id, work.group_epoch, work.assignor, everybody)


def apply_target(turn: Turn, command: ApplyTarget) -> Done:
    """Store what was computed in the background, unless the group stopped waiting for it.

    If the group epoch has moved on, members that joined since then keep their empty target and the share of those that
    left stays free until the next computation. At the same epoch only the replacement of a static member can have
    happened in between; then a computation with the new member is under way, or requested next.
    """
    group = turn.consumer
    job = group.target_job
    if job is None or job.epoch != command.group_epoch:
        return Done()
    targets = command.targets
    if targets is not None and command.group_epoch == group.group_epoch and not targets.keys() <= group.members.keys():
        return Done()
    if targets is None:
        retry_at = turn.now + RETRY_AFTER_MS
        turn.emit(TargetFailed(command.group_epoch, command.assignor, command.failure, retry_at, turn.now))
    else:
        _store(turn, command, targets)
    return Done()


def _store(turn: Turn, result: ApplyTarget, targets: Mapping[str, Partitions]) -> None:
    members = turn.consumer.members
    changed = {
        member_id: target
        for member_id in members
        if (target := targets.get(member_id, {})) != members[member_id].target
    }
    turn.emit(TargetComputed(result.group_epoch, result.assignor, changed, turn.now))


def _size(group: EpochGroup, topics: TopicView) -> int:
    return len(group.members) * sum(_topics(group, topics).values())


def _topics(group: EpochGroup, topics: TopicView) -> Mapping[str, int]:
    """Topic id -> partitions of the subscribed topics that exist, in the order of their names."""
    known = [topics.by_name[name] for name in sorted(group.subscribed_topics()) if name in topics.by_name]
    return {topic.topic_id: topic.partitions for topic in known}


def _spec(group: EpochGroup, topics: TopicView) -> GroupSpec:
    """All members, departed static ones included. Equal subscriptions share one set of topic ids."""
    shared: dict[tuple[frozenset[str], RegexKey | None], frozenset[str]] = {}
    members = {}
    for member_id, member in group.members.items():
        key = member.subscribed_topic_names, member.regex_key
        if key not in shared:
            names = group.subscription_of(member)
            shared[key] = frozenset(topics.by_name[name].topic_id for name in names if name in topics.by_name)
        members[member_id] = MemberSpec(shared[key], member.target, member.instance_id, member.rack_id)
    return GroupSpec(members, homogeneous=group.homogeneous)


def _check(spec: GroupSpec, topics: Mapping[str, int], targets: Mapping[str, Partitions], *, shared: bool) -> None:
    """Raises `AssignorFailed` for a target that is invalid, above all for a partition with two owners, unless members
    share partitions.
    """
    given: dict[str, set[int]] = {topic_id: set() for topic_id in topics}
    for member_id, target in targets.items():
        if member_id not in spec.members:
            raise AssignorFailed(f"it assigned partitions to {member_id!r}, which is not a member")
        for topic_id, partitions in target.items():
            if topic_id not in topics or not all(0 <= p < topics[topic_id] for p in partitions):
                raise AssignorFailed(f"it assigned partitions of topic {topic_id} that do not exist")
            if not shared and not given[topic_id].isdisjoint(partitions):
                raise AssignorFailed(f"it assigned a partition of topic {topic_id} twice")
            given[topic_id] |= partitions
