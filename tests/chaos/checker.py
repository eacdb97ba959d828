"""Reads a history after the fact and says which promises were kept. Pure: the same lines, the same report.

The promises, each in a module of `checks`: never two owners of one partition at one time (`ownership`); no
acknowledged commit lost or overtaken by a fenced one (`commits`); generations and epochs only grow (`epochs`); sessions
last as long as promised, and an outage removes nobody (`removals`); everything that lives becomes Stable (`settling`).
"""

from __future__ import annotations

from tests.chaos.checks.commits import check_commits
from tests.chaos.checks.epochs import check_epochs
from tests.chaos.checks.figures import measure
from tests.chaos.checks.ownership import check_ownership
from tests.chaos.checks.removals import check_removals
from tests.chaos.checks.report import Report
from tests.chaos.checks.settling import check_settling
from tests.chaos.history import Line, of_kind


def check(lines: list[Line], settle_s: float) -> Report:
    """The report of a history. `settle_s`: how long after the last fault members may need to become Stable."""
    report = Report()
    ordered = sorted(lines, key=lambda line: float(line["t"]))
    check_ownership(ordered, report)
    check_commits(ordered, report)
    check_epochs(ordered, report)
    check_removals(ordered, report)
    check_settling(ordered, report, settle_s)
    measure(ordered, report)
    report.figures["faults"] = len(of_kind(ordered, "fault"))
    report.figures["answers"] = len(of_kind(ordered, "answer"))
    return report
