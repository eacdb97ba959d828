"""Judges groups: all of them in turn for lists, /metrics and the overview, one at once for its page.

Celery beat calls `check_members` every `verdict.check.interval.ms` and `check_offsets` every `lag.sample.interval.ms`,
through the bridge. The rules are those of `offsets.core.verdicts`. What needs attention, as groups were last
judged, and how busy they are is read here, too.
Source: decisions/stored-verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, pairwise
from typing import Any

from groups.core.model.events import EventKind
from groups.core.model.types import VerdictKind
from kcoord.config import Config
from kcoord.database.paging import EVERYTHING, Visible
from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.types import Millis
from offsets.core.verdicts import (
    FIRST_SEEN,
    NAMED,
    StoredSession,
    Thresholds,
    Verdict,
    late,
    with_beginnings,
    worst_first,
)
from offsets.lag.samples import GROUP_BATCH, OFFSET_BATCH, Spared

Q = queries("offsets")

REBALANCES = (EventKind.REBALANCE_STARTED.value, EventKind.GROUP_EPOCH_BUMPED.value)
"""Events with which a rebalance begins."""

ACTIVITY_MS: Millis = 60_000
ACTIVITY_KEPT_MS: Millis = 86_400_000
"""How often it is noted how busy groups are, and how long that is kept."""
SAMPLES_MISSED = 3
"""So many samples later, a lag is no longer that of now."""

LAST_KEY = 2**63 - 1
_STORING_LOCK = 0x6B636F_03


class Check(str, Enum):
    """What groups are judged by: their members every few seconds, their offsets as often as lag is sampled."""

    MEMBERS = "members"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True)
class Statements:
    """How a check finds the verdicts of its kinds."""

    kinds: Sequence[VerdictKind]
    texts: Sequence[str]


CHECKS: Mapping[Check, Statements] = {
    Check.MEMBERS: Statements(
        (VerdictKind.STUCK, VerdictKind.LATE, VerdictKind.FLAPPING),
        (Q.judge_states, Q.judge_sessions, Q.judge_rebalances),
    ),
    Check.OFFSETS: Statements(
        (
            VerdictKind.STALLED,
            VerdictKind.DISPUTED,
            VerdictKind.STALE,
            VerdictKind.UNCOVERED,
            VerdictKind.EXPIRING,
            VerdictKind.UNATTENDED,
            VerdictKind.UNSETTLED,
            VerdictKind.DEAD_LETTERS,
        ),
        (Q.judge_owned, Q.judge_subscriptions, Q.judge_retention, Q.judge_items),
    ),
}
"""Every kind belongs to one check."""


def thresholds(config: Config) -> Thresholds:
    """Those that are set."""
    return Thresholds(
        stuck_ms=config.int("verdict.stuck.ms"),
        late_percent=config.int("verdict.late.percent"),
        longest_session_ms=config.int("group.consumer.max.session.timeout.ms"),
        stalled_ms=config.int("verdict.stalled.ms"),
        stalled_lag=config.int("verdict.stalled.lag"),
        uncovered_ms=config.int("verdict.uncovered.ms"),
        flapping_rebalances=config.int("verdict.flapping.rebalances"),
        flapping_window_ms=config.int("verdict.flapping.window.ms"),
        expiring_ms=config.int("verdict.expiring.ms"),
        stale_ms=config.int("lag.stale.ms"),
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict on a group, by the key of its row."""

    group_id: int
    verdict: Verdict


def _judged(*, group_id: int, kind: str, **fields: Any) -> Judged:
    return Judged(group_id, Verdict(VerdictKind(kind), **fields))


