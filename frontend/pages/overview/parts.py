"""The parts of the overview, each read by itself, and whether they are well, as lines of text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg
import structlog

from frontend.ui.reads import names_in_groups
from frontend.ui.rows import Millis, Names
from frontend.ui.states import RUN_KINDS, State, found_state, run_state
from frontend.ui.viewer import Viewer
from frontend.ui.wording import joined, plural
from groups.core.model.types import VerdictKind
from groups.nodes.overview import NodeOverviews, NodeView
from groups.nodes.overview import Overview as Nodes
from kcoord.database import task_health
from kcoord.database.paging import Visible
from kcoord.database.pool import PoolUsage
from kcoord.database.sql import queries
from kcoord.database.task_health import TaskHealth
from kcoord.door.http.health import Check, readiness
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.alerts.service import AlertService
from offsets.alerts.types import Outcomes
from offsets.commits import acknowledged
from offsets.runs.service import SparkRun, SparkRuns
from offsets.verdicts import Attention, Minute, VerdictReads

log = structlog.get_logger(__name__)

Q = queries("frontend")


GROUPS_SHOWN = 15
FURTHEST = 5
ACTIVITY_MS: Millis = 3_600_000
"""How much of the past is drawn."""

SECONDS = 3.0
"""How long a part may take before it is shown as it was."""
AT_ONCE = 3
"""Parts that are read at the same time: members need connections, too."""
REPEATED_SECONDS = 1.0
"""How long what was read is shown to all who see the same, so that many viewers cost as much as one."""
MOST_KEPT = 200
"""Sets of visible groups and topics of which a process keeps what was read."""

SPARK_KINDS = ("archive", "reconcile", "report")


@dataclass(frozen=True, slots=True)
class Part:
    """What was read, and the database's instant (ms) at which it was. `value` None: never yet.

    `failed`: why it could not be read now; "": it is as of now.
    """

    value: Any = None
    at: Millis | None = None
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Postgres:
    """`answer_ms`: how long a statement took. Connections: of the server, by everybody, and of this process."""

    version: str
    answer_ms: float
    connections: int
    most_connections: int
    pools: Mapping[str, PoolUsage]


@dataclass(frozen=True, slots=True)
class Celery:
    """`ticked_at` (ms): when the timers last ran; None: never. `own_queue`: the queue is in this database."""

    ticked_at: Millis | None
    own_queue: bool
    tasks: TaskHealth


@dataclass(frozen=True, slots=True)
class Sampler:
    """When lag was last sampled and groups last judged (ms); None, or missing: never."""

    sampled_at: Millis | None
    judged_at: Mapping[str, Millis]


@dataclass(frozen=True, slots=True)
class Archive:
    """`path` "": there is no archive. `runs`: the newest of each kind."""

    path: str
    runs: Sequence[SparkRun]


@dataclass(frozen=True, slots=True)
class Alerts:
    """Open alerts by rule, and how the messages about alerts have fared."""

    opened: Mapping[str, int]
    outcomes: Outcomes


@dataclass(frozen=True, slots=True)
class Needy:
    """What needs attention. `names`: of the members that its verdicts name; `labels`: of groups that have any.

    Both by group.
    """

    found: Attention
    names: Mapping[str, Names]
    labels: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Lag:
    """Of all groups that can be seen together: `known` of how many, as of `sampled_at` (ms) or later."""

    lag: int | None
    known: int
    sampled_at: Millis | None


@dataclass(frozen=True, slots=True)
class GroupBehind:
    """A group that is behind in time, as of `at` (ms), or by `at_least` so much."""

    group_id: str
    time_lag_ms: Millis
    at_least: bool
    lag: int | None
    at: Millis


@dataclass(frozen=True, slots=True)
class Behind:
    """The lag of all, and the groups that are furthest behind in time; None: who looks may not see that."""

    total: Lag
    furthest: Sequence[GroupBehind] | None


@dataclass(slots=True)
class _Kept:
    """The last state of some parts, and when it was read (monotonic seconds)."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    read_at: float = 0.0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class OverviewParts:
    """Reads the parts and keeps the last state of each."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._db = runtime.db
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._service = _Kept()
        self._groups: dict[tuple[Visible, Visible, Visible], _Kept] = {}

    async def read(self, viewer: Viewer) -> Mapping[str, Part]:
        """All parts by name that the viewer may see; people who see the same groups and topics share what was read.

        How the service is, and how busy, is for who may describe the cluster. Raises nothing that a database can cause.
        """
        key = viewer.groups, viewer.topics, viewer.listed
        kept = self._groups.pop(key, None) or _Kept()
        self._groups[key] = kept  # the one used last comes last
        if len(self._groups) > MOST_KEPT:
            self._groups.pop(next(iter(self._groups)))
        parts = await self._read(kept, self._of_groups(viewer))
        return {**parts, **(await self.read_service() if viewer.sees_cluster else {})}

    async def read_service(self) -> Mapping[str, Part]:
        """The parts of the service by name."""
        return await self._read(self._service, self._of_service())

    async def _read(self, kept: _Kept, readers: Mapping[str, Callable[[], Awaitable[Any]]]) -> Mapping[str, Part]:
        async with kept.reading:
            if time.monotonic() - kept.read_at >= REPEATED_SECONDS:
                parts = await asyncio.gather(
                    *(self._part(kept.parts.get(name, Part()), name, read) for name, read in readers.items())
                )
                kept.parts = dict(zip(readers, parts, strict=True))
                kept.read_at = time.monotonic()
            return kept.parts

    def _of_groups(self, viewer: Viewer) -> Mapping[str, Callable[[], Awaitable[Any]]]:
        return {
            "attention": partial(self._attention, viewer),
            "counts": partial(self._counts, viewer),
            "behind": partial(self._behind, viewer),
        }

    def _of_service(self) -> Mapping[str, Callable[[], Awaitable[Any]]]:
        return {
            "activity": self._activity,
            "server": self._server,
            "nodes": self._nodes,
            "celery": self._celery,
            "sampler": self._sampler,
            "postgres": self._postgres,
            "archive": self._archive,
            "alerts": self._alerts,
        }

    async def _part(self, before: Part, name: str, read: Callable[[], Awaitable[Any]]) -> Part:
        try:
            async with asyncio.timeout(SECONDS), self._gate:
                return Part(await read(), await self._now())
        except TimeoutError:
            failed = f"It could not be read within {SECONDS:.0f} s."
        except ProtocolError as error:
            failed = error.detail
        except psycopg.Error as error:
            failed = "The database refused to read it."
            log.warning("overview_part_failed", part=name, exc_info=error)
        return replace(before, failed=failed)

    async def _now(self) -> Millis:
        async with self._db.connection() as connection:
            return await self._db.now_ms(connection)

    async def _attention(self, viewer: Viewer) -> Needy:
        found = await self._runtime.get(VerdictReads).attention(GROUPS_SHOWN, viewer.groups, viewer.topics)
        named = {
            group.group_id: [
                name for verdict in group.verdicts if verdict.kind is VerdictKind.LATE for name in verdict.names
            ]
            for group in found.groups
        }
        async with self._db.connection() as connection:
            names = await names_in_groups(self._db, connection, viewer, named, gone=False)
            labels: dict[str, Mapping[str, str]] = dict(
                await self._db.rows(connection, Q.labels_of_groups, {"group_ids": list(named)})
            )
            return Needy(found, names, labels)

    async def _counts(self, viewer: Viewer) -> Sequence[tuple[str, str, int]]:
        async with self._db.connection() as connection:
            return await self._db.rows(connection, Q.count_groups, viewer.with_groups(viewer.listed))

    async def _behind(self, viewer: Viewer) -> Behind:
        statement = Q.total_lag if viewer.topics.unlimited else Q.visible_total_lag
        async with self._db.connection() as connection:
            total = await self._db.record(connection, Lag, statement, viewer.with_groups(viewer.listed))
            assert total is not None, "a sum has a row"
            furthest = None
            if viewer.topics.unlimited:
                asked = {"limit": FURTHEST, **viewer.with_groups(viewer.listed)}
                furthest = await self._db.records(connection, GroupBehind, Q.furthest_behind, asked)
        return Behind(total, furthest)

    async def _activity(self) -> Sequence[Minute]:
        return await self._runtime.get(VerdictReads).activity(await self._now() - ACTIVITY_MS)

    async def _server(self) -> Mapping[str, Check]:
        return {**await readiness(self._runtime), **acknowledged.checks(self._runtime)}

    async def _nodes(self) -> Nodes:
        return await self._runtime.get(NodeOverviews).read(0)

    async def _celery(self) -> Celery:
        own_queue = not self._runtime.config.str("broker.url")
        async with self._db.connection() as connection:
            ticked_at = await self._db.value(connection, Q.timers_ran_at)
            tasks = await task_health.read(self._db, connection, own_queue=own_queue)
        return Celery(ticked_at, own_queue, tasks)

    async def _sampler(self) -> Sampler:
        async with self._db.connection() as connection:
            sampled_at = await self._db.value(connection, Q.lag_sampled_at)
            judged_at: dict[str, Millis] = dict(await self._db.rows(connection, Q.groups_judged_at))
        return Sampler(sampled_at, judged_at)

    async def _postgres(self) -> Postgres:
        async with self._db.connection() as connection:
            began = time.monotonic()
            version, used, most = await self._db.one(connection, Q.postgres_usage, {})
            return Postgres(version, (time.monotonic() - began) * 1000, used, most, self._db.usage())

    async def _alerts(self) -> Alerts:
        alerts = self._runtime.get(AlertService)
        return Alerts(await alerts.open_by_rule(), await alerts.outcomes())

    async def _archive(self) -> Archive:
        runs = self._runtime.get(SparkRuns)
        found = [(await runs.runs(kind=kind, limit=1)).items for kind in SPARK_KINDS]
        return Archive(runs.archive_path, [run for newest in found for run in newest])


GOOD = State("good", "Healthy", "good", "Nothing is wrong.")
WATCH = State("watch", "Degraded", "warn", "It works, but not as it should.")
BAD = State("bad", "Failing", "bad", "It does not do its work.")
OFF = State("off", "Off", "idle", "It is not used.")
UNKNOWN = State("unknown", "Unknown", "idle", "It could not be read.")

QUEUED = 100
"""More tasks than these wait only if nobody takes them."""
FULL = 0.9
"""Part of the connections of Postgres from which on they are about to run out."""
LAPSED_MS: Millis = 3_600_000
"""How long a node whose lease ran out is missed, unless it comes back."""
FAILED_MS: Millis = 86_400_000
"""How long it is told that a message about alerts has failed for good."""
UNSENT_MS: Millis = 120_000
"""A message that is not sent for so long was refused, or nobody sends it."""
MISSED = 3
"""A check is late when this many runs of it are missing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """From when something is wrong (ms): the timers; `sample_ms` and `check_ms`: how often these run."""

    timers_ms: Millis
    sample_ms: Millis
    check_ms: Millis


