"""What happened, in lines: one for each record, and one for many rebalances of a group after each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from frontend.alerts.words import VERDICTS
from frontend.archive.presenters import KINDS as RUNS
from frontend.archive.presenters import STATES as RUN_STATES
from frontend.happened.reads import Happened, Rebalance, Record
from frontend.nodes.presenters import REASONS
from frontend.rows import Event, Millis
from frontend.states import State
from frontend.timeline import line, why
from frontend.verdicts.presenters import PLACES
from frontend.views.groups import group_url
from frontend.wording import duration, elided, iso, plural
from groups.core.model.verdicts import VerdictKind

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
    """A line: from `first` to `last` (ms), which differ in one that stands for `count` rebalances.

    `id`: differs from those of other lines of the same instant. `url`: of what it is about; `group_id` "": the service.
    """

    id: str
    kind: str
    first: Millis
    last: Millis
    text: str
    tone: str
    group_id: str
    url: str
    count: int = 1

    @property
    def state(self) -> State:
        """What its kind is called."""
        return KINDS[self.kind]

    @property
    def key(self) -> tuple[Millis, str]:
        """Its place among all lines."""
        return self.last, self.id


def lines(found: Happened, *, sees_cluster: bool) -> list[Line]:
    """All of it, newest first. `sees_cluster`: links may lead to pages of the service."""
    made = [*_rebalances(found.rebalances)]
    for kind, records in found.others.items():
        made += [_line(kind, record, sees_cluster=sees_cluster) for record in records]
    return sorted(made, key=lambda one: one.key, reverse=True)


def _rebalances(found: Iterable[Rebalance]) -> Iterable[Line]:
    """Those of each group in runs; the newest is given first."""
    runs: dict[str, list[Rebalance]] = {}
    for one in found:
        run = runs.setdefault(one.group_name, [])
        if run and run[-1].at - one.at > APART_MS:
            yield from _run(run)
            run = runs[one.group_name] = []
        run.append(one)
    for run in runs.values():
        yield from _run(run)


def _run(run: Sequence[Rebalance]) -> Iterable[Line]:
    if len(run) < FOLDED:
        for one in run:
            yield _began(line(_event(one)).text, [one])
        return
    causes = Counter(why(_event(one)) for one in run).most_common()
    said = causes[0][0] if len(causes) == 1 else ", ".join(f"{count:,} × {cause}" for cause, count in causes)
    length = max(run[0].at - run[-1].at, 0)
    yield _began(f"{len(run):,} rebalances{f' within {duration(length)}' if length else ''}: {said}", run)


def _event(one: Rebalance) -> Event:
    return Event(one.id, one.at, one.kind, one.generation_id, None, {"cause": one.cause or ""})


def _began(text: str, run: Sequence[Rebalance]) -> Line:
    first, last = min(one.at for one in run), max(one.at for one in run)
    url = f"{group_url(run[0].group_name)}/rebalances?{urlencode({'from': iso(first), 'to': iso(last + 1)})}"
    tone = KINDS["rebalance"].tone
    return Line(str(run[0].id), "rebalance", first, last, text, tone, run[0].group_name, url, len(run))


def _line(kind: str, one: Record, *, sees_cluster: bool) -> Line:
    text, tone, url = {"verdict": _verdict, "plan": _plan, "alert": _alert, "hand-over": _hand_over, "run": _spark}[
        kind
    ](one)
    if kind == "alert" and not sees_cluster:
        url = f"{reverse('frontend:alerts')}?{urlencode({'group': one.group_name})}"
    name = f"{kind} {one.what} {one.ref} {one.group_name} {one.name}"
    return Line(name, kind, one.at, one.at, text, tone, one.group_name, url)


def _verdict(one: Record) -> tuple[str, str, str]:
    state = VERDICTS[one.what]
    topics = f" ({plural(one.number, 'topic')})" if one.number else ""
    return (
        f"{state.label}{topics}: {state.meaning}",
        state.tone,
        group_url(one.group_name) + PLACES[VerdictKind(one.what)],
    )


def _plan(one: Record) -> tuple[str, str, str]:
    return f"Plan {one.what} by {elided(one.name)}", "busy", f"{group_url(one.group_name)}/plans/{one.ref}"


def _alert(one: Record) -> tuple[str, str, str]:
    url = reverse("frontend:alert-rule", args=[int(one.ref)])
    return f"Alert {one.what}: {elided(one.name)}", "bad" if one.what == "opened" else "good", url


def _hand_over(one: Record) -> tuple[str, str, str]:
    partitions = plural(one.number or 0, "coordinator partition")
    gap = f"; up to {duration(one.ms)} without an owner" if one.ms and one.name else ""
    reason = REASONS.get(one.what, (one.what, ""))[0]
    moved = f"{partitions}: {elided(one.ref) or 'nobody'} → {elided(one.name) or 'nobody'}"
    return f"{moved}. {reason}{gap}", "idle" if one.name else "bad", reverse("frontend:nodes")


def _spark(one: Record) -> tuple[str, str, str]:
    name = RUNS.get(one.name, (one.name, ""))[0]
    url = reverse("frontend:run", args=[one.ref])
    if one.what == "began":
        return f"{name} began", "busy", url
    state = RUN_STATES.get(one.what) or State(one.what, one.what, "idle", "")
    findings = f" with {plural(one.number, 'finding')}" if one.number else ""
    return f"{name} {state.label.lower()} after {duration(one.ms or 0)}{findings}", state.tone, url
