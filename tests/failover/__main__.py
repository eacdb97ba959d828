"""The table of fail-overs in docs/high-availability.md: `python -m tests.failover`."""

from __future__ import annotations

import asyncio
import sys

from tests.failover import run
from tests.failover.pair import asynchronous, synchronous

CASES = (
    ("synchronous", synchronous, run.fails_over),
    ("asynchronous", asynchronous, run.fails_over),
    ("asynchronous, lags by 2 s", asynchronous, run.fails_over_lagging),
    ("the same, and the server dies too", asynchronous, run.fails_over_with_the_server),
    ("asynchronous, both alive", asynchronous, run.splits),
)


def main() -> int:
    """Print a row for each case."""
    names = sys.argv[1:]
    for name, pairs, fault in CASES:
        if names and not any(word in name for word in names):
            continue
        with pairs() as pair:
            print(f"{name}: {asyncio.run(run.fail_over(pair, fault))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