@dataclass(frozen=True, slots=True)
class HealthLine:
    """A part of the service. `at`: an instant (ms) that belongs to the text before it. `url` "": it has no page.

    `failed`: why it could not be read; the line is then as of `read_at`.
    """

    name: str
    state: State
    text: str
    at: Millis | None = None
    url: str = ""
    failed: str = ""
    read_at: Millis | None = None


Describe = Callable[[Any, Millis, Limits], Sequence[HealthLine]]


def health(parts: Mapping[str, Part], now: Millis, limits: Limits, urls: Mapping[str, str]) -> list[HealthLine]:
    """All lines. `urls`: by name, of those that have a page."""
    shown = [name for name in PARTS if name in parts]
    return [line for name in shown for line in part_lines(name, parts[name], now, limits, urls.get(name, ""))]


def part_lines(name: str, part: Part, now: Millis, limits: Limits, url: str) -> list[HealthLine]:
    """The lines of one part, one at least."""
    title, describe = PARTS[name]
    lines = [HealthLine(title, UNKNOWN, "")] if part.value is None else describe(part.value, part.at or now, limits)
    return [replace(line, url=url, failed=part.failed, read_at=part.at if part.failed else None) for line in lines]


def _server(checks: Mapping[str, Check], now: Millis, limits: Limits) -> Sequence[HealthLine]:
    wrong = [check.detail for check in checks.values() if not check.ok]
    notes = [check.detail for check in checks.values() if check.ok and check.detail]
    if wrong:
        return [HealthLine("Server", BAD, "; ".join(wrong))]
    return [HealthLine("Server", WATCH if notes else GOOD, "; ".join(notes) or "ready for members")]


