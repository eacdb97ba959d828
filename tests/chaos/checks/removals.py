"""Nobody is removed before the session it was promised is over, and an outage removes nobody."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from tests.chaos.checks.report import Report
from tests.chaos.checks.sessions import Clock, is_renewal
from tests.chaos.history import Line, of_kind

PROMISED = "sessions last as long as promised"
OUTAGE = "an outage removes nobody"
CLOCKS_S = 0.05
"""How exactly times of Postgres (ms since the epoch) can be told in seconds of the history."""

REMOVED = ("member_expired", "member_removed")


def check_removals(lines: list[Line], report: Report) -> None:
    """Adds what it found to the report."""
    starts = of_kind(lines, "start")
    if not starts:
        return
    removals = [{**line, "t": line["at"] / 1000 - starts[0]["wall"]} for line in of_kind(lines, "event")]
    removals = [line for line in removals if line["what"] in REMOVED]
    report.figures["removals"] = len(removals)
    _check_promises(lines, removals, report)
    _check_outages(lines, removals, report)


def _check_promises(lines: list[Line], removals: list[Line], report: Report) -> None:
    """A renewal that was answered before the removal had been handled before it."""
    clock = Clock(lines)
    session = {line["m"]: line["session_s"] for line in of_kind(lines, "begin")}
    renewals: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in of_kind(lines, "answer"):
        if is_renewal(line):
            renewals[line["g"], line["member_id"]].append(line)
    for removal in removals:
        told = renewals[removal["g"], removal["member_id"]]
        earlier = told[: bisect_left(told, removal["t"] - CLOCKS_S, key=lambda line: line["t"])]
        if removal["cause"] != "session_expired" or not earlier:
            continue
        last = max(earlier, key=lambda line: line["sent"])
        least = clock.earliest_end(last["sent"], session[last["m"]]) - CLOCKS_S
        text = (
            f"{removal['g']}: {last['m']} ({removal['member_id']}) expired {removal['t'] - last['sent']:.3f} s "
            f"after it had sent a {last['api']} that succeeded"
        )
        report.check(PROMISED, removal["t"] >= least, removal["t"], text)


def _check_outages(lines: list[Line], removals: list[Line], report: Report) -> None:
    """From its beginning until a session after its end: all sessions count from the end, also those of the dead."""
    sessions = [line["session_s"] for line in of_kind(lines, "begin")]
    for outage in of_kind(lines, "outage"):
        end = outage["t"] + outage["s"]
        until = end + min(sessions, default=0.0) - CLOCKS_S
        jumped = [jump["t"] for jump in of_kind(lines, "jump") if end <= jump["t"] < until]
        until = min(jumped, default=until)
        found = [line for line in removals if outage["t"] <= line["t"] < until]
        text = f"{len(found)} members were removed by the outage of {outage['s']:.1f} s: {_named(found)}"
        report.check(OUTAGE, not found, outage["t"], text)


def _named(removals: list[Line]) -> str:
    shown = [f"{line['g']} {line['member_id']} ({line['cause']})" for line in removals[:5]]
    return ", ".join(shown) + (", …" if len(removals) > 5 else "")
