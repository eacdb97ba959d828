"""What happened, in lines: one for each record, and one for many rebalances of a group after each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
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
    name = RUNS.get(one.name, (one.name, ""))[0]
    url = reverse("frontend:run", args=[one.ref])
    if one.what == "began":
        return Words(f"{name} began", "busy", url)
    state = RUN_STATES.get(one.what) or State(one.what, one.what, "idle", "")
    findings = f" with {plural(one.number, 'finding')}" if one.number else ""
    return Words(f"{name} {state.label.lower()} after {duration(one.ms or 0)}{findings}", state.tone, url)


_WORDS: Mapping[str, Callable[[Record], Words]] = {
    "verdict": _verdict, "plan": _plan, "alert": _alert, "hand-over": _hand_over, "run": _spark,
}  # fmt: skip