def _nodes(found: Nodes, now: Millis, limits: Limits) -> Sequence[HealthLine]:
    states = [partition.state for partition in found.partitions]
    if not states:
        return [HealthLine("Nodes", OFF, "none has registered yet")]
    live, closed, loading = sum(node.live for node in found.nodes), states.count("CLOSED"), states.count("LOADING")
    text = plural(live, "live node")
    if closed:
        return [HealthLine("Nodes", BAD, f"{text}, {plural(closed, 'partition')} without an owner")]
    if loading:
        return [HealthLine("Nodes", WATCH, f"{text}, {plural(loading, 'partition')} loading")]
    if lapsed := _lapsed(found, now):
        names, last = joined(sorted({node.node_id for node in lapsed}), 2), lapsed[0].lease_expires_at
        return [HealthLine("Nodes", WATCH, f"{text}; {names} lapsed", last)]
    return [HealthLine("Nodes", GOOD, f"{text}, {plural(len(states), 'partition')} active")]


def _lapsed(found: Nodes, now: Millis) -> Sequence[NodeView]:
    """Nodes that were silent for longer than their lease within the last hour and are not back, the last one first."""
    live = {node.node_id for node in found.nodes if node.live}
    silent = (node for node in found.nodes if not node.live and node.end_reason != "stopped")
    missed = [node for node in silent if node.node_id not in live and node.lease_expires_at > now - LAPSED_MS]
    return sorted(missed, key=lambda node: -node.lease_expires_at)


