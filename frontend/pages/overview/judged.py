"""Whether the parts of the service are well, as lines of text. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontend.pages.overview.parts import Alerts, Archive, Celery, Part, Postgres, Sampler
from frontend.ui.rows import Millis
from frontend.ui.service import KINDS as RUN_KINDS
from frontend.ui.service import found_state, run_state
from frontend.ui.states import State
from frontend.ui.wording import joined, plural
from groups.nodes.overview import Overview as Nodes
from kcoord.http.health import Check

GOOD = State("good", "Healthy", "good", "Nothing is wrong.")
WATCH = State("watch", "Degraded", "warn", "It works, but not as it should.")
BAD = State("bad", "Failing", "bad", "It does not do its work.")
OFF = State("off", "Off", "idle", "It is not used.")
UNKNOWN = State("unknown", "Unknown", "idle", "It could not be read.")

QUEUED = 100
"""More tasks than these wait only if nobody takes them."""
FULL = 0.9
"""Part of the connections of Postgres from which on they are about to run out."""
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
    wrong = [check.detail for name, check in checks.items() if not check.ok and name != "timers"]
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
    return [HealthLine("Nodes", GOOD, f"{text}, {plural(len(states), 'partition')} active")]


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
        return [
            HealthLine(
                "Alerts",
                BAD,
                f"{text}; receivers were not told: the last message that failed is of",
                outcomes.failed_at,
            )
        ]
    if outcomes.unsent_since is not None and now - outcomes.unsent_since > UNSENT_MS:
        return [
            HealthLine(
                "Alerts",
                WATCH,
                f"{text}; {plural(outcomes.waiting, 'message')} not sent yet, since",
                outcomes.unsent_since,
            )
        ]
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
