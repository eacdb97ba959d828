"""What `decide` returns."""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.records import Record
from groups.core.replies import Answer, Parked, Reply
from groups.core.types import ClassicGroup


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one command.

    `group` is the folded group (None: it does not exist), `records` the facts that led there, `answers` those of
    parked requests whose barrier fell (the caller's own included), `reply` the caller's answer or `Parked`.
    """

    group: ClassicGroup | None
    records: tuple[Record, ...]
    answers: tuple[Answer, ...]
    reply: Reply | Parked