def _celery(found: Celery, now: Millis, limits: Limits) -> Sequence[HealthLine]:
    tasks = found.tasks
    if found.ticked_at is None:
        timers = HealthLine("Celery", BAD, "the timers have never run: start beat and a worker")
    else:
        late = now - found.ticked_at > limits.timers_ms
        text = "beat or the worker does not run; the timers last ran" if late else "the timers ran"
        timers = HealthLine("Celery", BAD if late else GOOD, text, found.ticked_at)
    failures = sum(tasks.failures.values())
    failed = f"{plural(failures, 'failed task')} so far" if failures else "no task has failed"
    if tasks.queued is None:
        where = "not used yet" if found.own_queue else "in another broker"
        return [timers, HealthLine("Queue", OFF, f"{where}; {failed}")]
    many = tasks.queued > QUEUED
    return [timers, HealthLine("Queue", WATCH if many else GOOD, f"{plural(tasks.queued, 'task')} waiting; {failed}")]


def judged_at(by_check: Mapping[str, Millis]) -> Millis | None:
    """As of when verdicts are: no check that has run is older. None: none has run."""
    return min(by_check.values(), default=None)


def with_judged_at(parts: Mapping[str, Part]) -> Mapping[str, Part]:
    """The parts, of which those that say when groups were judged say the same.

    They are read one after the other; without this one page has two instants for one fact.
    """
    sampler, attention = parts.get("sampler", Part()), parts.get("attention", Part())
    if sampler.value is None or attention.value is None or sampler.failed or attention.failed:
        return parts
    value = replace(sampler.value, judged_at=attention.value.found.judged_at)
    return {**parts, "sampler": replace(sampler, value=value)}


