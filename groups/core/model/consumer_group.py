"""A group with epochs as a whole: of the consumer protocol, or a share group.

Source: consumer.md 1.1, 1.4 and 4.6; share.md 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar

from groups.core.model.consumer_state import (
    ConsumerGroupState,
    ConsumerMember,
    ConsumerMembers,
    Job,
    RegexKey,
    RegexResolution,
    ShareMembers,
    Timers,
)
from groups.core.model.types import Hold, Millis


@dataclass(frozen=True, slots=True)
class EpochGroup:
    """What a group of the consumer protocol and a share group have in common (consumer.md 1.1): members with epochs on
    the way to a target that the coordinator computes. A share group uses no regular expressions.

    `metadata_hash`: digest of the subscribed topics that exist, as of the last look; `metadata_version`: the version of
    the catalogue at that look, -1 before the first. `assignment_timestamp`: when the target was last computed, 0 for
    never. `resolutions`: what regular expressions match, by the key of the rights of the members that use them.
    `regex_jobs`, one for each key, and `target_job`: background work in progress.
    """

    type: ClassVar[str]
    """As Kafka's ListGroups has it."""
    group_id: str
    state_since: Millis = 0
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignment_timestamp: Millis = 0
    metadata_hash: str = ""
    metadata_version: int = -1
    members: ConsumerMembers = field(default_factory=ConsumerMembers)
    timers: Timers = field(default_factory=Timers)
    resolutions: Mapping[str, RegexResolution] = field(default_factory=dict)
    regex_jobs: Mapping[str, Job] = field(default_factory=dict)
    target_job: Job | None = None
    hold: Hold | None = None
    armed_gap: int = 0
    """As that of a `ClassicGroup`."""

    @property
    def state(self) -> ConsumerGroupState:
        """The state as Kafka reports it."""
        raise NotImplementedError

    @property
    def awaits_target(self) -> bool:
        """Must the target be computed, and is no computation in progress yet?"""
        return self.group_epoch > self.assignment_epoch and self.target_job is None

    @property
    def homogeneous(self) -> bool:
        """Do all members subscribe to the same topics, as far as is known without comparing them?"""
        size, members = len(self.members), self.members
        if members.regexes:
            return not members.names and set(members.regexes.values()) == {size}
        return all(count == size for count in members.names.values())

    def matched_by(self, key: RegexKey) -> frozenset[str]:
        """The names of the topics that a regular expression matches with some rights; nothing until it is resolved.

        Differs from Kafka: in Kafka members that use the same expression share what it matches for one of them.
        """
        regex, rights = key
        resolution = self.resolutions.get(rights)
        return resolution.topics.get(regex, frozenset()) if resolution is not None else frozenset()

    def is_resolved(self, key: RegexKey) -> bool:
        """Is the result of a regular expression with some rights known?"""
        regex, rights = key
        return rights in self.resolutions and regex in self.resolutions[rights].topics

    def subscription_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of all topics the member subscribes to, whether they exist or not."""
        key = member.regex_key
        return member.subscribed_topic_names if key is None else member.subscribed_topic_names | self.matched_by(key)

    def subscribed_topics(self) -> AbstractSet[str]:
        """The names of all topics that any member subscribes to."""
        names = set(self.members.names)
        for key in self.members.regexes:
            names |= self.matched_by(key)
        return names

    def subscribes_to(self, topic: str) -> bool:
        """Does any member subscribe to the topic of this name (consumer.md 7.3 and 4.4)?"""
        return topic in self.members.names or any(topic in self.matched_by(key) for key in self.members.regexes)


@dataclass(frozen=True, slots=True)
class ConsumerGroup(EpochGroup):
    """A group of the consumer protocol: each partition has one member at most."""

    type: ClassVar[str] = "consumer"

    @property
    def state(self) -> ConsumerGroupState:
        """consumer.md 1.4, the first condition that holds."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self.members.stable_at.get(self.assignment_epoch, 0) < len(self.members):
            return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE


@dataclass(frozen=True, slots=True)
class ShareGroup(EpochGroup):
    """A share group (KIP-932): its members share partitions, so nobody has to give one up before another has it."""

    type: ClassVar[str] = "share"
    members: ConsumerMembers = field(default_factory=ShareMembers)

    @property
    def state(self) -> ConsumerGroupState:
        """share.md 1.1: there is no assigning or reconciling, a member takes its target in one step."""
        return ConsumerGroupState.STABLE if self.members else ConsumerGroupState.EMPTY
