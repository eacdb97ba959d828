"""What needs attention, as groups were last judged, and how busy they are. Nothing here judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from groups.core.model.types import VerdictKind
from kcoord.process.runtime import Runtime
from kcoord.rest.paging import EVERYTHING, Visible
from kcoord.sql import queries
from offsets.core.types import Millis
from offsets.core.verdicts import NAMED, Verdict, worst_first

Q = queries("offsets")

MINUTE_MS: Millis = 60_000


@dataclass(frozen=True, slots=True)
class Summary:
    """All verdicts of one kind on a group, whatever their topics.

    `topics`: the first of them, of `topic_count`; none if the kind is not about topics. `names`: the first members, or
    the first partitions of the first topic. The others as in `Verdict`: the earliest instants, and sums.
    """

    kind: VerdictKind
    since: Millis
    due_at: Millis | None
    number: int
    lag: int | None
    topics: Sequence[str]
    topic_count: int
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class NeedyGroup:
    """A group that needs attention, and why, the worst first. `held_until` (ms): as in `GroupSummary`."""

    group_id: str
    state: str
    verdicts: Sequence[Summary]
    held_until: Millis | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """The groups in the worst condition; `total`: how many have a verdict, `counts`: how many have each.

    `judged_at` (ms): when all groups were last judged, by check; without one that never ran.
    """

    groups: Sequence[NeedyGroup]
    total: int
    counts: Mapping[VerdictKind, int]
    judged_at: Mapping[str, Millis]


@dataclass(frozen=True, slots=True)
class Minute:
    """How busy all groups were from `since` until `at` (ms), per minute; how far behind they were then, if known."""

    since: Millis
    at: Millis
    commits: float
    rebalances: float
    lag: int | None = None


def summaries(verdicts: Iterable[Verdict]) -> list[Summary]:
    """The verdicts on one group by kind, the worst first."""
    return [_summary(kind, list(found)) for kind, found in groupby(worst_first(verdicts), lambda verdict: verdict.kind)]


def _summary(kind: VerdictKind, found: Sequence[Verdict]) -> Summary:
    due = [verdict.due_at for verdict in found if verdict.due_at is not None]
    lags = [verdict.lag for verdict in found if verdict.lag is not None]
    topics = [verdict.topic for verdict in found if verdict.topic]
    return Summary(
        kind,
        found[0].since,
        min(due, default=None),
        sum(verdict.number for verdict in found),
        sum(lags) if lags else None,
        topics[:NAMED],
        len(topics),
        found[0].names,
    )


class VerdictReads:
    """Reads what `VerdictChecks` stored. Methods may raise COORDINATOR_NOT_AVAILABLE."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db

    async def attention(
        self, limit: int, visible: Visible = EVERYTHING, visible_topics: Visible = EVERYTHING
    ) -> Attention:
        """The first `limit` groups in `visible`: the worst verdict first, then what has lasted longest.

        Verdicts on topics that are not in `visible_topics` are left out.
        """
        kinds = [kind.value for kind in VerdictKind]
        seen = {**visible.parameters("group"), **visible_topics.parameters("topic")}
        async with self._db.snapshot() as connection:
            ids = await self._db.column(connection, Q.groups_in_need, {"worst_first": kinds, "limit": limit, **seen})
            summed = {"groups": list(ids), "worst_first": kinds, "named": NAMED, **seen}
            rows = await self._db.records(connection, _row, Q.summed_verdicts, summed)
            counts: dict[str, int] = dict(await self._db.rows(connection, Q.count_needy_groups_by_verdict, seen))
            total = await self._db.value(connection, Q.count_needy_groups, seen)
            runs: dict[str, Millis] = dict(await self._db.rows(connection, Q.verdict_runs))
        groups = [
            NeedyGroup(group_id, state, [row[3] for row in found], held_until)
            for (group_id, state, held_until), found in groupby(rows, lambda row: row[:3])
        ]
        return Attention(groups, total, {VerdictKind(kind): count for kind, count in counts.items()}, runs)

    async def activity(self, since: Millis) -> list[Minute]:
        """How busy groups were after an instant (ms), about every minute."""
        async with self._db.connection() as connection:
            rows = await self._db.rows(connection, Q.activity_since, {"since": since})
        return [
            Minute(
                before,
                at,
                max(lines - lines_before, 0) * MINUTE_MS / (at - before),
                rebalances * MINUTE_MS / (at - before),
                lag,
            )
            for (before, lines_before, *_), (at, lines, rebalances, lag) in pairwise(rows)
        ]


def _row(
    *, group_id: str, state: str, held_until: Millis | None, kind: str, **fields: Any
) -> tuple[str, str, Millis | None, Summary]:
    return group_id, state, held_until, Summary(VerdictKind(kind), **fields)