def _sampler(found: Sampler, now: Millis, limits: Limits) -> Sequence[HealthLine]:
    every = {"members": limits.check_ms, "offsets": limits.sample_ms}
    late = [name for name, ms in every.items() if now - found.judged_at.get(name, 0) > MISSED * ms + 1_000]
    if late:
        last = min(found.judged_at.get(name, 0) for name in late) or None
        since = "; the last time was" if last else ""
        judged = HealthLine("Verdicts", BAD, f"groups are not judged by their {joined(late, 2)}{since}", last)
    else:
        judged = HealthLine("Verdicts", GOOD, "groups were judged", judged_at(found.judged_at))
    if found.sampled_at is None:
        return [HealthLine("Sampler", OFF, "no lag is known to sample"), judged]
    missed = now - found.sampled_at > MISSED * limits.sample_ms
    return [HealthLine("Sampler", WATCH if missed else GOOD, "lag was sampled", found.sampled_at), judged]


def _postgres(found: Postgres, now: Millis, limits: Limits) -> Sequence[HealthLine]:
    # A pool that may still grow is opening a connection for them.
    waiting = sum(pool.waiting for pool in found.pools.values() if pool.used + pool.idle >= pool.most)
    text = (
        f"version {found.version.split()[0]} answers in {max(found.answer_ms, 0.1):.1f} ms; "
        f"{found.connections:,} of {found.most_connections:,} connections"
    )
    if waiting:
        text += f"; {plural(waiting, 'request')} wait for one"
    full = found.connections >= FULL * found.most_connections
    return [HealthLine("Postgres", WATCH if full or waiting else GOOD, text)]


def _archive(found: Archive, now: Millis, limits: Limits) -> Sequence[HealthLine]:
    if not found.path:
        return [HealthLine("Archive", OFF, "not set up")]
    if not found.runs:
        return [HealthLine("Archive", OFF, "no run yet")]
    lines = []
    for run in found.runs:
        state, found_by_it = run_state(run), found_state(run)
        text = state.label.lower() if found_by_it else ""
        if run.kind == "reconcile" and run.findings == 0:
            text = "0 findings"
        state = found_by_it or state
        at = run.ended_at or run.started_at or run.requested_at
        lines.append(HealthLine(RUN_KINDS.get(run.kind, (run.kind, ""))[0], state, text, at))
    return lines


def _alerts(found: Alerts, now: Millis, limits: Limits) -> Sequence[HealthLine]:
    if not found.opened:
        return [HealthLine("Alerts", OFF, "no rules yet")]
    text = f"{plural(len(found.opened), 'rule')}, {plural(sum(found.opened.values()), 'open alert')}"
    outcomes = found.outcomes
    if outcomes.failed_at is not None and now - outcomes.failed_at < FAILED_MS:
        failed = f"{text}; receivers were not notified: the last message that failed is of"
        return [HealthLine("Alerts", BAD, failed, outcomes.failed_at)]
    if outcomes.unsent_since is not None and now - outcomes.unsent_since > UNSENT_MS:
        unsent = f"{text}; {plural(outcomes.waiting, 'message')} not sent yet, since"
        return [HealthLine("Alerts", WATCH, unsent, outcomes.unsent_since)]
    return [HealthLine("Alerts", GOOD, text)]


PARTS: Mapping[str, tuple[str, Describe]] = {
    "server": ("Server", _server),
    "nodes": ("Nodes", _nodes),
    "celery": ("Celery", _celery),
    "sampler": ("Sampler", _sampler),
    "postgres": ("Postgres", _postgres),
    "archive": ("Archive", _archive),
    "alerts": ("Alerts", _alerts),
}
"""The parts in the order in which they are shown: the title of a part that could not be read, and its lines."""
