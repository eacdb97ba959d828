"""What happened to all groups and to the service on one axis of time, and in lines below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.history.span import Span, of_span, span_of
from frontend.ui import reads, zones
from frontend.ui.chart import DAY, MINUTE, Chart, Mark, Point, Series, chart, written
from frontend.ui.events import line, why
from frontend.ui.labels import label_of
from frontend.ui.page import Choice, address, choices_of, cursor, cursor_address, group_url, page, show, text
from frontend.ui.report import Report, code, escaped, report, table
from frontend.ui.rows import Event, Millis
from frontend.ui.states import REASONS, RUN_KINDS, RUN_STATES, State
from frontend.ui.table import as_json, csv_of, files
from frontend.ui.verdicts import PLACES, VERDICTS
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import duration, elided, iso, plural
from groups.core.model.events import EventKind
from groups.core.model.types import VerdictKind
from kcoord.database.sql import queries
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from offsets.verdicts import Minute, VerdictReads

LINES = 100
KEPT = {
    "events.retention.days": ("Rebalances and hand-overs", {"rebalance", "hand-over"}),
    "offsets.journal.retention.days": ("Resolved alerts", {"alert"}),
}
"""How long it is known what happened, by the setting: what it is about, and its kinds."""


@page
def timeline(request: HttpRequest) -> HttpResponse:
    """The kinds that the URL asks for, all without; the newest lines first."""
    viewer, kinds, before = viewer_of(request), _kinds(request), cursor(request, "before", int, str)
    asked, found = _found(request)
    span = asked.span
    counts = Counter({"rebalance": len(found.rebalances)} | {kind: len(some) for kind, some in found.others.items()})
    chosen = lines(found, kinds)
    rest = [one for one in chosen if before is None or one.key < before]
    offered = [kind for kind in KINDS if kind == "rebalance" or kind in found.others]
    context: dict[str, Any] = {
        **of_span(request, span, found.now),
        "q": asked.prefix,
        "label": text(request, "label"),
        "kinds": [
            Choice(KINDS[kind], counts[kind], kind in request.GET.getlist("kind"), least=kind in found.since)
            for kind in offered
        ],
        "hidden": not viewer.sees_cluster,
        "filtered": not asked.of_all_groups or len(kinds) < len(KINDS),
        "clear_url": address(request, q=None, label=None, kind=None, before=None),
        "limits": _limits(found, span, kinds),
        "chart": _chart(found, chosen, span, kinds),
        "step": duration(span.step_ms),
        "marked": [
            (kind, ("≥ " if kind in found.since else "") + plural(counts[kind], KINDS[kind].label))
            for kind in offered[1:]
            if kind in kinds and counts[kind]
        ],
        "lines": [(one, one.words, *_when(one), _history(one, span)) for one in rest[:LINES]],
        "shown": len(rest[:LINES]),
        "total": len(chosen),
        "least": not found.since.keys().isdisjoint(kinds),
        "audit_url": f"{reverse('frontend:audit')}?{span.query}",
        "query": address(request, before=None).removeprefix(request.path),
        "newest_url": address(request, before=None) if before else None,
        "older_url": cursor_address(request, "before", *rest[LINES - 1].key) if len(rest) > LINES else None,
    }
    return show(request, "pages/history/happened", context, section="timeline", title="Timeline", script="brush")


COLUMNS = files("@first_at=first @last_at=last kind group_id count what=words.text")


@page
def timeline_file(request: HttpRequest, kind: str) -> HttpResponseBase:
    """All lines of the page, and last what is not in it: a table, or for a report of what happened."""
    kinds, (asked, found) = _kinds(request), _found(request)
    chosen, left_out = lines(found, kinds), _limits(found, asked.span, kinds)
    if kind == "csv":
        return csv_of("timeline", COLUMNS, [*chosen, *({"kind": "left_out", "words": {"text": s}} for s in left_out)])
    body = {
        "from": iso(asked.span.first),
        "to": iso(asked.span.last),
        "lines": [as_json(COLUMNS, one, group_id=one.group_id or None) for one in chosen],
        "left_out": left_out,
    }
    return report("timeline", kind, body, _markdown(body))


def _markdown(body: Report) -> Iterator[str]:
    def cells(one: Report) -> Sequence[str]:
        when = " – ".join(dict.fromkeys((one["first_at"], one["last_at"])))
        return when, one["kind"], escaped(one["what"]), code(one["group_id"]) if one["group_id"] else "service"

    yield f"# Timeline\n\n{body['from']} to {body['to']}"
    happened = table("What happened", ("When", "Kind", "What", "Group"), map(cells, body["lines"]))
    yield from happened or ["Nothing happened."]
    yield from map(escaped, body["left_out"])


def _kinds(request: HttpRequest) -> Collection[str]:
    return choices_of(request, "kind", KINDS) or tuple(KINDS)


def _found(request: HttpRequest) -> tuple[Asked, Happened]:
    """What the URL asks for, and what happened. Raises BadAddress."""
    span = span_of(request, bridge.call(lambda runtime: reads.now(runtime.db)))
    asked, viewer = Asked(span, text(request, "q"), label_of(request)), viewer_of(request)
    return asked, bridge.call(lambda runtime: happened(runtime, viewer, asked))


def _limits(found: Happened, span: Span, kinds: Collection[str]) -> list[str]:
    """What is not shown although it happened, in sentences."""
    said = []
    for kind, at in found.since.items():
        if kind == "rebalance" and kind in kinds:
            said.append(
                f"More than {MOST_EVENTS:,} events of groups are kept of this time: rebalances before"
                f" {zones.instant(at)} are not listed. Choose a shorter time to see them."
                + (" Their bars are counted once a minute." if found.minutes else "")
            )
        elif kind in kinds:
            said.append(
                f"More than {MOST_OTHERS:,} lines are of the kind {KINDS[kind].label}: those before"
                f" {zones.instant(at)} are not listed. Choose a shorter time to see them."
            )
    gone = [(what, kept) for what, kept in _kept(found.now, kinds) if span.first < kept]
    return said + [f"{what} before {zones.minute(kept)} are no longer kept." for what, kept in gone]


def _kept(now: Millis, kinds: Collection[str]) -> list[tuple[str, Millis]]:
    return [(what, now - settings.KCOORD.int(name) * DAY) for name, (what, of) in KEPT.items() if of & set(kinds)]


def _chart(found: Happened, chosen: Sequence[Line], span: Span, kinds: Collection[str]) -> Chart:
    """What is chosen as bars, and all but rebalances as marks too. No bar where it is not known how much happened."""
    middle, counts = span.first + span.step_ms // 2, _counts(found, span, kinds)
    points = [Point(min(middle + slot * span.step_ms, span.last), count) for slot, count in sorted(counts.items())]
    known = min(counts, default=0) * span.step_ms
    return chart(
        [Series("Happened", points)],
        first=span.first,
        last=span.last,
        step_ms=span.step_ms,
        zone=zones.current(),
        marks=[Mark(one.first, one.words.text, one.kind) for one in reversed(chosen) if one.kind != "rebalance"],
        bars=True,
        now=found.now,
        since=span.first + known if known else None,
    )


def _counts(found: Happened, span: Span, kinds: Collection[str]) -> dict[int, int]:
    """How much happened in each step of the span, where it is known."""
    first, step_ms, until = span.first, span.step_ms, min(span.last, found.now + 1) - 1

    def slot(at: Millis) -> int:
        return (at - first) // step_ms

    others = max([first, *(at for kind, at in found.since.items() if kind in kinds and kind != "rebalance")])
    kept = max([others, *(at for _, at in _kept(found.now, kinds))])
    known = max(kept, found.since.get("rebalance", 0)) if "rebalance" in kinds else kept
    counts = dict.fromkeys(range(slot(known), slot(until) + 1), 0)
    by_minute: Counter[int] = Counter()
    for minute in found.minutes if "rebalance" in kinds else ():
        if slot(kept) <= (there := slot((minute.since + minute.at) // 2)) <= slot(known):
            by_minute[there] += round(minute.rebalances * (minute.at - minute.since) / MINUTE)
    counts |= by_minute
    listed = found.rebalances if "rebalance" in kinds else ()
    slots = [there for one in listed if (there := slot(one.at)) not in by_minute]
    slots += [slot(one.at) for kind, records in found.others.items() if kind in kinds for one in records]
    for there in slots:
        if there in counts:
            counts[there] += 1
    return counts


def _when(one: Line) -> tuple[str, str]:
    """When it happened, and until when if that is later, which need not repeat the day."""
    first, last = written(one.first, zones.current()), written(one.last, zones.current())
    return first, "" if first == last else last[11:] if last[:10] == first[:10] else last


def _history(one: Line, span: Span) -> str:
    """The page of its group, of the span that is shown; "" without a group."""
    return f"{group_url(one.group_id)}/history?{span.query}" if one.group_id else ""


KINDS: Mapping[str, State] = {
    "rebalance": State("rebalance", "Rebalance", "warn", "A rebalance, or an epoch of a consumer group, began."),
    "verdict": State("verdict", "Verdict", "bad", "Something is wrong with a group since then, and still is."),
    "plan": State("plan", "Plan", "busy", "A reset of offsets was made, approved, applied or undone."),
    "alert": State("alert", "Alert", "bad", "An alert opened or was resolved."),
    "hand-over": State("hand-over", "Hand-over", "idle", "Coordinator partitions changed their owner."),
    "run": State("run", "Spark run", "idle", "A run of a Spark job began or ended."),
}
FOLDED = 3
"""Rebalances of a group after each other, from which on they are one line."""
APART_MS = 300_000
"""Those further apart are not of one run."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line: from `first` to `last` (ms), which differ in one that stands for several rebalances, `run`.

    `id`: differs from those of other lines of the same instant. `record`: of any other kind. `group_id` "": it is about
    the service. Words are made when they are asked for: most lines are on other pages of the list.
    """

    id: str
    kind: str
    first: Millis
    last: Millis
    group_id: str
    run: Sequence[Rebalance] = ()
    record: Record | None = None

    @property
    def state(self) -> State:
        """What its kind is called."""
        return KINDS[self.kind]

    @property
    def key(self) -> tuple[Millis, str]:
        """Its place among all lines."""
        return self.last, self.id

    @property
    def count(self) -> int:
        """How many rebalances it stands for, or 1."""
        return len(self.run) or 1

    @property
    def words(self) -> Words:
        """What it says."""
        return _run(self.run) if self.record is None else _WORDS[self.kind](self.record)


class Words(NamedTuple):
    """What a line says. `tone` as for states; `url`: of what it is about."""

    text: str
    tone: str
    url: str


def lines(found: Happened, kinds: Collection[str]) -> list[Line]:
    """All of these kinds, newest first."""
    made = [*_rebalances(found.rebalances)] if "rebalance" in kinds else []
    for kind, records in found.others.items():
        if kind in kinds:
            made += [_line(kind, one) for one in records]
    return sorted(made, key=lambda one: one.key, reverse=True)


def _line(kind: str, one: Record) -> Line:
    name = f"{kind} {one.what} {one.ref} {one.group_name} {one.name}"
    return Line(name, kind, one.at, one.at, one.group_name, record=one)


def _rebalances(found: Iterable[Rebalance]) -> Iterator[Line]:
    """Those of each group in runs; the newest is given first."""
    runs: dict[str, list[Rebalance]] = {}
    for one in found:
        run = runs.setdefault(one.group_name, [])
        if run and run[-1].at - one.at > APART_MS:
            yield from _folded(run)
            run = runs[one.group_name] = []
        run.append(one)
    for run in runs.values():
        yield from _folded(run)


def _folded(run: Sequence[Rebalance]) -> Iterator[Line]:
    for some in [run] if len(run) >= FOLDED else [[one] for one in run]:
        yield Line(str(some[0].id), "rebalance", some[-1].at, some[0].at, some[0].group_name, some)


def _run(run: Sequence[Rebalance]) -> Words:
    last, first = run[0], run[-1]
    text = line(_event(last)).text.removeprefix("Rebalance started: ")
    text = text[0].upper() + text[1:]
    if len(run) > 1:
        causes = Counter(why(_event(one)) for one in run).most_common()
        said = causes[0][0] if len(causes) == 1 else ", ".join(f"{count:,} × {cause}" for cause, count in causes)
        length = f" within {duration(last.at - first.at)}" if last.at > first.at else ""
        text = f"{len(run):,} rebalances{length}: {said}"
    query = urlencode({"from": iso(first.at), "to": iso(last.at + 1)})
    return Words(text, KINDS["rebalance"].tone, f"{group_url(last.group_name)}/rebalances?{query}")


def _event(one: Rebalance) -> Event:
    return Event(one.id, one.at, one.kind, one.generation_id, None, {"cause": one.cause or ""})


def _verdict(one: Record) -> Words:
    state = VERDICTS[one.what]
    topics = f" ({plural(one.number, 'topic')})" if one.number else ""
    url = f"{group_url(one.group_name)}{PLACES[VerdictKind(one.what)]}"
    return Words(f"{state.label}{topics}: {state.meaning}", state.tone, url)


def _plan(one: Record) -> Words:
    return Words(f"Plan {one.what} by {elided(one.name)}", "busy", f"{group_url(one.group_name)}/plans/{one.ref}")


def _alert(one: Record) -> Words:
    url = f"{reverse('frontend:alerts')}?{urlencode({'group': one.group_name})}"
    return Words(f"Alert {one.what}: {elided(one.name)}", "bad" if one.what == "opened" else "good", url)


def _hand_over(one: Record) -> Words:
    partitions = plural(one.number or 0, "coordinator partition")
    gap = f"; up to {duration(one.ms)} without an owner" if one.ms and one.name else ""
    reason = REASONS.get(one.what, (one.what, ""))[0]
    moved = f"{partitions}: {elided(one.ref) or 'nobody'} → {elided(one.name) or 'nobody'}"
    return Words(f"{moved}. {reason}{gap}", "idle" if one.name else "bad", reverse("frontend:nodes"))


def _spark(one: Record) -> Words:
    name = RUN_KINDS.get(one.name, (one.name, ""))[0]
    url = reverse("frontend:run", args=[one.ref])
    if one.what == "began":
        return Words(f"{name} began", "busy", url)
    state = RUN_STATES.get(one.what) or State(one.what, one.what, "idle", "")
    findings = f" with {plural(one.number, 'finding')}" if one.number else ""
    return Words(f"{name} {state.label.lower()} after {duration(one.ms or 0)}{findings}", state.tone, url)


_WORDS: Mapping[str, Callable[[Record], Words]] = {
    "verdict": _verdict, "plan": _plan, "alert": _alert, "hand-over": _hand_over, "run": _spark,
}  # fmt: skip

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

OF_GROUPS: Mapping[str, str] = {"verdict": Q.verdicts_in_span, "plan": Q.plans_in_span, "alert": Q.alerts_in_span}
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
