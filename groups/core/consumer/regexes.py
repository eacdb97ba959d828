"""Subscriptions by regular expression. They are matched in the background, all of a group together.

Source: consumer specification, section 4.6.
"""

from __future__ import annotations

from enum import Enum

from groups.core.commands import ApplyRegexResolution
from groups.core.consumer.epochs import metadata_hash, refresh_epoch
from groups.core.consumer.group import ConsumerGroup
from groups.core.consumer.records import EpochCause, RegexesRequested, RegexesResolved
from groups.core.effects import ResolveRegexes
from groups.core.replies import Done
from groups.core.turn import Turn
from groups.core.types import Env, Millis
from kcoord.errors import Error, ProtocolError

LOST_AFTER_MS: Millis = 60_000
"""A resolution that has not come back by then is asked for again."""
LEAST_PAUSE_MS: Millis = 10_000
"""Between two resolutions of a group, whatever the reason for the second."""


class RegexChange(Enum):
    """What a heartbeat did to its member's regular expression."""

    NO_CHANGE = "no_change"
    UPDATED = "updated"
    UPDATED_AND_RESOLVED = "updated_and_resolved"
    """The new one is known to match some topics, or none because there is none."""
    NEW = "new"
    """As UPDATED, and nobody else in the group uses the expression."""


def regex_change(group: ConsumerGroup, before: str, after: str, env: Env) -> RegexChange:
    """How a member's change from `before` to `after` ("": none) is to be treated; `group` is not yet changed.

    Raises `ProtocolError` INVALID_REGULAR_EXPRESSION.
    """
    if before == after:
        return RegexChange.NO_CHANGE
    if not after:
        return RegexChange.UPDATED_AND_RESOLVED
    if after not in group.members.regexes:
        error = env.regex_error(after)
        if error is not None:
            raise ProtocolError(Error.INVALID_REGULAR_EXPRESSION, f"subscribed_topic_regex {after!r}: {error}")
        return RegexChange.NEW
    if group.resolution is not None and after in group.resolution.topics:
        return RegexChange.UPDATED_AND_RESOLVED
    return RegexChange.UPDATED


def refresh_regexes(turn: Turn, member_id: str, change: RegexChange) -> None:
    """Ask for a resolution where one is due. One at a time; one that got lost does not block for ever."""
    group = turn.consumer
    patterns = group.members.regexes.keys()
    if not patterns or (group.regex_job is not None and turn.now < group.regex_job.deadline):
        return
    if not _is_due(group, turn, change):
        return
    turn.emit(RegexesRequested(turn.now + LOST_AFTER_MS, turn.now))
    turn.ask(ResolveRegexes(group.group_id, frozenset(patterns), turn.env.topics.version, turn.now, member_id))


def _is_due(group: ConsumerGroup, turn: Turn, change: RegexChange) -> bool:
    resolution = group.resolution
    if resolution is None:
        return True
    age = turn.now - resolution.started_at
    if age <= LEAST_PAUSE_MS:
        return False
    return (
        change is RegexChange.NEW
        or len(resolution.topics) != len(group.members.regexes)
        or turn.env.topics.version > resolution.topics_version
        or age > turn.config.consumer_regex_refresh_interval_ms
    )


def apply_resolution(turn: Turn, command: ApplyRegexResolution) -> Done:
    """Store a resolution, unless a later one is there already; bump the group epoch if it changes what is subscribed.

    The target is computed by the next heartbeat.
    """
    before = turn.consumer
    if before.resolution is not None and before.resolution.started_at >= command.started_at:
        return Done()
    kept = before.resolution.topics if before.resolution is not None else {}
    known = {**kept, **command.topics}
    topics = {regex: known[regex] for regex in before.members.regexes if regex in known}
    turn.emit(RegexesResolved(topics, command.topics_version, command.started_at, turn.now))
    after = turn.consumer
    changed = any(before.matched_by(regex) != matched for regex, matched in topics.items())
    if changed or metadata_hash(after, turn.env.topics) != after.metadata_hash:
        refresh_epoch(turn, EpochCause.REGEXES_RESOLVED, None)
    return Done()
