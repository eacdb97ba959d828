"""What `make test` leaves out, and where the time goes: hooks of pytest that `tests/conftest.py` takes over.

`@pytest.mark.whole("reason")` keeps a test out of the default selection (`-m "not whole"`). Only `make test-all` runs
it. The end of a run lists the reasons with their numbers of tests, and the seconds that each folder took.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

WHOLE = "whole"
LEFT_OUT = f"not {WHOLE}"
"""What `make test` selects. Random tests have fewer examples then."""
FOLDER_PARTS = 2
_left_out: Counter[str] = Counter()


def reason_of(item: pytest.Item) -> str | None:
    """Why only `make test-all` runs this test; None if `make test` does.

    Raises `pytest.UsageError` for a marker without a reason.
    """
    marker = item.get_closest_marker(WHOLE)
    if marker is None:
        return None
    if len(marker.args) != 1 or not isinstance(marker.args[0], str) or not marker.args[0].strip():
        raise pytest.UsageError(f'{item.nodeid}: write why: @pytest.mark.whole("...")')
    return marker.args[0]


def sample(values: Iterable[Any], reason: str, *, default: Any = None) -> list[Any]:
    """Parameters of which `make test` takes one, `default` or the first, and `make test-all` every one."""
    listed = list(values)
    kept = listed[0] if default is None else default
    return [value if value == kept else pytest.param(value, marks=pytest.mark.whole(reason)) for value in listed]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before any test is deselected: no marker is without its reason."""
    for item in items:
        reason_of(item)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Count what the marker leaves out, by reason."""
    _left_out.update(reason for item in items if (reason := reason_of(item)) is not None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands its counts to the process that prints the summary."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[WHOLE] = dict(_left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker collects everything, so the counts of one are those of all."""
    if counted := getattr(node, "workeroutput", {}).get(WHOLE):
        _left_out.clear()
        _left_out.update(counted)


def seconds_by_folder(reports: Iterable[tuple[str, float]]) -> dict[str, tuple[int, float]]:
    """Numbers of tests and their seconds, with fixtures, by folder; the longest first.

    `reports`: node id and seconds of each phase of each test.
    """
    tests: dict[str, set[str]] = {}
    seconds: Counter[str] = Counter()
    for nodeid, duration in reports:
        parts = nodeid.partition("::")[0].split("/")
        folder = "/".join(parts[:-1][:FOLDER_PARTS])
        tests.setdefault(folder, set()).add(nodeid)
        seconds[folder] += duration
    return {folder: (len(tests[folder]), spent) for folder, spent in seconds.most_common()}


def write_summary(reporter: pytest.TerminalReporter) -> None:
    """The Python that ran, the seconds of each folder, and what was left out with its reasons."""
    phases = [
        (report.nodeid, report.duration)
        for reports in reporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    total = sum(duration for _, duration in phases)
    reporter.write_line(f"Python {sys.version.split()[0]}, {total:.0f} s of tests:")
    for folder, (tests, spent) in seconds_by_folder(phases).items():
        reporter.write_line(f"{spent:8.1f} s {tests:6d} tests  {folder}")
    if _left_out:
        reporter.write_line(f"{sum(_left_out.values())} tests are in `make test-all` only:")
        for reason, tests in _left_out.most_common():
            reporter.write_line(f"{tests:8d}  {reason}")
