"""Reads what happened to all groups and to the service in a span: bounded by what is shown, not by what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frontend.pages.history.span import Span
from frontend.ui.rows import Millis
from frontend.ui.viewer import Viewer
from groups.core.model.events import EventKind
from groups.core.model.verdicts import VerdictKind
from kcoord.process.runtime import Runtime
from kcoord.sql import queries
from offsets.verdicts.reads import Minute, VerdictReads

Q = queries("frontend")

MOST_EVENTS = 20_000
"""Events of all groups that are looked at for rebalances, the newest of the span."""
MOST_OTHERS = 1_000
"""Of each other kind, the newest of the span."""
LATE_MS = 60_000
"""An event may be stored so much after a later one, at most."""
BEGINNINGS = (EventKind.REBALANCE_STARTED.value, EventKind.GROUP_EPOCH_BUMPED.value)
LASTING = [kind.value for kind in VerdictKind if kind is not VerdictKind.EXPIRING]
"""Kinds of verdicts that have a beginning."""

OF_GROUPS: Mapping[str, str] = {
    "verdict": Q.verdicts_in_span,
    "plan": Q.plans_in_span,
    "alert": Q.alerts_in_span,
}
OF_SERVICE: Mapping[str, str] = {"hand-over": Q.hand_overs_in_span, "run": Q.runs_in_span}
"""For who may describe the cluster."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for. `prefix`: of group ids, "" for all; `label`: its name and value, None for any value."""

    span: Span
    prefix: str = ""
    label: tuple[str, str | None] | None = None

    @property
    def of_all_groups(self) -> bool:
        """Whatever they are called, and whatever labels they have."""
        return not self.prefix and self.label is None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A rebalance of a group, or an epoch of a consumer group, began. `id`: of the event; `cause`: None: not given."""

    id: int
    at: Millis
    kind: str
    generation_id: int
    group_name: str
    cause: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """Anything else, as the statements of its kind have it; `group_name` "": it is about the service."""

    at: Millis
    what: str
    group_name: str
    ref: str
    name: str
    number: int | None
    ms: Millis | None


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened, each kind newest first. `since`: from which instant (ms) a kind is known that has more before.

    `minutes`: how often all groups rebalanced, where their rebalances are not all read.
    """

    now: Millis
    rebalances: Sequence[Rebalance]
    others: Mapping[str, Sequence[Record]]
    since: Mapping[str, Millis]
    minutes: Sequence[Minute] = field(default=())


async def happened(runtime: Runtime, viewer: Viewer, asked: Asked) -> Happened:
    """What the viewer may see of a span. Raises COORDINATOR_NOT_AVAILABLE."""
    db, span = runtime.db, asked.span
    name, value = asked.label or (None, None)
    parameters: dict[str, Any] = {
        "first": span.first, "last": span.last, "most": MOST_EVENTS + 1, "limit": MOST_OTHERS + 1,
        "prefix": asked.prefix or None, "label": name, "label_value": value, **viewer.with_groups(),
    }  # fmt: skip
    since: dict[str, Millis] = {}
    others: dict[str, Sequence[Record]] = {}
    async with db.snapshot() as connection:
        now = await db.now_ms(connection)
        ids = {
            name: await db.value(connection, Q.first_event_from, {"at": at})
            for name, at in (("first_id", span.first - LATE_MS), ("last_id", span.last + LATE_MS))
        }
        beginnings = {**parameters, **ids, "kinds": list(BEGINNINGS)}
        found = await db.rows(connection, Q.rebalances_of_groups, beginnings)
        for kind, statement in {**OF_GROUPS, **(OF_SERVICE if viewer.sees_cluster else {})}.items():
            records = await db.records(connection, Record, statement, {**parameters, "kinds": LASTING})
            others[kind] = records[:MOST_OTHERS]
            if len(records) > MOST_OTHERS:
                since[kind] = records[MOST_OTHERS - 1].at
    minutes: Sequence[Minute] = ()
    if found and (oldest := found[0][0]) is not None:
        since["rebalance"] = oldest
        if asked.of_all_groups and viewer.sees_all and viewer.sees_cluster:
            minutes = await runtime.get(VerdictReads).activity(span.first)
    return Happened(now, [Rebalance(*row[1:]) for row in found if row[1] is not None], others, since, minutes)
