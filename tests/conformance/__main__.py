"""`python -m tests.conformance [--through http|wire|core] [--case NAME] [-v] [FILE…]`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.conformance.cases import Case, ConventionError, conformance_directory, read_cases
from tests.conformance.driver import Backend
from tests.conformance.runner import Tally, run_all


def main(argv: list[str] | None = None) -> int:
    """Run the files. Returns the exit status: 0 nothing failed, 1 something did, 2 the files cannot be run."""
    options = _parser().parse_args(argv)
    try:
        cases = [case for path in options.files or _all_files() for case in read_cases(path)]
    except (OSError, ConventionError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    if options.case:
        if missing := set(options.case) - {case.name for case in cases}:
            print(f"conformance: no such case: {', '.join(sorted(missing))}", file=sys.stderr)
            return 2
        cases = [case for case in cases if case.name in options.case]
    return run(cases, options.through, verbose=options.verbose)


def run(cases: list[Case], through: str, *, verbose: bool) -> int:
    """Run cases and print what happened; the exit status."""
    tally = Tally(verbose=verbose)
    try:
        asyncio.run(_until_terminated(run_all(cases, backend(through), tally)))
    except asyncio.CancelledError:
        print("conformance: terminated", file=sys.stderr)
        return 128 + signal.SIGTERM
    tally.print_totals()
    return 1 if tally.failed else 0


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Run `work`; SIGTERM cancels it, so that it stops the Postgres it has started."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task


def backend(through: str) -> Backend:
    """The way that `--through` names. Imported here: the core needs neither Django nor a database."""
    if through == "core":
        from tests.conformance.core_driver import CoreBackend

        return CoreBackend()
    if through == "wire":
        from tests.conformance.wire_backend import WireBackend

        return WireBackend()
    from tests.conformance.http_backend import HttpBackend

    return HttpBackend()


def _all_files() -> list[Path]:
    """The files of cases of the repository, or of `KCOORD_CONFORMANCE_DIR`. Raises ConventionError without any."""
    directory = conformance_directory()
    if files := sorted(directory.glob("*.jsonl")):
        return files
    raise ConventionError(f"no cases in {directory}; name files, or unset KCOORD_CONFORMANCE_DIR")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Run conformance cases.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: tests/conformance/cases/*.jsonl")
    parser.add_argument(
        "--through",
        choices=("http", "wire", "core"),
        default="http",
        help="the whole service by its HTTP API (default) or by Kafka's protocol, or the core alone",
    )
    parser.add_argument("--case", action="append", metavar="NAME", help="run this case only; may be repeated")
    parser.add_argument("-v", "--verbose", action="store_true", help="print passed and skipped cases too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
