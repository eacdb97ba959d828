"""`python -m tests.mutants [--jobs N] [--list] [FILE_OR_DIRECTORY...]`"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.accepted import accepted, entry, printed, stale
from tests.mutants.baseline import fewer_examples, measured
from tests.mutants.mutations import Key, Mutant, mutants_of
from tests.mutants.pool import Fate, Pool
from tests.mutants.swap import Live

PACKAGES = ("groups/core", "offsets/core", "kcoord/resets")
TESTS = (
    "tests/groups/core",
    "tests/offsets/core",
    "tests/conformance/test_through_core.py",
    "tests/conformance/test_own_assignors.py",
)
"""What runs the cores and needs no service."""
SURVIVING = (Fate.SURVIVED, Fate.NOT_EXECUTED)


def sources(paths: list[str]) -> list[str]:
    """The Python files at or below `paths`, relative to the working directory."""
    found: list[Path] = []
    for path in map(Path, paths):
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [os.path.relpath(path) for path in found]


class Run:
    """A pytest plugin: once the tests are collected, runs mutants instead of them."""

    def __init__(self, files: list[str], jobs: int, seconds: float, only: set[Key] | None) -> None:
        self.files, self.jobs, self.seconds, self.only = files, jobs, seconds, only
        self.survivors: list[Mutant] = []
        self.fates: Counter[Fate] = Counter()
        self.new = 0
        self.broken = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item in session.items:
            fewer_examples(item)
        all_files = [Path(file).resolve() for file in sources(list(PACKAGES))]
        baseline = measured(session.items, {str(path) for path in all_files}, self.jobs, say)
        if baseline.failed:
            self.broken = True
            say("these tests fail without any change:", *baseline.failed)
            return True
        say(f"{len(session.items)} tests take {sum(baseline.seconds.values()):.0f} s")
        pool = Pool({item.nodeid: item for item in session.items}, baseline, Live(all_files), self.jobs, self.seconds)
        for file in self.files:
            self.one(file, pool)
        return True

    def one(self, file: str, pool: Pool) -> None:
        entries = accepted()
        fates: Counter[Fate] = Counter()
        for result in pool.run(file, self.only):
            fates[result.fate] += 1
            if result.fate in SURVIVING:
                self.survivors.append(result.mutant)
                if not any(one.covers(result.mutant) for one in entries):
                    self.new += 1
                    say(f"# {result.fate.value}; line {result.mutant.lines.start}", entry(result.mutant), "")
        self.fates += fates
        say(f"# {file}: {described(fates)}", "")


def described(fates: Counter[Fate]) -> str:
    counts = ", ".join(f"{fates[fate]} {fate.value}" for fate in Fate if fates[fate])
    return f"{fates.total() - fates[Fate.NO_DIFFERENCE]} mutants" + (f": {counts}" if counts else "")


def say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("paths", nargs="*", default=PACKAGES, help="files or directories; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time; default: %(default)s")
    parser.add_argument("--seconds", type=float, default=1e9, help="most time for one mutant; default: all its tests")
    parser.add_argument("--only", type=Path, help="run only the mutants that an earlier run has printed to this file")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    options = parser.parse_args(arguments)
    files = sources(options.paths)
    if options.list:
        for file in files:
            say(*(f"{file}:{one.lines.start} {one.function}: {one.change}" for one in mutants_of(file, _read(file))))
        return 0
    only = printed(options.only.read_text()) if options.only else None
    if only is not None:
        files = [file for file in files if any(file == key[0] for key in only)]
    run = Run(files, options.jobs, options.seconds, only)
    status = pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS], plugins=[run])
    if run.broken or status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return 2
    old = [] if only is not None else stale(accepted(), set(files), run.survivors)
    for one in old:
        say(f"accepted, but no survivor: {one.file} {one.function}: {one.change}")
    say(f"{described(run.fates)}; {run.new} survivors are new")
    return 1 if run.new or old else 0


def _read(file: str) -> str:
    return Path(file).read_text()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
