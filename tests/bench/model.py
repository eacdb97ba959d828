"""The capacity model: a few constants fitted to a run, and how far its predictions are from what was measured.

CPU is counted in microseconds, of servers and of Postgres apart, because Postgres scales apart. A heartbeat costs a
little more with each tenfold number of members above those whose data the processor's caches hold, and a part of the
storing of its session: that is stored once in a tenth of its timeout, however often it was renewed. Points that
constants are fitted to are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from tests.bench.bench import TIMEOUT_MS
from tests.bench.figures import Point, Results
from tests.bench.sections.capacity import MIXED
from tests.bench.sections.offsets import FETCHED

BOUND = 0.2
HELD = 1_000
"""Members whose data the caches hold: up to these the curve of the cost of a heartbeat is nearly flat."""
SEVERAL = 2
"""Processes of the point that the cost of a heartbeat in several processes is fitted to. With more processes the point
with most of them is fitted as well, for what each adds beyond these."""
FITTED = (1, 5, 50)
"""Partitions of the commits that the constants are fitted to; the others are predicted."""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line: `first` + `each` * x."""

    first: float
    each: float

    def at(self, x: float) -> float:
        """Its value there."""
        return self.first + self.each * x


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """The line with the smallest squares of relative errors; it is flat if all points have nearly the same x."""
    assert points, "no point to fit a line to"
    weights = [1 / max(y, 1e-9) ** 2 for _, y in points]
    total = sum(weights)
    x_mean = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    apart = sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points, strict=True)) / total
    if apart <= 1e-6 * x_mean**2:
        return Line(y_mean, 0.0)
    above = sum(w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points, strict=True)) / total
    return Line(y_mean - above / apart * x_mean, above / apart)


