"""Three minutes of chaos: three servers, every kind of fault. Every promise must be kept.

`make chaos` runs more members. Here they are fewer, because a machine that runs other tests as well would not keep up
with them: members that time out again and again never come to rest.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.chaos.__main__ import summary
from tests.chaos.run import Plan, routing, run
from tests.chaos.schedule import SECONDS

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("stack")]

MINUTES = 3.0
SEED = 7
MEMBERS = 84


def test_three_minutes_of_chaos_break_no_promise(tmp_path: Path) -> None:
    """Always the same members and faults, so that a failure has to do with the change; `make chaos` draws a seed."""
    plan = Plan(SEED, MINUTES, members=MEMBERS, routing=routing(SEED))
    began = time.monotonic()
    print(f"seed {plan.seed}")
    report = run(plan, tmp_path, lambda text: print(f"{time.monotonic() - began:6.1f} | {text}"))
    told = summary(plan, report)
    print(told)
    assert report.violations == [], f"{told}\nthe histories are in {tmp_path}"
    assert {fault.name for fault in plan.faults()} >= set(SECONDS), "every kind of fault had its turn"
    assert sum(report.checks.values()) > 5_000
