"""Subscriptions by regular expression. Expressions are matched in the background, together for all members of a group
that may describe the same topics.

Differs from Kafka: in Kafka an expression is matched with the rights of the member whose heartbeat happens to start it,
and members with other rights share the result: they are given partitions that they may not read.

Source: consumer.md 4.6.
"""

from __future__ import annotations

from enum import Enum

from groups.core.consumer.target import metadata_hash, refresh_epoch
from groups.core.model.causes import Cause
from groups.core.model.commands import ApplyRegexResolution, ConsumerHeartbeat
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_records import RegexesRequested, RegexesResolved, RegexInherited
from groups.core.model.consumer_state import ConsumerMember, RegexKey
from groups.core.model.effects import ResolveRegexes
from groups.core.model.replies import Done
from groups.core.model.rights import TopicRights
from groups.core.model.turn import Turn
from groups.core.model.types import GroupConfig, Millis
from kcoord.protocol.errors import Error, ProtocolError

LOST_AFTER_MS: Millis = 60_000
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
    turn.emit(RegexesRequested(rights.key, turn.now + LOST_AFTER_MS, turn.now))
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

    The target is computed by the next heartbeat.
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
    changed = any(before.matched_by((regex, rights)) != matched for regex, matched in topics.items())
    if changed or metadata_hash(after, turn.env.topics) != after.metadata_hash:
        refresh_epoch(turn, Cause.REGEXES_RESOLVED, None)
    return Done()
