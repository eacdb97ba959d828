"""The group epoch, and the target: which member should have which partitions, computed for all of them at once.

The digest of the subscribed topics decides whether the epoch must rise. Subscriptions by regular expression are
matched in the background, together for all members of a group that may describe the same topics.
Source: consumer.md 2.5 (steps 3 and 4), 4, 4.6 and 5. Differs from Kafka: in Kafka an expression is matched with the
rights of the member whose heartbeat happens to start it, and members with other rights share the result: they are given
partitions that they may not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from hashlib import sha256

from groups.core.assignors import SHARE, Assignor, AssignorFailed, GroupSpec, MemberSpec, Partitions
from groups.core.model.commands import ApplyRegexResolution, ApplyTarget, ConsumerHeartbeat
from groups.core.model.consumer_group import ConsumerMember, EpochGroup, RegexKey, ShareGroup
from groups.core.model.consumer_records import (
    GroupEpochBumped,
    MetadataChecked,
    RegexesRequested,
    RegexesResolved,
    RegexInherited,
    TargetComputed,
    TargetFailed,
    TargetRequested,
)
from groups.core.model.replies import Done
from groups.core.model.turn import ComputeTarget, ResolveRegexes, Turn
from groups.core.model.types import Cause, GroupConfig, Millis, TopicRights, TopicView
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


RESOLUTION_LOST_AFTER_MS: Millis = 60_000
"""A resolution that has not returned by then is requested again."""
LEAST_PAUSE_MS: Millis = 10_000
"""The minimum time between two resolutions of a group, whatever the reason for the second."""


class RegexChange(Enum):
    """What a heartbeat did to its member's regular expression."""

    NO_CHANGE = "no_change"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated_and_resolved"
    """The new one is known to match some topics, or matches none because it is empty."""


def regex_of(command: ConsumerHeartbeat, before: ConsumerMember) -> str:
    """The regular expression of a member after a heartbeat, "" for none; it was `before`."""
    regex = command.subscribed_topic_regex
    return regex if regex is not None else before.subscribed_topic_regex


def change_regex(turn: Turn, before: ConsumerMember, command: ConsumerHeartbeat) -> RegexChange:
    """How a heartbeat's change to the regular expression of its member is to be treated; the member is not yet changed.

    Another expression and the same one with other rights both count as a change. Raises `ProtocolError`
    INVALID_REGULAR_EXPRESSION.
    """
    regex = regex_of(command, before)
    if not regex:
        return RegexChange.UPDATED_AND_RESOLVED if before.subscribed_topic_regex else RegexChange.NO_CHANGE
    key = (regex, command.rights.key)
    had = before.regex_key
    if key == had:
        return RegexChange.NO_CHANGE
    if had is not None and had[0] == regex:
        return _change_rights(turn, had, command.rights)
    group = turn.consumer
    if key not in group.members.regexes:
        error = turn.env.regex_error(regex)
        if error is not None:
            raise ProtocolError(Error.INVALID_REGULAR_EXPRESSION, f"subscribed_topic_regex {regex!r}: {error}")
    return RegexChange.UPDATED_AND_RESOLVED if group.is_resolved(key) else RegexChange.UPDATED


def _change_rights(turn: Turn, had: RegexKey, rights: TopicRights) -> RegexChange:
    """A member has other `rights` than those with which its expression was resolved so far, `had`.

    Topics that the member may no longer describe are dropped from its subscription at once; topics that it may
    describe now are added by the next resolution. It gives nothing up in between: an added rule must not stop a group.
    """
    regex, matched = had[0], turn.consumer.matched_by(had)
    key = (regex, rights.key)
    if turn.consumer.is_resolved(had) and not turn.consumer.is_resolved(key):
        left = frozenset(name for name in matched if rights.may_describe(name))
        turn.emit(RegexInherited(rights.key, regex, left, turn.now))
    return RegexChange.UPDATED if turn.consumer.matched_by(key) == matched else RegexChange.UPDATED_AND_RESOLVED


def refresh_regexes(turn: Turn, rights: TopicRights) -> None:
    """Request a resolution if one is due, of the expressions of all members with the rights of the caller.

    One at a time; a lost one does not block forever. Only a caller's own rights are known: the expressions of members
    with other rights are resolved when those members send heartbeats.
    """
    group = turn.consumer
    if not resolution_is_due(group, rights.key, turn.config, turn.env.topics.version, turn.now):
        return
    patterns = _patterns(group, rights.key)
    turn.emit(RegexesRequested(rights.key, turn.now + RESOLUTION_LOST_AFTER_MS, turn.now))
    turn.ask(ResolveRegexes(group.group_id, patterns, turn.env.topics.version, turn.now, rights))


def resolution_is_due(
    group: EpochGroup, rights_key: str, config: GroupConfig, topics_version: int, now: Millis
) -> bool:
    """Must the expressions of the members with these rights be resolved, and is that not under way?

    A new expression is due, too: a resolution has no other expressions than those in use (consumer.md 4.6).
    """
    job = group.regex_jobs.get(rights_key)
    patterns = _patterns(group, rights_key)
    if not patterns or (job is not None and now < job.deadline):
        return False
    resolution = group.resolutions.get(rights_key)
    if resolution is None or resolution.started_at is None:
        return True
    age = now - resolution.started_at
    if age <= LEAST_PAUSE_MS:
        return False
    return (
        len(resolution.topics) != len(patterns)
        or topics_version > resolution.topics_version
        or age > config.consumer_regex_refresh_interval_ms
    )


def _patterns(group: EpochGroup, rights_key: str) -> frozenset[str]:
    return frozenset(regex for regex, key in group.members.regexes if key == rights_key)


def apply_resolution(turn: Turn, command: ApplyRegexResolution) -> Done:
    """Store a resolution, unless a later one is already stored; bump the group epoch if it changes the subscriptions.

    The target is computed by the next heartbeat. Differs from Kafka: a topic that was deleted is no change, since the
    heartbeat that noticed it has bumped the epoch; Kafka resolves after creations only, and then bumps it again.
    """
    before, rights = turn.consumer, command.rights
    earlier = before.resolutions.get(rights)
    if earlier is not None and earlier.started_at is not None and earlier.started_at >= command.started_at:
        return Done()
    known = {**(earlier.topics if earlier is not None else {}), **command.topics}
    topics = {regex: known[regex] for regex, key in before.members.regexes if key == rights and regex in known}
    version = command.topics_version if topics.keys() <= command.topics.keys() else -1
    turn.emit(RegexesResolved(rights, topics, version, command.started_at, turn.now))
    after = turn.consumer
    existing = turn.env.topics.by_name.keys()
    changed = any((before.matched_by((regex, rights)) ^ matched) & existing for regex, matched in topics.items())
    if changed or metadata_hash(after, turn.env.topics) != after.metadata_hash:
        refresh_epoch(turn, Cause.REGEXES_RESOLVED, None)
    return Done()
