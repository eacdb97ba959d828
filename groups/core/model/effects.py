"""Effects: work that a decision requests but that does not belong in its transaction.

The caller of the decision carries them out after the commit. A lost one is requested again by a later heartbeat.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.model.consumer_group import EpochGroup
from groups.core.model.rights import TopicRights
from groups.core.model.types import Millis, TopicView


@dataclass(frozen=True, slots=True)
class ComputeTarget:
    """Compute a target off the event loop (`consumer.target.compute`) and submit the `ApplyTarget` it returns.

    `group` is the group as of `group_epoch`, `topics` the catalogue, `assignor` the name of the assignor to run.
    """

    group_id: str
    group_epoch: int
    assignor: str
    group: EpochGroup
    topics: TopicView


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """Match the patterns against the whole names of all topics as of `topics_version` or later, and submit an
    `ApplyRegexResolution` with the version used and this `started_at`.

    `rights`: those of the members that use the patterns; only topics that they may describe match (consumer.md 4.6).
    """

    group_id: str
    patterns: frozenset[str]
    topics_version: int
    started_at: Millis
    rights: TopicRights


@dataclass(frozen=True, slots=True)
class WakeMembers:
    """Look again at the heartbeats that wait in this group, here and in other processes (`waiting.answer_for`)."""

    group_id: str


Effect = ComputeTarget | ResolveRegexes | WakeMembers