@dataclass(frozen=True, slots=True)
class Check:
    """A measured value beside what the model says; `unit` of both."""

    name: str
    unit: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a part of what was measured."""
        return self.predicted / self.measured - 1 if self.measured else 0.0

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "error": self.error}

    @property
    def is_within(self) -> bool:
        """Whether that is near enough."""
        return abs(self.error) <= BOUND


@dataclass(frozen=True, slots=True)
class Service:
    """What a service has to do: seconds between two heartbeats of a member, and between two commits of it."""

    members: int
    heartbeat_seconds: float
    commit_seconds: float
    offsets: int


def cores(constants: Mapping[str, float], service: Service, flush_ms: float) -> tuple[float, float]:
    """Cores of servers and of Postgres that it keeps busy. Raises KeyError if a constant was not measured."""
    beats, commits = service.members / service.heartbeat_seconds, service.members / service.commit_seconds
    sessions = beats * stored(beats, service.members, flush_ms)

    def of(side: str) -> float:
        names = "heartbeat", "tenfold", "stored_session", "commit", "offset"
        one = {name: constants[f"{name}_{side}_us"] for name in names}
        work = (
            beats * (one["heartbeat"] + tenfolds(service.members) * one["tenfold"]) + sessions * one["stored_session"]
        )
        work += commits * (one["commit"] + service.offsets * one["offset"])
        idle = constants[f"idle_{side}_us_a_second"] + service.members * constants[f"idle_member_{side}_us_a_second"]
        return (work + max(0.0, idle)) / 1e6

    return of("server"), of("postgres")


def stored(rate: float, members: float, flush_ms: float) -> float:
    """Sessions stored for each heartbeat, if `members` send `rate` heartbeats a second in turns.

    `flush_ms` 0: each heartbeat stores its own. Else a session is stored again when a tenth of it has passed.
    """
    return 1.0 if not flush_ms else min(1.0, members / (rate * max(flush_ms, TIMEOUT_MS / 10) / 1_000))


def tenfolds(members: float) -> float:
    """How often HELD members have to be multiplied by ten to make this number; 0 for fewer."""
    return math.log10(max(members / HELD, 1.0))


def _heartbeat(results: Results, people: Sequence[Point]) -> dict[str, float]:
    """Constants of a heartbeat: of the few and the many, with and without stored sessions.

    `tenfold` is 0 if the many were measured with stored sessions alone.
    """
    few, many = people[0], people[-1]
    steady = results.figure(f"members.{many.x:.0f}")
    apart, share = tenfolds(many.x) - tenfolds(few.x), _stored(results, many) or 1.0
    found: dict[str, float] = {}
    for side, value in _SIDES.items():
        if steady is None:
            line = fit([(_stored(results, point), value(point)) for point in (few, many)])
            found |= {f"heartbeat_{side}": line.first, f"tenfold_{side}": 0.0, f"stored_session_{side}": line.each}
            continue
        none_stored = steady.details.get(side, 0.0)
        stored_session = (value(many) - none_stored) / share
        of_few = value(few) - _stored(results, few) * stored_session
        tenfold = (none_stored - of_few) / apart
        found |= {f"heartbeat_{side}": of_few - tenfold * tenfolds(few.x), f"tenfold_{side}": tenfold}
        found[f"stored_session_{side}"] = stored_session
    return found


def _stored(results: Results, point: Point, share: float = 1.0) -> float:
    """As measured, for each heartbeat of a point whose requests are heartbeats to this share."""
    return point.details["stored"] / share if results.machine.get("flush_ms", 0) else 1.0


_SIDES: Mapping[str, Callable[[Point], float]] = {
    "server_us": lambda point: point.server_us,
    "postgres_us": lambda point: point.postgres_us,
    "wal_bytes": lambda point: point.details.get("wal_bytes", 0.0),
}


def _lines(name: str, each: str, points: Sequence[Point], at: Callable[[Point], float]) -> dict[str, float]:
    """Constants of a line for CPU of both sides and for WAL."""
    found: dict[str, float] = {}
    for side, value in _SIDES.items():
        line = fit([(at(point), value(point)) for point in points])
        found |= {f"{name}_{side}": line.first, f"{each}_{side}": line.each}
    return found


def constants_of(results: Results) -> dict[str, float]:
    """What the model is made of; what was not measured is left out."""
    found: dict[str, float] = {}
    people = results.curve("members")
    if len(people) > 1:
        ends = [people[0], people[-1]]
        found |= _heartbeat(results, people)
        memory = fit([(point.x, point.details["rss_mb"]) for point in ends])
        found |= {"server_mb": memory.first, "member_kb": 1_000 * memory.each}
        for side in ("server", "postgres"):
            line = fit([(point.x, point.details[f"idle_{side}_us_s"]) for point in ends])
            found |= {f"idle_{side}_us_a_second": line.first, f"idle_member_{side}_us_a_second": line.each}
    commits = [point for point in results.curve("partitions") if point.x in FITTED]
    if len(commits) > 1:
        found |= _lines("commit", "offset", commits, lambda point: point.x)
    fetch = results.figure("fetches")
    if fetch is not None:
        found |= {f"fetch_of_5_{side}": fetch.details.get(side, 0.0) for side in _SIDES}
    found |= _statements(results)
    found |= _several(results, found)
    for point in results.curve("tick"):
        found |= {"tick_server_us": point.server_us, "tick_postgres_us": point.postgres_us}
    return found


def _statements(results: Results) -> dict[str, float]:
    """What a statement costs that several commits, or fetches, share, and how many each needs under the usual load.

    `commit` and `fetch_of_5` have their part of it: with few connections a smaller number shares each statement.
    """
    usual = {
        "commit": [one.details for one in results.curve("partitions") if one.x == FETCHED],
        "fetch": [one.details for one in (results.figure("fetches"),) if one is not None],
    }
    found: dict[str, float] = {}
    for kind, many in usual.items():
        for few in results.curve(f"few {kind}"):
            name = f"{kind}_statements"
            more = few.details[name] - (many[0].get(name, 0.0) if many else few.details[name])
            if more > 0:
                found[name] = many[0][name]
                for side in ("server_us", "postgres_us"):
                    found[f"{kind}_statement_{side}"] = (few.details[side] - many[0][side]) / more
    return found


def _several(results: Results, constants: Mapping[str, float]) -> dict[str, float]:
    """What a heartbeat costs processes that share their cores, as a part of what it costs one process.

    Each of them finds more requests in a turn of its loop, and a turn has a cost of its own. `crowded`: what is added
    to that part by each process beyond SEVERAL, as a part of it: they take the cores from each other.
    """
    checking = _Checking(results, constants)
    errors = {
        point.x: one.error
        for point in results.curve("processes")
        if point.x >= SEVERAL
        for one in checking.beat("", point)
    }
    if SEVERAL not in errors:
        return {}
    found = {"several": 1 / (1 + errors[SEVERAL])}
    most = max(errors)
    if most > SEVERAL:
        found["crowded"] = (1 / (1 + errors[most]) / found["several"] - 1) / (most - SEVERAL)
    return found


def _part(processes: float, constants: Mapping[str, float]) -> float:
    if processes == 1:
        return 1.0
    return constants.get("several", 1.0) * (1 + max(0.0, processes - SEVERAL) * constants.get("crowded", 0.0))


@dataclass(slots=True)
class _Checking:
    results: Results
    constants: Mapping[str, float]

    def value(self, name: str, unit: str, measured: float, *parts: tuple[float, str]) -> list[Check]:
        """The weighted sum of these constants; None if one was not measured."""
        if any(constant not in self.constants for _, constant in parts):
            return []
        return [Check(name, unit, measured, sum(times * self.constants[constant] for times, constant in parts))]

    def cpu(self, name: str, point: Point, *parts: tuple[float, str]) -> list[Check]:
        """CPU of both sides."""
        both = [(times, f"{one}_{side}") for side in ("server_us", "postgres_us") for times, one in parts]
        return self.value(name, "µs", point.server_us + point.postgres_us, *both)

    def beat(self, name: str, point: Point, part: float = 1.0) -> list[Check]:
        """A load of heartbeats alone, which cost `part` of what they cost one process."""
        more = (
            (part * tenfolds(point.details.get("members", 1.0)), "tenfold"),
            (part * _stored(self.results, point), "stored_session"),
        )
        return self.cpu(f"heartbeat, {name}", point, (part, "heartbeat"), *more)

    def mixed(self, point: Point) -> list[Check]:
        """Heartbeats, commits and fetches."""
        whole = sum(share for _, share in MIXED)
        share = {kind: number / whole for kind, number in MIXED}
        beats = share["heartbeat"]
        sessions = beats * _stored(self.results, point, beats), "stored_session"
        tenfold = beats * tenfolds(point.details.get("members", 1.0)), "tenfold"
        others = [(share["commit"], "commit"), (5 * share["commit"], "offset"), (share["fetch"], "fetch_of_5")]
        for kind in ("commit", "fetch"):
            name = f"{kind}_statements"
            if name in self.constants:
                more = point.details[name] - share[kind] * self.constants[name]
                others.append((more, f"{kind}_statement"))
        return self.cpu("mixed load, a request", point, (beats, "heartbeat"), tenfold, sessions, *others)

    def commit(self, point: Point) -> list[Check]:
        """CPU and WAL."""
        name, both = f"commit of {point.x:.0f} offsets", [(1, "commit"), (point.x, "offset")]
        wal = [(times, f"{one}_wal_bytes") for times, one in both]
        measured = point.details.get("wal_bytes", 0.0)
        return [*self.cpu(name, point, *both), *self.value(f"WAL, {name}", "bytes", measured, *wal)]


def checks_of(results: Results, constants: Mapping[str, float]) -> list[Check]:
    """The points of this run that nothing was fitted to, beside the model."""
    checking, found = _Checking(results, constants), []
    for point in results.curve("members")[1:-1]:
        found += checking.beat(f"{point.x:,.0f} members", point)
        memory = (1.0, "server_mb"), (point.x / 1_000, "member_kb")
        found += checking.value(f"memory, {point.x:,.0f} members", "MB", point.details["rss_mb"], *memory)
    for point in results.curve("group size"):
        found += checking.beat(f"groups of {point.x:,.0f}", point)
    counts = results.curve("processes")
    for point in counts:
        if point.x == 1 or SEVERAL < point.x < counts[-1].x:
            part = _part(point.x, constants)
            found += checking.beat(f"{point.x:.0f} process{'es' * (point.x > 1)}", point, part)
    for point in results.curve("partitions"):
        found += checking.commit(point) if point.x not in FITTED else []
    for point in results.curve("mixed"):
        found += checking.mixed(point)
    return found


def table(checks: Sequence[Check]) -> str:
    """For a terminal."""
    lines = [f"{'the model and what was measured':40} {'measured':>12} {'predicted':>12} {'error':>8}"]
    for one in checks:
        mark = "" if one.is_within else f"  above {BOUND:.0%}"
        values = f"{one.measured:12,.1f} {one.predicted:12,.1f} {one.error:+8.1%}"
        lines.append(f"{f'{one.name}, {one.unit}':40} {values}{mark}")
    return "\n".join(lines)
