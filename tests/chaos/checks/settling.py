"""After the last fault all live members become Stable within a bound, and every partition has an owner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from tests.chaos.checks.ownership import tenures_of
from tests.chaos.checks.report import Report
from tests.chaos.history import Line, of_kind

STABLE = "live members become Stable"
OWNED = "every partition has an owner at the end"


def check_settling(lines: list[Line], report: Report, bound_s: float) -> None:
    """Adds what it found to the report. `bound_s`: how long after `quiet` members may need."""
    quiet, finish = of_kind(lines, "quiet"), of_kind(lines, "finish")
    if not quiet or not finish:
        report.check(STABLE, False, 0.0, "the history has no end: the run was cut short")
        return
    since, until = quiet[-1]["t"], finish[-1]["t"]
    living = _living(lines, until)
    slowest = 0.0
    for member, (state, at) in living.items():
        waited = max(0.0, (at if state == "stable" else until) - since)
        slowest = max(slowest, waited)
        text = f"{member} is {state} {waited:.1f} s after the last fault"
        report.check(STABLE, state == "stable" and waited <= bound_s, at, text)
    report.figures["settled after s"] = slowest
    _check_groups(lines, living, until, report)


def unsettled(lines: list[Line]) -> list[str]:
    """Members that are not stable and partitions that nobody owns, as far as the history goes."""
    until = lines[-1]["t"] if lines else 0.0
    living = _living(lines, until)
    found = [f"{member} is {state}" for member, (state, _) in living.items() if state != "stable"]
    return found + [text for owned, text in _ownership(lines, living, until) if not owned]


def _living(lines: list[Line], until: float) -> dict[str, tuple[str, float]]:
    """State, and since when, of the members that are neither closed nor killed."""
    found: dict[str, tuple[str, float]] = {}
    for line in lines:
        if line["t"] > until:
            break
        if line["k"] == "begin":
            found[line["m"]] = "unjoined", line["t"]
        elif line["k"] == "state":
            found[line["m"]] = line["s"], line["t"]
        elif line["k"] == "end":
            found.pop(line["m"], None)
        elif line["k"] == "killed":
            found = {m: state for m, state in found.items() if not m.startswith(line["crew"] + "/")}
    return found


def _check_groups(lines: list[Line], living: dict[str, tuple[str, float]], until: float, report: Report) -> None:
    for owned, text in _ownership(lines, living, until):
        report.check(OWNED, owned, until, text)
    members = _members(lines, living)
    for line in of_kind(lines, "left"):
        text = f"{line['g']}: {line['state']} with {line['members']} members; {members[line['g']]} live"
        as_told = line["state"] == "Stable" and line["members"] == members[line["g"]]
        report.check(STABLE, as_told or not members[line["g"]], until, text)


def _members(lines: list[Line], living: Collection[str]) -> dict[str, int]:
    """How many members of each group live."""
    found: dict[str, int] = defaultdict(int)
    for line in of_kind(lines, "begin"):
        found[line["g"]] += line["m"] in living
    return found


def _ownership(lines: list[Line], living: Collection[str], until: float) -> Iterator[tuple[bool, str]]:
    """For each partition of a group with members whether one of them owns it, and what to say if not."""
    tenures = tenures_of([line for line in lines if line["t"] <= until])
    members = _members(lines, living)
    for group in of_kind(lines, "group"):
        if not members[group["g"]]:
            continue
        for number in range(group["partitions"]):
            held = tenures.get((group["g"], group["topic"], number), [])
            owned = any(tenure.ended == "the history" and tenure.member in living for tenure in held)
            yield owned, f"{group['g']}: nobody owns {group['topic']}-{number}"
