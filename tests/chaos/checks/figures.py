"""Measured, not checked: how long a member was without an answer, by the fault that it waited through."""

from __future__ import annotations

from bisect import bisect_right

from tests.chaos.checks.report import Report
from tests.chaos.history import Line, of_kind

APIS = ("heartbeat", "offsets/commit")
"""Requests that nobody holds: whatever they take is waiting."""

PASSING = {
    "disconnected",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "REQUEST_TIMED_OUT",
    "UNKNOWN_SERVER_ERROR",
}
"""Answers after which the same is asked again."""

IN_FLIGHT_S = 4.0
"""How long before a fault the request that met it may have been sent: what a heartbeat may take."""

AFTERMATH_S = 10.0
"""A wait that begins later after a fault is not counted for it."""


def measure(lines: list[Line], report: Report) -> None:
    """Adds the longest wait of each kind of fault.

    It begins when the first heartbeat or commit that failed was sent, and ends with any answer that is not a failure.
    """
    spans = _spans(lines)
    begins = [begin for begin, _, _ in spans]
    asked: dict[str, float] = {}
    for line in of_kind(lines, "answer"):
        measured = line["api"] in APIS
        if line["error"] in PASSING:
            if measured:
                asked.setdefault(line["m"], line["sent"])
        elif measured or line["m"] in asked:
            since = asked.pop(line["m"], line["sent"])
            latest = bisect_right(begins, min(line["t"], since + IN_FLIGHT_S)) - 1
            if latest >= 0 and since < spans[latest][1] + AFTERMATH_S:
                figure = f"longest wait s, {spans[latest][2]}"
                report.figures[figure] = max(report.figures.get(figure, 0.0), round(line["t"] - since, 3))


def _spans(lines: list[Line]) -> list[tuple[float, float, str]]:
    """Begin, end and name of each fault."""
    found: list[tuple[float, float, str]] = []
    for line in of_kind(lines, "fault", "over"):
        if line["k"] == "fault":
            found.append((line["t"], line["t"], line["name"]))
        else:
            found[-1] = found[-1][0], line["t"], line["name"]
    return found
