"""Generations, epochs and the counters of coordinator partitions only grow."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from tests.chaos.checks.report import Report
from tests.chaos.history import Line, of_kind

MEMBERS = "generations and epochs of a member only grow"
GROUPS = "generations and epochs of a group only grow"
OWNERS = "owner epochs grow, gaps never fall"


def check_epochs(lines: list[Line], report: Report) -> None:
    """Adds what it found to the report."""
    _check_members(lines, report)
    _check_joins(lines, report)
    _check_events(lines, report)
    _check_changes(lines, report)


def _check_members(lines: list[Line], report: Report) -> None:
    """Of two answers to one member, the first received before the second was asked for."""
    told: dict[tuple[str, str], tuple[float, int]] = {}
    for line in of_kind(lines, "answer"):
        if line["error"] != "NONE" or line["api"] not in ("join", "consumer-heartbeat") or line["gen"] < 0:
            continue
        key = line["g"], line["member_id"]
        at, gen = told.get(key, (0.0, -1))
        if line["sent"] >= at:
            report.check(MEMBERS, line["gen"] >= gen, line["t"], f"{key}: was told {gen}, then {line['gen']}")
        if line["gen"] >= gen:
            told[key] = line["t"], line["gen"]


def _check_joins(lines: list[Line], report: Report) -> None:
    """A generation of a classic group that a join is told is not older than one told before that join was sent."""
    joins: dict[str, list[Line]] = defaultdict(list)
    for line in of_kind(lines, "answer"):
        if line["api"] == "join" and line["error"] == "NONE":
            joins[line["g"]].append(line)
    for group, told in joins.items():
        highest: list[tuple[float, int]] = []
        for line in told:
            before = max((gen for at, gen in highest if at < line["sent"]), default=-1)
            text = f"{group}: {line['m']} joined {line['gen']} after somebody had joined {before}"
            report.check(GROUPS, line["gen"] >= before, line["t"], text)
            if not highest or line["gen"] > highest[-1][1]:
                highest.append((line["t"], line["gen"]))


def _check_events(lines: list[Line], report: Report) -> None:
    events: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(of_kind(lines, "event"), key=lambda line: int(line["id"])):
        events[line["g"]].append(line)
    for group, timeline in events.items():
        for earlier, later in pairwise(timeline):
            text = f"{group}: event {later['id']} ({later['what']}) has {later['gen']} after {earlier['gen']}"
            report.check(GROUPS, later["gen"] >= earlier["gen"], later["t"], text)


def _check_changes(lines: list[Line], report: Report) -> None:
    changes: dict[int, list[Line]] = defaultdict(list)
    for line in sorted(of_kind(lines, "change"), key=lambda line: int(line["id"])):
        changes[line["partition"]].append(line)
    for partition, timeline in changes.items():
        for earlier, later in pairwise(timeline):
            grows = later["epoch"] > earlier["epoch"] and later["gap"] >= earlier["gap"]
            text = f"coordinator partition {partition}: {_counters(earlier)}, then {_counters(later)}"
            report.check(OWNERS, grows, later["t"], text)


def _counters(line: Line) -> str:
    return f"epoch {line['epoch']}, gap {line['gap']}"
