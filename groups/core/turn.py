"""The working context of one `decide`: the group as folded so far, and what has been decided about it.

A turn is the only thing here that changes, and only by appending: a record is folded the moment it is emitted, so a
handler always reads the group as its own records left it. What a refused request of a consumer member had decided is
taken back as a whole (`restore`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from groups.core.commands import ParkKind
from groups.core.consumer.group import ConsumerGroup
from groups.core.effects import Effect
from groups.core.fold import apply
from groups.core.group import Group
from groups.core.records import Record
from groups.core.replies import Answer, JoinReply, Parked, SyncReply
from groups.core.types import ClassicGroup, ClassicMember, Env, GroupConfig, Millis
from groups.core.waiting import answer_for


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A turn as it was: its group, and how much had been decided."""

    group: Group | None
    records: int
    answers: int
    effects: int


class Turn:
    """One command's worth of records, answers and effects."""

    def __init__(self, group: Group | None, env: Env) -> None:
        self.either = group
        """The group, whatever its protocol."""
        self.env = env
        self.records: list[Record] = []
        self.answers: list[Answer] = []
        self.effects: list[Effect] = []

    @property
    def now(self) -> Millis:
        """The instant of the decision, the same throughout."""
        return self.env.now

    @property
    def config(self) -> GroupConfig:
        """The settings."""
        return self.env.config

    @property
    def group(self) -> ClassicGroup | None:
        """The group, which must be a classic one where it exists."""
        assert not isinstance(self.either, ConsumerGroup), "the machine sends this command elsewhere"
        return self.either

    @property
    def consumer(self) -> ConsumerGroup:
        """The group, which must be a consumer group here."""
        assert isinstance(self.either, ConsumerGroup), "the handler made sure that it is a consumer group"
        return self.either

    @property
    def current(self) -> ClassicGroup:
        """The group, which must exist here."""
        assert self.group is not None, "the handler made sure that the group exists"
        return self.group

    def emit(self, record: Record) -> None:
        """Append a fact and fold it."""
        self.either = apply(self.either, record)
        self.records.append(record)

    def ask(self, effect: Effect) -> None:
        """Append an effect."""
        self.effects.append(effect)

    def save(self) -> Savepoint:
        """Where `restore` can come back to."""
        return Savepoint(self.either, len(self.records), len(self.answers), len(self.effects))

    def restore(self, savepoint: Savepoint) -> None:
        """Undo all that was decided since."""
        self.either = savepoint.group
        del self.records[savepoint.records :]
        del self.answers[savepoint.answers :]
        del self.effects[savepoint.effects :]

    def release(self, kind: ParkKind, waiting: Iterable[ClassicMember], generation_id: int) -> None:
        """Answer the requests that `waiting` had parked on `kind` in that generation; their barrier has just fallen."""
        for member in waiting:
            reply = answer_for(self.either, Parked(kind, member.member_id, member.instance_id, generation_id))
            assert isinstance(reply, JoinReply | SyncReply), f"{member.member_id} is released but still waits"
            self.answers.append(Answer(kind, member.member_id, reply))
