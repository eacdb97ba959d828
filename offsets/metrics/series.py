"""Series about groups for /metrics, from their latest samples: never from the rows that members write.

Their number is bounded by `metrics.max.groups` and `metrics.max.topics`; those of the largest lag are kept. A process
repeats an answer for `metrics.cache.ms` to callers who may describe the same names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from groups.core.model.types import VerdictKind
from kcoord.access.rights import Operation, Principal, Resource
from kcoord.database.pool import Connection
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.sql import queries
from offsets.alerts.store import AlertStore
from offsets.alerts.types import Outcomes
from offsets.core.types import Millis
from offsets.metrics.dialects import DIALECTS, GroupRow, TopicRow, VerdictRow
from offsets.metrics.text import heading, rendered

Q = queries("offsets")

MAX_CACHED = 8
"""Answers that a process keeps; more kinds of callers than these share nothing."""


async def group_series(runtime: Runtime, caller: Principal | None) -> bytes:
    """See `kcoord.http.metrics_page.GroupSeries`. Raises COORDINATOR_NOT_AVAILABLE."""
    return await runtime.get(GroupMetrics).text(caller)


@dataclass(frozen=True, slots=True)
class Overview:
    """Groups of a type in a state: how many, their members, and when the last of them was sampled."""

    type: str
    state: str
    groups: int
    members: int
    at: Millis


@dataclass(frozen=True, slots=True)
class Named:
    """The rows that are shown."""

    groups: Sequence[GroupRow] = ()
    topics: Sequence[TopicRow] = ()
    verdicts: Sequence[VerdictRow] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """How many groups have each verdict, and when each check last ran."""

    groups: Mapping[str, int]
    runs: Mapping[str, Millis]


class GroupMetrics:
    """What /metrics says about groups. Only one query runs at a time, so that scrapes do not use up the pool."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._dialect = DIALECTS[runtime.config.str("metrics.dialect")]
        self._max_groups = runtime.config.int("metrics.max.groups")
        self._max_topics = runtime.config.int("metrics.max.topics")
        self._repeated_seconds = runtime.config.int("metrics.cache.ms") / 1000
        self._cache: dict[str, tuple[float, bytes]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._alert_store = runtime.get(AlertStore)
        runtime.on_connection_lost(self._cache.clear)

    async def text(self, caller: Principal | None) -> bytes:
        """The series in the text format; `caller` None: without names. Raises COORDINATOR_NOT_AVAILABLE."""
        key = _key(caller)
        async with self._one_at_a_time:
            found = self._cache.get(key)
            if found is not None and found[0] > monotonic():
                return found[1]
            text = await self._read(caller)
            self._cache.pop(key, None)
            if len(self._cache) >= MAX_CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = monotonic() + self._repeated_seconds, text
            return text

    async def _read(self, caller: Principal | None) -> bytes:
        async with self._db.snapshot() as connection:
            now = await self._db.now_ms(connection)
            overview = await self._db.records(connection, Overview, Q.sampled_overview)
            ((offsets,),) = await self._db.rows(connection, Q.sampled_offsets)
            judged = Judged(
                dict(await self._db.rows(connection, Q.counted_verdicts)),
                dict(await self._db.rows(connection, Q.verdict_runs)),
            )
            alerts = await self._alerts(connection)
            named = Named() if caller is None else await self._named(connection, caller)
        text = _overview(overview, offsets, now) + _judged(judged, now) + _told(*alerts, now)
        if caller is not None:
            text += _left_out(named)
        series = len(named.groups) + len(named.topics) + len(named.verdicts)
        rows = named.groups, named.topics, named.verdicts
        return text.encode() + await off_loop.run(series, rendered, self._dialect, *rows)

    async def _alerts(self, connection: Connection) -> tuple[int, Outcomes]:
        opened = await self._alert_store.open_by_rule(connection)
        return sum(opened.values()), await self._alert_store.outcomes(connection)

    async def _named(self, connection: Connection, caller: Principal) -> Named:
        topics_of = caller.visible(Resource.TOPIC).parameters("topic")
        groups_of = caller.visible(Resource.GROUP).parameters("group")
        groups = await off_loop.records(
            connection, GroupRow, Q.sampled_groups, {**groups_of, **topics_of, "limit": self._max_groups}
        )
        parameters = {**topics_of, "groups": [row.id for row in groups], "limit": self._max_topics}
        topics = await off_loop.records(connection, TopicRow, Q.sampled_topics, parameters)
        return Named(groups, topics, await off_loop.records(connection, VerdictRow, Q.visible_verdicts, parameters))


def _key(caller: Principal | None) -> str:
    """Equal for callers who may describe the same names."""
    if caller is None:
        return "nobody"
    return " ".join(caller.rules.key(Operation.DESCRIBE, resource) for resource in (Resource.GROUP, Resource.TOPIC))


def _overview(found: Sequence[Overview], offsets: int, now: Millis) -> str:
    """Kafka's `classic-group-count` and `consumer-group-count` by state, and `offset-count` (offsets.md 12)."""
    if not found:
        return ""
    members: Mapping[str, int] = {
        kind: sum(row.members for row in found if row.type == kind) for kind in sorted({row.type for row in found})
    }
    age = max(now - max(row.at for row in found), 0) / 1000
    return "".join(
        [
            heading("kcoord_groups", "gauge", "Groups, when they were sampled."),
            *(f'kcoord_groups{{type="{row.type}",state="{row.state}"}} {row.groups}\n' for row in found),
            heading("kcoord_members", "gauge", "Members of all groups, when they were sampled."),
            *(f'kcoord_members{{type="{kind}"}} {count}\n' for kind, count in members.items()),
            heading("kcoord_offsets", "gauge", "Committed offsets of all groups, when they were sampled."),
            f"kcoord_offsets {offsets}\n",
            heading("kcoord_sample_age_seconds", "gauge", "How long ago groups were last sampled."),
            f"kcoord_sample_age_seconds {age}\n",
        ]
    )


def _judged(judged: Judged, now: Millis) -> str:
    if not judged.runs:
        return ""
    return "".join(
        [
            heading("kcoord_verdicts", "gauge", "Groups with a verdict, when they were last judged."),
            *(
                f'kcoord_verdicts{{verdict="{kind.value}"}} {judged.groups.get(kind.value, 0)}\n'
                for kind in VerdictKind
            ),
            heading("kcoord_verdict_age_seconds", "gauge", "How long ago groups were last judged."),
            *(
                f'kcoord_verdict_age_seconds{{check="{check}"}} {max(now - at, 0) / 1000}\n'
                for check, at in sorted(judged.runs.items())
            ),
        ]
    )


def _told(opened: int, outcomes: Outcomes, now: Millis) -> str:
    states = {"failed": outcomes.failed, "sent": outcomes.sent, "waiting": outcomes.waiting}
    unsent = 0 if outcomes.unsent_since is None else max(now - outcomes.unsent_since, 0)
    return "".join(
        [
            heading("kcoord_alerts_open", "gauge", "Alerts that are open."),
            f"kcoord_alerts_open {opened}\n",
            heading("kcoord_alert_messages", "gauge", "Messages about alerts that are kept, by what became of them."),
            *(f'kcoord_alert_messages{{state="{state}"}} {count}\n' for state, count in states.items()),
            heading("kcoord_alert_unsent_seconds", "gauge", "Age of the oldest message that waits to be sent."),
            f"kcoord_alert_unsent_seconds {unsent / 1000}\n",
        ]
    )


def _left_out(named: Named) -> str:
    missing = {
        kind: rows[0].found - len(rows) if rows else 0
        for kind, rows in (("groups", named.groups), ("topics", named.topics))
    }
    return "".join(
        [
            heading("kcoord_metrics_left_out", "gauge", "What has no series because of metrics.max.groups and topics."),
            *(f'kcoord_metrics_left_out{{kind="{kind}"}} {count}\n' for kind, count in missing.items()),
        ]
    )
