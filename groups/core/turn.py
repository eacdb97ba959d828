"""The working context of one `decide`: the group as folded so far, and what has been decided about it.

A turn is the only thing here that changes, and only by appending: a record is folded the moment it is emitted, so a
handler always reads the group as its own records left it.
"""

from __future__ import annotations

from collections.abc import Iterable

from groups.core.commands import ParkKind
from groups.core.fold import apply
from groups.core.records import Record
from groups.core.replies import Answer, Parked
from groups.core.types import ClassicGroup, ClassicMember, Env, GroupConfig, Millis
from groups.core.waiting import answer_for


class Turn:
    """One command's worth of records and answers."""

    def __init__(self, group: ClassicGroup | None, env: Env) -> None:
        self.group = group
        self.env = env
        self.records: list[Record] = []
        self.answers: list[Answer] = []

    @property
    def now(self) -> Millis:
        """The instant of the decision, the same throughout."""
        return self.env.now

    @property
    def config(self) -> GroupConfig:
        """The settings."""
        return self.env.config

    @property
    def current(self) -> ClassicGroup:
        """The group, which must exist here."""
        assert self.group is not None, "the handler made sure that the group exists"
        return self.group

    def emit(self, record: Record) -> None:
        """Append a fact and fold it."""
        self.group = apply(self.group, record)
        self.records.append(record)

    def release(self, kind: ParkKind, waiting: Iterable[ClassicMember], generation_id: int) -> None:
        """Answer the requests that `waiting` had parked on `kind` in that generation; their barrier has just fallen."""
        for member in waiting:
            reply = answer_for(self.group, Parked(kind, member.member_id, member.instance_id, generation_id))
            assert reply is not None, f"{member.member_id} is released but still waits"
            self.answers.append(Answer(kind, member.member_id, reply))
