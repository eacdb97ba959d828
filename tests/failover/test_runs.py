"""Fail-overs while members commit: every acknowledged offset stays committed, and lost ones are reported.

`python -m tests.failover` makes the table of docs/high-availability.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.checks.commits import LATEST, check_latest
from tests.chaos.checks.report import Report
from tests.chaos.forged import good
from tests.failover import run
from tests.failover.pair import Pair, asynchronous, synchronous

pytestmark = pytest.mark.processes
WHOLE = pytest.mark.whole("fail-overs with servers and members; the default promotes a standby that lags")


@pytest.fixture
def pair() -> Iterator[Pair]:
    with asynchronous() as both:
        yield both


@WHOLE
async def test_a_synchronous_standby_has_everything() -> None:
    with synchronous() as pair:
        found = await run.fail_over(pair, run.fails_over)
    assert (found.missing, found.lost, found.removed, found.told_s) == (0, 0, 0, None)
    assert found.acknowledged > 100


@WHOLE
@pytest.mark.parametrize("fault", [run.fails_over_lagging, run.splits])
async def test_what_a_standby_did_not_receive_is_stored_again_by_the_server(pair: Pair, fault: run.Fault[Pair]) -> None:
    found = await run.fail_over(pair, fault)
    assert (found.lost, found.removed) == (0, 0)
    assert found.told_s is not None
    assert found.missing > 0


@WHOLE
async def test_what_no_server_remembers_is_lost(pair: Pair) -> None:
    """As docs/high-availability.md says."""
    found = await run.fail_over(pair, run.fails_over_with_the_server)
    assert found.lost > 0
    assert found.told_s is None


def test_the_check_of_acknowledged_commits_finds_a_lost_one() -> None:
    report = Report()
    check_latest(good(), report)
    assert report.violations == []
    assert report.checks[LATEST] > 0
    check_latest([{**line, "offset": 1} if line["k"] == "committed" else line for line in good()], report)
    assert report.violations
