"""Which committed offsets expire, and when: one rule for both the run that removes them and the page that shows it.

Pure. Instants and lengths are milliseconds.
Source: offsets.md 7.3, and 7.4 for groups; pins are an addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from groups.core.model.consumer_group import ConsumerGroupState, EpochGroup, ShareGroup
from groups.core.model.group import Group
from groups.core.model.types import CONSUMER, ClassicGroup, GroupState
from groups.core.subscription import SubscribedTopics, subscribed_topics
from offsets.core.types import Millis


class Kept(str, Enum):
    """Why an offset does not expire while nothing changes.

    PINNED: an operator requested it. REBALANCING: the group is between two generations, or is being unloaded. MEMBERS:
    it has members, of a protocol type that does not reveal which topics they read. SUBSCRIBED: a member reads the
    topic, or may do so as far as is known. PENDING: an open transaction is about to replace it.
    """

    PINNED = "pinned"
    REBALANCING = "rebalancing"
    MEMBERS = "members"
    SUBSCRIBED = "subscribed"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Pins:
    """What is pinned in a group: everything, or some topics."""

    group: bool = False
    topics: frozenset[str] = frozenset()

    def __contains__(self, topic: str) -> bool:
        return self.group or topic in self.topics

    def __bool__(self) -> bool:
        return self.group or bool(self.topics)


NO_PINS = Pins()


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """What retention considers in a committed offset. `expire_timestamp`: set if the commit named a retention time.

    `pending`: an open transaction has an offset for the same partition.
    """

    topic: str
    partition: int
    commit_timestamp: Millis
    expire_timestamp: Millis | None = None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Fate:
    """When an offset expires (the first run at or after that instant removes it), or why it does not."""

    expires_at: Millis | None
    kept: Kept | None = None


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """What applies to the offsets of one group in its current state.

    `since`: retention counts from this instant for all offsets; None: from the commit of each. `kept`: why none of them
    expires, whatever the offset says; None: they do.
    """

    retention_ms: Millis
    since: Millis | None
    kept: Kept | None
    subscribed: SubscribedTopics
    pins: Pins

    def fate(self, offset: StoredOffset) -> Fate:
        """The verdict on an offset."""
        if offset.topic in self.pins:
            return Fate(None, Kept.PINNED)
        if self.kept is not None:
            return Fate(None, self.kept)
        if offset.topic in self.subscribed:
            return Fate(None, Kept.SUBSCRIBED)
        if offset.pending:
            return Fate(None, Kept.PENDING)
        if offset.expire_timestamp is not None:
            return Fate(offset.expire_timestamp)
        return Fate((offset.commit_timestamp if self.since is None else self.since) + self.retention_ms)

    def expired(self, offset: StoredOffset, now: Millis) -> bool:
        """Does a run at `now` remove the offset? The instant itself counts."""
        expires_at = self.fate(offset).expires_at
        return expires_at is not None and expires_at <= now

    @property
    def keeps_all(self) -> bool:
        """No offset of the group expires, whatever its topic."""
        return self.kept is not None or self.pins.group or not self.subscribed.known

    @property
    def kept_topics(self) -> frozenset[str]:
        """Topics whose offsets do not expire, for a rule that does not keep all."""
        return self.pins.topics | (self.subscribed.names or frozenset())


def rule_of(group: Group, pins: Pins, retention_ms: Millis) -> RetentionRule:
    """The rule for the offsets of a group."""
    since, kept = (None, _of_consumer(group)) if isinstance(group, EpochGroup) else _of_classic(group)
    return RetentionRule(retention_ms, since, kept, subscribed_topics(group), pins)


def _of_consumer(group: EpochGroup) -> Kept | None:
    """Differs from Kafka: while a regular expression is not resolved yet, the topics that it matches are unknown."""
    return None if all(group.is_resolved(key) for key in group.members.regexes) else Kept.SUBSCRIBED


def _of_classic(group: ClassicGroup) -> tuple[Millis | None, Kept | None]:
    """The base time, and why nothing expires, if so, by protocol type and state."""
    if group.protocol_type is None:
        return None, None
    if group.state is GroupState.EMPTY:
        return group.state_since, None
    if group.protocol_type != CONSUMER:
        return None, Kept.MEMBERS
    if group.state is GroupState.STABLE:
        return None, None  # an unknown subscription already keeps all topics
    return None, Kept.REBALANCING


def may_go(group: Group, pins: Pins, *, offsets_left: bool) -> bool:
    """Does retention remove the group? Empty, without committed and pending offsets, however young (offsets.md 7.4).

    Pending member ids do not count. A held group stays until the hold has ended, because the hold would be lost with
    it. A share group never has committed offsets, and stays until it is deleted (share.md 5).
    """
    if isinstance(group, ShareGroup):
        return False
    empty = group.state in (GroupState.EMPTY, ConsumerGroupState.EMPTY)
    return empty and not offsets_left and not pins and group.hold is None
