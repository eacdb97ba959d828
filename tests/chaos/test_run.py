"""Chaos with every kind of fault, or in short: a server killed and one frozen. Every promise must be kept.

`make chaos` runs longer, with more members. Here they are fewer, because a machine that runs other tests as well would
not keep up with them: members that time out again and again never come to rest.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.chaos.__main__ import summary
from tests.chaos.run import Plan, routing, run
from tests.chaos.schedule import FREEZE, KILL
from tests.support.selection import LEFT_OUT

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("stack")]

SEED = 352
"""Of four hundred the one whose faults of every kind are over soonest."""
EVERYTHING = Plan(SEED, 1.47, members=60, routing=routing(SEED))
IN_SHORT = Plan(7, 0.15, nodes=2, members=12, groups=2, crews=1, kinds=(KILL, FREEZE))
"""In `make test`."""


def test_chaos_breaks_no_promise(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Always the same members and faults, so that a failure has to do with the change; `make chaos` draws a seed."""
    plan, checks = (IN_SHORT, 100) if request.config.option.markexpr == LEFT_OUT else (EVERYTHING, 3_000)
    began = time.monotonic()
    print(f"seed {plan.seed}")
    report = run(plan, tmp_path, lambda text: print(f"{time.monotonic() - began:6.1f} | {text}"))
    told = summary(plan, report)
    print(told)
    assert report.violations == [], f"{told}\nthe histories are in {tmp_path}"
    assert {fault.name for fault in plan.faults()} == set(plan.kinds), "every kind of fault had its turn"
    assert sum(report.checks.values()) > checks
