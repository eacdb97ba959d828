"""One `decide`: its working context, its effects and its outcome.

A turn is the group as folded so far, and what has been decided about it. It is the only mutable object here, and it
only grows: a record is folded the moment it is emitted, so a handler always reads the group as its own records left it.
What a refused request of a consumer member had decided is undone as a whole (`restore`). Effects are what is to be done
once the decision is committed.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.model.consumer_group import EpochGroup, ShareGroup
from groups.core.model.fold import apply
from groups.core.model.group import Group
from groups.core.model.records import Record
from groups.core.model.replies import Answer, Parked, Reply
from groups.core.model.types import ClassicGroup, Env, GroupConfig, Limits, Millis, TopicRights, TopicView


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


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one command.

    `group` is the folded group (None: it does not exist), `records` the facts that led there, `answers` the answers to
    parked requests whose barrier fell, `reply` the caller's answer or `Parked`, `effects` what to do once the decision
    is committed.

    `answers` concern every request that waited before this decision; if the caller's own request parked and its barrier
    fell at once, that answer is in `answers` too (for requests it displaced) and is the `reply`. A `Parked` caller
    begins to wait after the answers are given out. Waiting heartbeats have no answers here: an effect says when to look
    at them again.
    """

    group: Group | None
    records: tuple[Record, ...]
    answers: tuple[Answer, ...]
    reply: Reply | Parked
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A turn as it was: its group, and how much was decided."""

    group: Group | None
    records: int
    answers: int
    effects: int


class Turn:
    """One command's worth of records, answers and effects."""

    def __init__(self, group: Group | None, env: Env) -> None:
        self.group = group
        """The group, whatever its protocol."""
        self.env = env
        self.records: list[Record] = []
        self.answers: list[Answer] = []
        self.effects: list[Effect] = []

    @property
    def now(self) -> Millis:
        """The instant of the decision, constant throughout."""
        return self.env.now

    @property
    def config(self) -> GroupConfig:
        """The settings."""
        return self.env.config

    @property
    def classic_or_none(self) -> ClassicGroup | None:
        """The group, which must be a classic one if it exists."""
        assert not isinstance(self.group, EpochGroup), "the machine sends this command elsewhere"
        return self.group

    @property
    def consumer(self) -> EpochGroup:
        """The group, which must be a consumer group or a share group here."""
        assert isinstance(self.group, EpochGroup), "the handler made sure that it is no classic group"
        return self.group

    @property
    def share(self) -> ShareGroup:
        """The group, which must be a share group here."""
        assert isinstance(self.group, ShareGroup), "the handler made sure that it is a share group"
        return self.group

    @property
    def limits(self) -> Limits:
        """The settings of the group, which must be a consumer group or a share group here."""
        return self.config.share if isinstance(self.group, ShareGroup) else self.config.consumer

    @property
    def classic(self) -> ClassicGroup:
        """The group, which must be a classic one and exist here."""
        assert self.classic_or_none is not None, "the handler made sure that the group exists"
        return self.classic_or_none

    def emit(self, record: Record) -> None:
        """Append a fact and fold it."""
        self.group = apply(self.group, record)
        self.records.append(record)

    def ask(self, effect: Effect) -> None:
        """Append an effect."""
        self.effects.append(effect)

    def save(self) -> Savepoint:
        """The point that `restore` can return to."""
        return Savepoint(self.group, len(self.records), len(self.answers), len(self.effects))

    def restore(self, savepoint: Savepoint) -> None:
        """Undo everything decided since."""
        self.group = savepoint.group
        del self.records[savepoint.records :]
        del self.answers[savepoint.answers :]
        del self.effects[savepoint.effects :]
