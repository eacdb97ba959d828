"""Judges groups: all of them in turn for lists, /metrics and the overview, one at once for its page.

Celery beat calls `check_members` every `verdict.check.interval.ms` and `check_offsets` every `lag.sample.interval.ms`,
through the bridge. The rules are those of `offsets.core.verdicts`.
Source: decisions/stored-verdicts.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from groups.core.model.events import EventKind
from groups.core.model.types import VerdictKind
from kcoord.config import Config
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from kcoord.sql import queries
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
