"""Measure the data plane: `python -m tests.bench [--quick] [--only A,B] [--json FILE] [--spark] [--kafka PATH]`.

Everything runs on this machine, on loopback and against a Postgres of its own, and ends by itself. Each figure is shown
beside a yardstick that was measured in the same run; see docs/performance.md.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.bench import model
from tests.bench.bench import QUICK, TINY, Bench, Scale, flush_ms
from tests.bench.figures import Results, table
from tests.support.database import ROOT
from tests.support.rounds import bounded

SECTIONS = {
    "yardsticks": "the Starlette echo, and upserts by pgbench",
    "heartbeats": "classic and consumer heartbeats that change nothing",
    "offsets": "commits of 1 to 50 offsets with their journal, and fetches",
    "assign": "assignors beside kafka-python's",
    "joins": "a large group and many small ones that join all at once",
    "processes": "several server processes against one",
    "sizes": "heartbeats over members and over sizes of groups",
    "capacity": "what the capacity model needs besides",
    "beside": "a quiet group's heartbeats beside other work",
    "access": "authorization with 1 and 10,000 rules, revoked tokens, the audit",
    "kafka": "a real broker; needs --kafka",
    "wire": "the port for Kafka clients: heartbeats, commits, idle connections, a storm of joins",
    "inside": "parts inside one process: transactions, journal, events, retention, HOT updates",
}
NOT_QUICK = ("inside",)
SCALES: dict[str, Scale] = {"full": Scale(), "quick": QUICK, "tiny": TINY}
LIMITS = {"full": 1_800.0, "quick": 180.0, "tiny": 60.0}
"""Seconds. A section that has begun gets GRACE_SECONDS more."""
GRACE_SECONDS = 60.0


class TimeIsUp(BaseException):
    """The run has taken as long as it may."""


def machine(scale: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """What the figures were taken on."""
    model_name = ""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model_name = next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "revision": git.stdout.strip(),
        "scale": scale,
        "cpu": model_name,
        "cores": os.cpu_count(),
        "memory_gb": round(pages / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "flush_ms": flush_ms(settings),
        "settings": dict(settings),
        "sizes": asdict(SCALES[scale]),
    }


def measure(bench: Bench, names: Sequence[str]) -> None:
    """The sections in turn; one that fails does not hold up the others."""
    for name in names:
        if bench.remaining <= 0:
            bench.results.missing[name] = "no time was left"
            continue
        if not bench.quiet:
            print(f"{name}: {SECTIONS[name]}", flush=True)
        began = time.monotonic()
        try:
            import_module(f"tests.bench.sections.{name}").run(bench)
        except Exception as error:  # noqa: BLE001 - the other sections are measured all the same
            traceback.print_exc()
            bench.results.missing[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        bench.results.seconds[name] = round(time.monotonic() - began, 1)
        keep(bench)


def keep(bench: Bench) -> None:
    """Write what has been found by now, where it is asked for."""
    bench.results.constants = model.constants_of(bench.results)
    checks = model.checks_of(bench.results, bench.results.constants)
    bench.results.checks = [one.as_dict() for one in checks]
    if bench.json is not None:
        bench.json.write_text(bench.results.as_json())


def chosen(given: argparse.Namespace) -> list[str]:
    """The sections to run. Raises SystemExit for a name that there is not."""
    if given.only:
        names = given.only.split(",")
        if unknown := [name for name in names if name not in SECTIONS]:
            raise SystemExit(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
        return names
    left_out = {*(NOT_QUICK if given.scale != "full" else ()), *(() if given.kafka else ("kafka",))}
    return [name for name in SECTIONS if name not in left_out]


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    sections = "\n".join(f"  {name:12} {what}" for name, what in SECTIONS.items())
    parser = argparse.ArgumentParser(
        prog="tests.bench",
        description=__doc__,
        epilog=f"sections:\n{sections}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="names of sections, separated by commas")
    parser.add_argument(
        "--quick", dest="scale", action="store_const", const="quick", default="full", help="under three minutes"
    )
    parser.add_argument("--tiny", dest="scale", action="store_const", const="tiny", help="to try the bench itself")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    parser.add_argument("--spark", action="store_true", help="also heartbeats beside a Spark run")
    parser.add_argument("--kafka", default="", help="a Kafka distribution, or `download`: from Maven Central")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all servers, by its variable"
    )
    parser.add_argument("--limit", type=float, help="seconds after which no section is begun")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print the table, and write the JSON; 1 if a section has no figures."""
    options = arguments(given)
    names = chosen(options)
    limit = options.limit or LIMITS[options.scale]
    settings = dict(one.split("=", 1) for one in options.set)
    results = Results(machine(options.scale, settings))
    deadline = time.monotonic() + limit
    bench = Bench(SCALES[options.scale], results, deadline, options.kafka, options.spark, options.json, settings)
    try:
        with bounded(limit + GRACE_SECONDS, TimeIsUp()), bench.postgres():
            measure(bench, names)
    except TimeIsUp:
        results.missing["the rest"] = f"the run took longer than {limit + GRACE_SECONDS:g} s"
    except KeyboardInterrupt:
        results.missing["the rest"] = "the run was stopped"
    keep(bench)
    checks = model.checks_of(results, results.constants)
    print(f"\n{table(results.figures)}")
    if checks:
        print(f"\n{model.table(checks)}")
    for name, why in results.missing.items():
        print(f"not measured: {name}: {why}")
    return 1 if results.missing else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is stopped first
    sys.exit(main())
