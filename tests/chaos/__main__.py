"""`python -m tests.chaos --minutes 3 --seed 7`: one run, its schedule, what was checked, and what was broken.

Exit status 0 if every promise was kept, 1 if one was broken; the histories are kept in that case, or where
`--keep` says. A run with the same seed has the same members and the same faults at the same times.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.chaos.checks.report import Report
from tests.chaos.run import Plan, routing, run

LONGEST_MINUTES = 240.0


def summary(plan: Plan, report: Report) -> str:
    """What a run has shown, in lines."""
    faults = Counter(fault.name for fault in plan.faults())
    lines = [f"seed {plan.seed}, routing {plan.routing}: {sum(faults.values())} faults survived:"]
    lines += [f"  {count:5d}  {name}" for name, count in sorted(faults.items())]
    lines += [f"{sum(report.checks.values())} checks made:"]
    lines += [f"  {count:5d}  {promise}" for promise, count in sorted(report.checks.items())]
    lines += [f"{name}: {value:g}" for name, value in sorted(report.figures.items())]
    lines += [f"{len(report.violations)} violations"]
    lines += [f"  {found.t:.3f} {found.promise}: {found.text}" for found in report.violations[:50]]
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=None)
    for name in ("nodes", "members", "groups", "crews"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Plan, name))
    parser.add_argument("--routing", choices=("any", "owner"), default=None, help="else one of three seeds has owner")
    parser.add_argument("--keep", type=Path, help="directory for the histories")
    given = parser.parse_args()
    if not 0 < given.minutes <= LONGEST_MINUTES:
        parser.error(f"--minutes: expected more than 0 and at most {LONGEST_MINUTES:g}")
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    plan = Plan(
        seed, given.minutes, given.nodes, given.members, given.groups, given.crews, given.routing or routing(seed)
    )
    directory = given.keep or Path(tempfile.mkdtemp(prefix="kcoord-chaos-history-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    report = run(plan, directory, lambda text: print(f"{time.monotonic() - began:6.1f} | {text}", flush=True))
    print(summary(plan, report))
    if report.violations:
        print(f"the histories are in {directory}")
    elif given.keep is None:
        shutil.rmtree(directory)
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