class VerdictChecks:
    """Judges and stores. Methods may raise COORDINATOR_NOT_AVAILABLE; what was stored until then is kept."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._thresholds = thresholds(runtime.config)
        self._retention_ms = runtime.config.int("offsets.retention.minutes") * 60_000
        self._sampled_ms = SAMPLES_MISSED * runtime.config.int("lag.sample.interval.ms")

    async def check_members(self) -> int:
        """Judge all groups by their members, and note how busy they are; returns how many verdicts there are.

        Groups whose data Postgres refuses are left out, and named in the GroupsFailed that is raised at the end.
        """
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
            last = await self._db.value(connection, Q.last_group) or 1
        spared = Spared("members cannot be judged")

        async def judge(after: int, upto: int) -> int:
            async with self._db.connection() as connection:
                found = await self._find(connection, Check.MEMBERS, now, after, upto)
            await self._store(Check.MEMBERS, found, after, upto)
            return len(found)

        count = sum(await spared.run(judge, 0, last))
        await self._store(Check.MEMBERS, [], last, LAST_KEY)
        await self._note(Check.MEMBERS, now)
        spared.check()
        return count

    async def check_offsets(self) -> int:
        """Judge all groups by their offsets, a batch of groups at a time; returns how many verdicts there are."""
        async with self._db.connection() as connection:
            now = await self._db.now_ms(connection)
        after, count = 0, 0
        spared = Spared("offsets cannot be judged")

        async def judge(after: int, upto: int) -> int:
            found: list[Judged] = []
            if upto != LAST_KEY:
                async with self._db.connection() as connection:
                    found = await self._find(connection, Check.OFFSETS, now, after, upto)
            await self._store(Check.OFFSETS, found, after, upto)
            return len(found)

        while after < LAST_KEY:
            bounds = {"after": after, "groups": GROUP_BATCH, "offsets": OFFSET_BATCH}
            async with self._db.connection() as connection:
                upto = await self._db.value(connection, Q.groups_to_sample, bounds) or LAST_KEY
            count += sum(await spared.run(judge, after, upto))
            after = upto
        await self._note(Check.OFFSETS, now)
        spared.check()
        return count

    async def of_group(
        self,
        connection: Connection,
        group: int,
        now: Millis,
        checks: Iterable[Check] = tuple(Check),
        named: int = NAMED,
    ) -> list[Verdict]:
        """The verdicts on one group as of `now` (ms), the worst first; of other checks the stored ones.

        `group`: the key of its row. `named`: the maximum number of members or partitions that a verdict names.
        """
        stored = await self._db.records(
            connection, lambda **row: _judged(group_id=group, **row).verdict, Q.stored_verdicts, {"group_id": group}
        )
        checked = tuple(checks)
        found = [judged.verdict for check in checked for judged in await self._of(connection, check, now, group, named)]
        began = {(verdict.kind, verdict.topic): verdict.since for verdict in stored}
        live = {kind for check in checked for kind in CHECKS[check].kinds}
        return worst_first(
            [*with_beginnings(found, began), *(verdict for verdict in stored if verdict.kind not in live)]
        )

    def is_late(self, armed_at: Millis, deadline: Millis, now: Millis) -> bool:
        """Whether a member with this session (ms) misses heartbeats, in a group on which there is a verdict LATE."""
        return late(StoredSession(armed_at, deadline), now, self._thresholds) is not None

    async def _of(self, connection: Connection, check: Check, now: Millis, group: int, named: int) -> list[Judged]:
        return await self._find(connection, check, now, group - 1, group, named)

    async def _find(
        self, connection: Connection, check: Check, now: Millis, after: int, upto: int, named: int = NAMED
    ) -> list[Judged]:
        """The verdicts on the groups with these keys, `after` excluded."""
        parameters = {
            **self._thresholds.at(now),
            "after": after,
            "upto": upto,
            "named": named,
            "rebalance_kinds": list(REBALANCES),
            "retention_ms": self._retention_ms,
        }
        found: list[Judged] = []
        for text in CHECKS[check].texts:
            found += await self._db.records(connection, _judged, text, parameters)
        return found

    async def _store(self, check: Check, found: Sequence[Judged], after: int, upto: int) -> None:
        verdicts = [judged.verdict for judged in found]
        parameters = {
            "after": after,
            "upto": upto,
            "kinds": [kind.value for kind in CHECKS[check].kinds],
            "first_seen": [kind.value for kind in FIRST_SEEN],
            "group_id": [judged.group_id for judged in found],
            "kind": [verdict.kind.value for verdict in verdicts],
            "names": ["\n".join(verdict.names) for verdict in verdicts],
            **{
                name: [getattr(verdict, name) for verdict in verdicts]
                for name in ("topic", "since", "due_at", "number", "lag")
            },
        }

        async def work(connection: Connection) -> None:
            await connection.execute(Q.one_at_a_time.encode(), {"key": _STORING_LOCK})
            await connection.execute(Q.store_verdicts.encode(), parameters)

        await self._db.transaction(work)

    async def _note(self, check: Check, now: Millis) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(Q.note_run.encode(), {"name": check.value, "now": now})
            if check is Check.MEMBERS:
                noted = {
                    "now": now,
                    "before": now - ACTIVITY_MS,
                    "sampled_after": now - self._sampled_ms,
                    "rebalance_kinds": list(REBALANCES),
                }
                await connection.execute(Q.note_activity.encode(), noted)
                await connection.execute(Q.forget_activity.encode(), {"before": now - ACTIVITY_KEPT_MS})

        await self._db.transaction(work)


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
