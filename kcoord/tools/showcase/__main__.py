"""`python -m kcoord.tools.showcase`: exit status 0 at the end of the time or after Ctrl-C, 1 if it could not run."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys

import httpx

from kcoord.tools.demo.run import Narrator
from kcoord.tools.demo.service import DemoProblem, reach
from kcoord.tools.showcase.api import Refused
from kcoord.tools.showcase.cast import LEAST_GROUPS, cast
from kcoord.tools.showcase.run import showcase

SOON = {
    "KCOORD_VERDICT_STUCK_MS": "15000",
    "KCOORD_VERDICT_STALLED_MS": "30000",
    "KCOORD_VERDICT_UNCOVERED_MS": "15000",
    "KCOORD_LAG_SAMPLE_INTERVAL_MS": "5000",
    "KCOORD_LAG_STALE_MS": "40000",
}
"""Settings of a service of its own: verdicts appear soon."""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line options."""
    parser = argparse.ArgumentParser(
        prog="python -m kcoord.tools.showcase",
        description="Groups of every state and protocol at work, with failures, to look at the dashboard with.",
    )
    parser.add_argument("--groups", type=int, default=200, help=f"at least {LEAST_GROUPS} (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=0, help="time limit; 0: until Ctrl-C (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="other groups (default: %(default)s)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run the showcase; returns the exit status."""
    given = parse(arguments)
    narrator = Narrator()
    try:
        parts = cast(given.groups, given.seed)
        with reach(os.environ, narrator.say, SOON) as service:
            narrator.say(f"dashboard: {service.url}/ ({service.hint})")
            seconds = given.minutes * 60 or None
            asyncio.run(showcase(service.url, service.token, parts, seconds, narrator.say))
    except (DemoProblem, Refused, httpx.TransportError, ValueError) as problem:
        sys.stderr.write(f"kcoord showcase: {problem}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    return 0


if __name__ == "__main__":
    # Members that fail are part of the show: the status line counts them.
    logging.getLogger("kcoord.client").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
