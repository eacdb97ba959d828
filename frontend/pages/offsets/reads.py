"""What forms of resets and plans read: topics to tick, progress, risks, and how long catching up takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.pages.offsets.form import BOXES_OF_A_TOPIC, MOST_BOXES
from frontend.ui.chart import HOUR as HOUR_MS
from frontend.ui.rows import Millis
from frontend.ui.viewer import Viewer
from frontend.ui.wording import duration, number, plural
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries
from offsets.core.plan_types import PlanState
from offsets.plans.summary import PlanHeader

SHORTEST_MS = 120_000
"""Samples of a shorter time say too little."""
MARGIN = 1.05
"""A group that reads at most this much faster than is written keeps pace: how fast it could read is not known."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What samples say. None: they do not say it. `lag_change` and `written` in records, over `span_ms`.

    `measured` of `partitions` have a sample of their log from the beginning of that time.
    """

    span_ms: Millis | None
    lag_change: int | None
    written: int | None
    measured: int
    partitions: int


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """`text`: how long it takes, or that it is not known; `why`: from what that follows."""

    text: str
    why: str


def catching_up(lag: int | None, rate: Rate | None) -> CatchingUp:
    """How long it takes from `lag` records behind, at the rate of the last hour."""
    if lag is None:
        return CatchingUp("not known", "The end of a log is not known.")
    if lag == 0:
        return CatchingUp("nothing to catch up", "The offsets are at the ends of the logs.")
    behind = f"{number(lag)} records behind"
    if rate is None or not rate.span_ms or rate.span_ms < SHORTEST_MS or rate.lag_change is None:
        return CatchingUp("not known", f"{behind}; there are too few samples of lag in the last hour.")
    if rate.written is None or rate.measured < rate.partitions:
        return CatchingUp("not known", f"{behind}; how much is written is not known for every partition.")
    seconds = rate.span_ms / 1_000
    read, written = (rate.written - rate.lag_change) / seconds, rate.written / seconds
    if read <= 0:
        return CatchingUp("not known", f"{behind}; the group has read nothing in the last hour.")
    rates = f"reading {_per_second(read)}, written {_per_second(written)}"
    if read <= written * MARGIN:
        least = duration(int(lag / read * 1_000))
        return CatchingUp(
            f"at least {least}",
            f"{behind}; {rates} in the last hour: the group keeps pace, so how much faster it can read is not known.",
        )
    return CatchingUp(f"about {duration(int(lag / (read - written) * 1_000))}", f"{behind}; {rates} in the last hour.")


def _per_second(rate: float) -> str:
    return f"{number(round(rate))}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s"


NO_LAG = "No watermark was known, or there is no offset before or after"
OWN_POLICY = "start where their own reset policy says, at the beginning or at the end of the log"


@dataclass(frozen=True, slots=True)
class Risk:
    """What happens if the plan is applied. `act`: the button's action that avoids it, with its label; "" if none."""

    text: str
    act: str = ""
    label: str = ""


def at_risk(plan: PlanHeader) -> int:
    """Partitions after whose change members do not read on from a committed offset."""
    return plan.totals["removed"] + (plan.totals["outside"] or 0)


def risks(plan: PlanHeader, *, whole: bool = True) -> list[Risk]:
    """What is risky about a plan that is not applied, the worst first. `whole`: its totals are of all its topics."""
    if plan.state is not PlanState.PLANNED:
        return []
    totals = plan.totals
    removed, unknown, outside = totals["removed"], totals["unknown"] or 0, totals["outside"] or 0
    told = []
    if removed:
        of = plural(removed, "partition")
        if whole and removed == totals["partitions"]:
            of = f"all {of} of the plan" if removed > 1 else "the only partition of the plan"
        told.append(Risk(f"The committed offset of {of} will be removed: members {OWN_POLICY}."))
    if unknown:
        missing = f"For {plural(unknown, 'partition')} the commit history does not reach back to that time."
        meaning = "Nothing is known about them then; that does not mean that nothing was committed."
        told.append(Risk(f"{missing} {meaning}", "keep", f"Keep {'its offset' if unknown == 1 else 'their offsets'}"))
    if outside:
        where = "offset of 1 partition is" if outside == 1 else f"offsets of {plural(outside, 'partition')} are"
        told.append(Risk(f"The new {where} outside the log: members {OWN_POLICY}.", "clamp", "Clamp to the log"))
    return told


