"""What `decide` returns."""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.model.effects import Effect
from groups.core.model.group import Group
from groups.core.model.records import Record
from groups.core.model.replies import Answer, Parked, Reply


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
