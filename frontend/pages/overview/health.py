"""Is the coordinator healthy? Every part of the service, as of when it was read, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.pages.overview.parts import (
    BAD,
    GOOD,
    OFF,
    PARTS,
    WATCH,
    Alerts,
    Archive,
    Celery,
    HealthLine,
    Limits,
    OverviewParts,
    Part,
    Postgres,
    Sampler,
    part_lines,
)
from frontend.ui.page import Pace, page, show
from frontend.ui.reads import now_ms
from frontend.ui.rows import Millis
from frontend.ui.states import State
from frontend.ui.viewer import SEE_CLUSTER, require, tokens_missing, viewer_of
from frontend.ui.wording import duration, joined, plural
from groups.nodes.overview import Overview as Nodes
from kcoord.access.quotas.budgets import BY_KEY
from kcoord.access.quotas.stored import ThrottledRow, throttled_since
from kcoord.config import Config
from kcoord.door.http.health import Check
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError


def limits_of(config: Config) -> Limits:
    """From when parts of the service are late, as the settings say."""
    return Limits(
        config.int("timer.lag.ready.ms"), config.int("lag.sample.interval.ms"), config.int("verdict.check.interval.ms")
    )


def part_urls() -> Mapping[str, str]:
    """The pages of parts that have one."""
    return {name: reverse(f"frontend:{name}") for name in ("nodes", "archive", "alerts")}


@page
def health_page(request: HttpRequest) -> HttpResponse:
    """All parts."""
    require(request, SEE_CLUSTER)
    now = now_ms()
    parts = bridge.call(lambda runtime: runtime.get(OverviewParts).read_service())
    rows = bridge.call(lambda runtime: read(runtime, now))
    found = sections(parts, now, limits_of(settings.KCOORD), part_urls())
    state, sentence = summary(found)
    context = {
        "now": now,
        "sections": found,
        "state": state,
        "sentence": sentence,
        "throttled": card(rows, now, names=not tokens_missing(viewer_of(request))),
        "stream": reverse("frontend:live"),
        "pace": Pace(every_ms=5_000, gap_ms=2_000),
    }
    return show(request, "pages/overview/health", context, section="health", title="Health")


WITHIN_MS: Millis = 3_600_000
NOW_MS: Millis = 120_000
"""What is noted once a minute and is not older than this goes on."""
READ = 1_000
SHOWN = 10

NOBODY = State("none", "Healthy", "good", "Nobody sent more than their quota.")
EARLIER = State("earlier", "Earlier", "idle", "Somebody was throttled within the last hour.")
THROTTLED = State("throttled", "Throttled", "warn", "Somebody is told to wait.")


@dataclass(frozen=True, slots=True)
class ThrottledCard:
    """`failed`: why it could not be read. `rows`: `at` is when the principal was throttled last."""

    state: State
    sentence: str
    advice: str
    rows: Sequence[tuple[Fact, Fact]] = ()
    more: str = ""
    failed: str = ""


async def read(runtime: Runtime, now: Millis) -> Sequence[ThrottledRow] | str:
    """The rows, the last one first; a text that says why they could not be read."""
    try:
        return await throttled_since(runtime, now - WITHIN_MS, READ)
    except ProtocolError as error:
        return error.detail


def card(rows: Sequence[ThrottledRow] | str, now: Millis, *, names: bool) -> ThrottledCard:
    """The card. `names`: the account may know the names of tokens; others see how many there are."""
    if isinstance(rows, str):
        return ThrottledCard(EARLIER, "It could not be read.", "", failed=rows)
    if not rows:
        return ThrottledCard(NOBODY, "Nobody was throttled within the last hour.", "")
    lasting = sum(row.throttled_at >= now - NOW_MS for row in rows)
    who = len({(row.kind, row.name) for row in rows})
    sentence = f"{plural(who, 'principal')} throttled within the last hour, at all servers."
    advice = (
        "Their members keep their sessions. Ask the team to send less, or raise the quota: manage.py quotas, or "
        "POST /v1/quotas."
    )
    state = THROTTLED if lasting else EARLIER
    shown = [(_who(row), _what(row)) for row in rows[:SHOWN]] if names else _counts(rows)
    left = len(rows) - SHOWN if names else 0
    more = f"{plural(left, 'other')}: GET /v1/quotas/throttled has them." if left > 0 else ""
    return ThrottledCard(state, sentence, advice if lasting else "", shown, more)


def _who(row: ThrottledRow) -> Fact:
    return Fact(f"{row.kind} {row.name}".rstrip(), at=row.throttled_at)


def _what(row: ThrottledRow) -> Fact:
    budget = BY_KEY.get(row.budget)
    unit = budget.value.unit if budget is not None else ""
    text = f"{_number(row.used)} of {_number(row.limit)} {unit}".rstrip()
    return Fact(row.budget, f"{text}, {plural(row.times, 'request')} noted")


def _counts(rows: Sequence[ThrottledRow]) -> list[tuple[Fact, Fact]]:
    found = Counter(row.budget for row in rows)
    last = {budget: max(row.throttled_at for row in rows if row.budget == budget) for budget in found}
    return [(Fact(budget, at=last[budget]), Fact("", plural(count, "principal"))) for budget, count in found.items()]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


SOUND = frozenset({"good", "idle", "busy"})
"""Tones of states that need no action."""

CHECKS: Mapping[str, str] = {
    "runtime": "Process",
    "database": "Database",
    "migrations": "Migrations",
    "timers": "Timers",
    "listener": "LISTEN connection",
    "disk": "Disk of the database",
    "journal": "Journal of today",
    "commits": "Acknowledged commits",
    "node": "Coordinator node",
    "owners": "Owners of partitions",
}
"""What the checks of /readyz are called."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure of a part; `at` (ms): an instant in place of `text`. `tone` as of states, "" for a mere figure."""

    name: str
    text: str = ""
    at: Millis | None = None
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """What is said of a part, and what to do about it: "" if nothing has to be done."""

    said: HealthLine
    advice: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the service. `read_at` (ms): as of when all this is, None: it was never read. `worst` marks it."""

    key: str
    name: str
    meaning: str
    worst: State
    lines: Sequence[Line]
    facts: Sequence[Fact]
    read_at: Millis | None
    failed: str
    url: str


MEANINGS: Mapping[str, str] = {
    "server": "The process that shows you this page. These are the checks of its /readyz.",
    "nodes": "Servers that lease coordinator partitions and run the timers of their groups.",
    "celery": "Beat plans the timers and maintenance, a worker carries them out.",
    "sampler": "A Celery task that notes lag and judges groups, every few seconds.",
    "postgres": "The only place where the state of groups and offsets is kept.",
    "archive": "Spark jobs that copy the journal into files, and compare it with the committed offsets.",
    "alerts": "Celery checks the rules, and sends notifications to receivers.",
}


def sections(parts: Mapping[str, Part], now: Millis, limits: Limits, urls: Mapping[str, str]) -> list[Section]:
    """All parts, in the order of the overview."""
    return [_section(key, parts[key], now, limits, urls.get(key, "")) for key in PARTS]


def _section(key: str, part: Part, now: Millis, limits: Limits, url: str) -> Section:
    lines = [Line(said, _advice(key, said, part)) for said in part_lines(key, part, now, limits, url)]
    worst = max((line.said.state for line in lines), key=lambda state: _ORDER.index(state.tone))
    facts = _FACTS[key](part.value) if part.value is not None else ()
    return Section(key, _NAMES[key], MEANINGS[key], worst, lines, facts, part.at, part.failed, url)


_NAMES = {
    "server": "This server",
    "nodes": "Coordinator nodes",
    "celery": "Celery",
    "sampler": "Sampler",
    "postgres": "Postgres",
    "archive": "Spark runs",
    "alerts": "Alerts",
}
_ORDER = ("good", "idle", "busy", "warn", "bad")
"""Tones from the best to the worst."""


def summary(found: Sequence[Section]) -> tuple[State, str]:
    """The answer to “is it healthy?”: a state and a sentence."""
    wrong = [section for section in found if section.worst.tone not in SOUND]
    unread = [section.name for section in found if section.failed]
    if not wrong and not unread:
        return GOOD, "All parts work."
    bad = [section.name for section in wrong if section.worst.tone == "bad"]
    watch = [section.name for section in wrong if section.worst.tone != "bad"]
    said = []
    if bad:
        said.append(f"{joined(bad, 4)} {'does not work' if len(bad) == 1 else 'do not work'}.")
    if watch:
        said.append(f"{joined(watch, 4)} {'needs' if len(watch) == 1 else 'need'} a look.")
    if unread:
        said.append(f"{joined(unread, 4)} could not be read now; what is shown is older.")
    return BAD if bad else WATCH, " ".join(said)


def _advice(key: str, said: HealthLine, part: Part) -> str:
    if said.failed:
        return f"{said.failed} It is read again every few seconds; the other parts are as of now."
    if said.state.tone in SOUND:
        return _OPTIONAL.get((key, said.state.name), "") if said.state is OFF else ""
    advice = _ADVICE[key]
    return advice(part.value, said) if callable(advice) else advice


def _server_advice(found: Mapping[str, Check], said: HealthLine) -> str:
    if all(check.ok for check in found.values()):
        return ""  # its notes say what to do
    return (
        "Members are served by other servers as long as one is ready. The check that fails says what to do; the log of "
        "this process has the details."
    )


def _celery_advice(found: Celery, said: HealthLine) -> str:
    if said.name == "Queue":
        return (
            "Tasks wait because the worker is down or too slow: start it, or start a second one. If the same task "
            "fails again and again, the log of the worker says why."
        )
    waiting = found.tasks.queued
    who = "Celery beat and a worker"
    if waiting is not None:
        # Beat puts a tick into the queue every second: what is not there was not put there.
        who = "the worker: tasks wait in the queue" if waiting > 1 else "Celery beat: no task waits in the queue"
    return f"Look at {who}. Groups whose members are active expire as usual; nobody expires the others meanwhile."


def _archive_advice(found: Archive, said: HealthLine) -> str:
    if said.state.name == "findings":
        return "The job did its work: the page Archive leads to what it found, and says what each finding means."
    return "Open the run: its log says why it ended. The journal is kept until a run has archived it."


_ADVICE: Mapping[str, str | Callable[[Any, HealthLine], str]] = {
    "server": _server_advice,
    "nodes": "A live node takes partitions over within its lease. Restart a server that has ended or hangs; the check "
    "“node” of its /readyz says what is wrong with it.",
    "celery": _celery_advice,
    "sampler": "Lag and verdicts are as old as this says. The tasks run in the Celery worker: see whether it runs and "
    "keeps up.",
    "postgres": "Connections run out, or callers wait for one: raise max_connections of Postgres, run fewer processes, "
    "or look for statements that take long in pg_stat_activity.",
    "archive": _archive_advice,
    "alerts": "The last messages on the Alerts page say which receiver did not take them, and why. Correct the "
    "receiver or what it names, and send a test. If messages wait, see whether the Celery worker runs.",
}
"""What to do about a part that does not work as it should."""

_OPTIONAL: Mapping[tuple[str, str], str] = {
    ("nodes", "off"): "Until the first node has registered, Celery runs the timers of all groups.",
    (
        "archive",
        "off",
    ): "No Spark job has run. They are optional: without an archive the journal is kept until its retention ends.",
    ("alerts", "off"): "No notifications are sent. Create a rule on the Alerts page: it says who is notified of what.",
    ("sampler", "off"): "Push watermarks, and lag is sampled from the next run on.",
}
"""What a part that is not used means."""


def _server(checks: Mapping[str, Check]) -> Sequence[Fact]:
    return [
        Fact(
            CHECKS.get(name, name.capitalize()),
            check.detail or ("ok" if check.ok else "fails"),
            tone=("warn" if check.detail else "good") if check.ok else "bad",
        )
        for name, check in checks.items()
    ]


def _nodes(found: Nodes) -> Sequence[Fact]:
    states = [partition.state for partition in found.partitions]
    return [
        Fact("Live nodes", str(sum(node.live for node in found.nodes))),
        *(Fact(f"{state.capitalize()} partitions", str(states.count(state))) for state in sorted(set(states))),
    ]


def _celery(found: Celery) -> Sequence[Fact]:
    queued = found.tasks.queued
    elsewhere = "the queue is not used yet" if found.own_queue else "not known: in another broker"
    facts = [
        Fact("Last tick", at=found.ticked_at) if found.ticked_at else Fact("Last tick", "never"),
        Fact("Tasks waiting", f"{queued:,}" if queued is not None else elsewhere),
    ]
    failed = [Fact(f"Failed: {name}", plural(count, "run")) for name, count in sorted(found.tasks.failures.items())]
    return [*facts, *(failed or [Fact("Failed runs", "0")])]


def _sampler(found: Sampler) -> Sequence[Fact]:
    judged = [Fact(f"Judged by {name}", at=at) for name, at in sorted(found.judged_at.items())]
    sampled = Fact("Lag sampled", at=found.sampled_at) if found.sampled_at else Fact("Lag sampled", "never")
    return [sampled, *(judged or [Fact("Groups judged", "never")])]


def _postgres(found: Postgres) -> Sequence[Fact]:
    pools = [
        Fact(
            f"Pool {name}",
            f"{pool.used:,} used, {pool.idle:,} idle, {pool.most:,} at most; {plural(pool.waiting, 'caller')} waiting",
        )
        for name, pool in sorted(found.pools.items())
    ]
    return [
        Fact("Version", found.version),
        Fact("Answers in", f"{max(found.answer_ms, 0.1):.1f} ms"),
        Fact("Connections", f"{found.connections:,} of {found.most_connections:,}"),
        *pools,
    ]


def _archive(found: Archive) -> Sequence[Fact]:
    facts = [Fact("Path", found.path or "none: set KCOORD_ARCHIVE_PATH")]
    for run in found.runs:
        if run.started_at is not None and run.ended_at is not None:
            facts.append(Fact(f"Duration of the last {run.kind}", duration(run.ended_at - run.started_at)))
    return facts


def _alerts(found: Alerts) -> Sequence[Fact]:
    outcomes = found.outcomes
    return [
        Fact("Rules", f"{len(found.opened):,}"),
        Fact("Open alerts", f"{sum(found.opened.values()):,}"),
        Fact("Messages", f"{outcomes.sent:,} sent, {outcomes.waiting:,} waiting, {outcomes.failed:,} failed"),
    ]


_FACTS: Mapping[str, Callable[[Any], Sequence[Fact]]] = {
    "server": _server,
    "nodes": _nodes,
    "celery": _celery,
    "sampler": _sampler,
    "postgres": _postgres,
    "archive": _archive,
    "alerts": _alerts,
}
