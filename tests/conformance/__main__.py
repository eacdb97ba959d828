"""`python -m tests.conformance [--through http|core] [--case NAME] [-v] FILE…`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from tests.conformance.cases import Case, ConventionError, read_cases
from tests.conformance.driver import Backend
from tests.conformance.runner import Tally, run_all


def main(argv: list[str] | None = None) -> int:
    """Run the files. Returns the exit status: 0 nothing failed, 1 something did, 2 the files cannot be run."""
    options = _parser().parse_args(argv)
    try:
        cases = [case for path in options.files for case in read_cases(path)]
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
    asyncio.run(run_all(cases, backend(through), tally))
    tally.print_totals()
    return 1 if tally.failed else 0


def backend(through: str) -> Backend:
    """The way that `--through` names. Imported here: the core needs neither Django nor a database."""
    if through == "core":
        from tests.conformance.core_driver import CoreBackend

        return CoreBackend()
    from tests.conformance.http_backend import HttpBackend

    return HttpBackend()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Run conformance cases.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="classic.jsonl, offsets.jsonl, …")
    parser.add_argument(
        "--through", choices=("http", "core"), default="http", help="the whole service (default), or the core alone"
    )
    parser.add_argument("--case", action="append", metavar="NAME", help="run this case only; may be repeated")
    parser.add_argument("-v", "--verbose", action="store_true", help="print passed and skipped cases too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