Q = queries("frontend")

MOST_TOPICS = 100
"""Topics to tick; others are named in a field."""
MOST_RATED = 2_000
"""Partitions whose growth is looked up; with more of them it is not known."""


@dataclass(frozen=True, slots=True)
class TickTopic:
    """A topic on which the group has committed. `lag` None: not known; `topics`: how many there are."""

    topic: str
    partitions: int
    measured: int
    lag: int | None
    topics: int


@dataclass(frozen=True, slots=True)
class TickPartition:
    """A partition with a box of its own."""

    topic: str
    partition: int
    committed_offset: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class TickList:
    """What can be ticked, the topics furthest behind first. Wide topics have no boxes for their partitions."""

    topics: Sequence[TickTopic]
    boxes: dict[str, list[TickPartition]]

    @property
    def more(self) -> int:
        """Topics that are not listed."""
        return self.topics[0].topics - len(self.topics) if self.topics else 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the partitions of a plan are now; `ahead`: beyond the planned offset. Lags None: no log is known."""

    partitions: int
    as_planned: int
    ahead: int
    unmeasured: int
    planned_lag: int | None
    lag: int | None
    topics: Sequence[str]

    @property
    def elsewhere(self) -> int:
        """Neither where the plan put them nor beyond."""
        return self.partitions - self.as_planned - self.ahead


async def tick_list(db: Database, viewer: Viewer, group_id: str) -> TickList:
    """Topics and partitions of a group; empty if there is no such group for the viewer."""
    async with db.snapshot() as connection:
        pk = await _pk(db, connection, viewer, group_id)
        if pk is None:
            return TickList((), {})
        seen = {"pk": pk, **viewer.parameters()}
        topics = await db.records(connection, TickTopic, Q.reset_topics, {**seen, "limit": MOST_TOPICS})
        boxed, left = [], MOST_BOXES
        for topic in topics:
            if topic.partitions <= min(BOXES_OF_A_TOPIC, left):
                boxed.append(topic.topic)
                left -= topic.partitions
        parameters = {**seen, "topics": boxed, "limit": MOST_BOXES}
        found = await db.records(connection, TickPartition, Q.reset_partitions, parameters)
    boxes: dict[str, list[TickPartition]] = {topic: [] for topic in boxed}
    for one in found:
        boxes[one.topic].append(one)
    return TickList(topics, boxes)


async def progress(db: Database, viewer: Viewer, group_id: str, plan_id: str) -> tuple[Progress | None, Rate | None]:
    """Where the partitions of a plan are, and how fast the group has read their topics in the last hour."""
    async with db.snapshot() as connection:
        pk = await _pk(db, connection, viewer, group_id)
        asked = {"pk": pk or 0, "id": plan_id, **viewer.parameters()}
        found = await db.record(connection, Progress, Q.plan_progress, asked)
        if found is None or pk is None:
            return found, None
        since = await db.now_ms(connection) - HOUR_MS
        parameters = {"group_id": group_id, "pk": pk, "topics": found.topics, "since": since, "limit": MOST_RATED + 1}
        rate = await db.record(connection, Rate, Q.reading_rate, parameters)
    return found, None if rate is None or rate.partitions > MOST_RATED else rate


async def _pk(db: Database, connection: Connection, viewer: Viewer, group_id: str) -> int | None:
    if not viewer.sees_group(group_id):
        return None
    row = await db.row(connection, Q.group_pk, {"group_id": group_id})
    return None if row is None else int(row[0])
