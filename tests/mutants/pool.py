"""Runs mutants, each in a process forked from one that has collected all tests."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from pathlib import Path

import pytest

from tests.mutants.baseline import Baseline, passes
from tests.mutants.mutations import Key, Mutant, mutants_of
from tests.mutants.swap import Live, NotApplied, changed_function, put_into_function, put_into_module

MOST_MEMORY = 2 << 30
"""Bytes that a mutant may allocate beyond what the process has."""


class Fate(Enum):
    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    NOT_EXECUTED = "not executed by any test"
    NO_DIFFERENCE = "no difference"


@dataclass(frozen=True)
class Result:
    mutant: Mutant
    fate: Fate
    killer: str = ""


@dataclass
class _Plan:
    mutant: Mutant
    put: Callable[[], None]
    tests: set[str]


@dataclass
class Pool:
    """`items`: the tests by id. `jobs`: processes at a time. `seconds`: the most to spend on one mutant (traced)."""

    items: dict[str, pytest.Item]
    baseline: Baseline
    live: Live
    jobs: int
    seconds: float
    killers: Counter[str] = field(default_factory=Counter)

    def run(self, file: str, only: set[Key] | None) -> Iterator[Result]:
        """The fate of each mutant of the file; of those in `only`, if it is given."""
        running: dict[int, tuple[_Plan, int]] = {}
        self.killers.clear()
        gc.collect()
        gc.freeze()
        for plan in self.plans(file, only):
            if isinstance(plan, Result):
                yield plan
                continue
            if len(running) >= self.jobs:
                yield self.finished(running)
            process, pipe = self.start(plan)
            running[process] = plan, pipe
        while running:
            yield self.finished(running)

    def plans(self, file: str, only: set[Key] | None) -> Iterator[_Plan | Result]:
        source = Path(file).read_text()
        original = compile(source, str(Path(file).resolve()), "exec", dont_inherit=True)
        for mutant in mutants_of(file, source):
            if only is not None and mutant.key not in only:
                continue
            try:
                pair = changed_function(original, mutant.compiled())
            except SyntaxError:
                continue
            if pair is None:
                tests = self.tests_of_names(mutant)
                put = lambda mutant=mutant: put_into_module(mutant)  # noqa: E731
            else:
                tests = self.baseline.covering(file, mutant.lines)
                put = lambda pair=pair: put_into_function(self.live, *pair)  # noqa: E731
            if tests:
                yield _Plan(mutant, put, tests)
            else:
                yield Result(mutant, Fate.NOT_EXECUTED)

    def tests_of_names(self, mutant: Mutant) -> set[str]:
        found: set[str] = set()
        names = mutant.bound()
        for code in self.live.using(names):
            lines = [line for _, _, line in code.co_lines() if line]
            found |= self.baseline.covering(code.co_filename, lines[1:] or lines)
        return found | {name for name, item in self.items.items() if not names.isdisjoint(vars(item.module))}

    def start(self, plan: _Plan) -> tuple[int, int]:
        reading, writing = os.pipe()
        process = os.fork()
        if process:
            os.close(writing)
            return process, reading
        status = 1
        try:
            os.close(reading)
            self.in_child(plan, writing)
            status = 0
        finally:
            os._exit(status)

    def in_child(self, plan: _Plan, pipe: int) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + MOST_MEMORY, resource.RLIM_INFINITY))
        killer = _run(plan.put, self.in_order(plan.tests), self.baseline)
        os.write(pipe, json.dumps(killer).encode())

    def in_order(self, tests: set[str]) -> list[pytest.Item]:
        """First those that killed other mutants of this file, then the fastest, for as long as there is time."""
        names = sorted(tests, key=lambda name: (-self.killers[name], self.baseline.seconds[name]))
        spent = accumulate(self.baseline.seconds[name] for name in names)
        return [self.items[name] for name, seconds in zip(names, spent, strict=True) if seconds <= self.seconds]

    def finished(self, running: dict[int, tuple[_Plan, int]]) -> Result:
        process, status = os.wait()
        plan, pipe = running.pop(process)
        with os.fdopen(pipe, "rb") as answer:
            text = answer.read()
        if os.WIFSIGNALED(status):
            return Result(plan.mutant, Fate.TIMEOUT)
        if not text:
            return Result(plan.mutant, Fate.KILLED, "(crash)")
        kind, killer = json.loads(text)
        if kind == "killed" and killer:
            self.killers[killer] += 1
        return Result(plan.mutant, Fate[kind.upper()], killer)


def _run(put: Callable[[], None], items: list[pytest.Item], baseline: Baseline) -> tuple[str, str]:
    try:
        put()
    except NotApplied:
        return "no_difference", ""
    except Exception:  # noqa: BLE001 - the module cannot even be imported with this change
        return "killed", ""
    for index, item in enumerate(items):
        # CPU time, so that a busy machine kills no mutant; the second limit ends a test that waits and never wakes.
        limit = 2 + 5 * baseline.seconds[item.nodeid]
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, 60 + 20 * limit)
        with contextlib.suppress(SystemExit):
            if passes(item, items[index + 1] if index + 1 < len(items) else None):
                continue
        return "killed", item.nodeid
    return "survived", ""
