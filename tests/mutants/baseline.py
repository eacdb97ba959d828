"""Which tests execute which lines, and how long each takes (seconds of CPU time, traced)."""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest
from _pytest.runner import CallInfo
from hypothesis import HealthCheck, Phase, settings

EXAMPLES = 20
STATEFUL_EXAMPLES = 6
SOURCES = (
    "groups/core",
    "offsets/core",
    "kcoord/protocol",
    "kcoord/resets",
    "tests/groups/core",
    "tests/offsets/core",
    "tests/conformance",
)


@dataclass
class Baseline:
    """`tests[file][line]`: ids of the tests that execute the line. `seconds`: by id. `failed`: without any change."""

    tests: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def covering(self, file: str, lines: Iterable[int]) -> set[str]:
        by_line = self.tests.get(str(Path(file).resolve()), {})
        return set().union(*(by_line.get(line, ()) for line in lines))

    def add(self, other: Baseline) -> None:
        for file, by_line in other.tests.items():
            mine = self.tests.setdefault(file, {})
            for line, names in by_line.items():
                mine.setdefault(line, set()).update(names)
        self.seconds |= other.seconds
        self.failed += other.failed


def fewer_examples(item: pytest.Item) -> None:
    """Property tests try few examples, the same each time, and do not shrink what they find."""
    limits = {
        "derandomize": True,
        "database": None,
        "deadline": None,
        "phases": (Phase.explicit, Phase.generate),
        "suppress_health_check": list(HealthCheck),
        "print_blob": False,
    }
    machine = getattr(getattr(item, "cls", None), "settings", None)
    if isinstance(machine, settings):
        item.cls.settings = settings(machine, max_examples=STATEFUL_EXAMPLES, **limits)
    function = getattr(item, "obj", None)
    own = getattr(function, "_hypothesis_internal_use_settings", None)
    if own is not None:
        examples = min(own.max_examples, EXAMPLES)
        function._hypothesis_internal_use_settings = settings(own, max_examples=examples, **limits)


def passes(item: pytest.Item, next_item: pytest.Item | None) -> bool:
    """Run a test without a report of its failure, which would take longer than most of the tests."""
    if not item._request:
        item._initrequest()
    hooks = item.ihook
    try:
        return _succeeds(lambda: hooks.pytest_runtest_setup(item=item)) and _succeeds(
            lambda: hooks.pytest_runtest_call(item=item)
        )
    finally:
        hooks.pytest_runtest_teardown(item=item, nextitem=next_item)
        item._request = False
        item.funcargs = None


def _succeeds(step: Callable[[], object]) -> bool:
    call = CallInfo.from_call(step, when="call", reraise=(KeyboardInterrupt,))
    return call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception)


def measured(items: list[pytest.Item], files: set[str], jobs: int, say: Callable[[str], None]) -> Baseline:
    """Run each test once under a tracer, in a process for each file of tests.

    What was found is kept as long as neither that file nor what the tests run has changed.
    """
    directory = Path(".mutants")
    directory.mkdir(exist_ok=True)
    (directory / ".gitignore").write_text("*\n")
    common, by_file = _digest_of_sources(), defaultdict(list)
    for item in items:
        by_file[item.path].append(item)
    paths = {path: directory / f"{_digest(common, path)}.pickle" for path in by_file}
    for old in set(directory.glob("*.pickle")) - set(paths.values()):
        old.unlink()
    missing = [path for path in by_file if not paths[path].exists()]
    if missing:
        say(f"running {sum(len(by_file[path]) for path in missing)} tests once to see which lines they execute")
    running = 0
    for path in missing:
        if running == jobs:
            os.wait()
            running -= 1
        if not os.fork():
            paths[path].write_bytes(pickle.dumps(_measure(by_file[path], files)))
            os._exit(0)
        running += 1
    for _ in range(running):
        os.wait()
    whole = Baseline()
    for path in by_file:
        whole.add(pickle.loads(paths[path].read_bytes()))
    return whole


def _measure(items: list[pytest.Item], files: set[str]) -> Baseline:
    baseline = Baseline({file: {} for file in files})
    for item, next_item in zip(items, [*items[1:], None], strict=True):
        lines: set[tuple[str, int]] = set()
        started = time.process_time()
        sys.settrace(_tracer(files, lines))
        try:
            passed = passes(item, next_item)
        finally:
            sys.settrace(None)
        baseline.seconds[item.nodeid] = time.process_time() - started
        if not passed:
            baseline.failed.append(item.nodeid)
            continue
        for file, line in lines:
            baseline.tests[file].setdefault(line, set()).add(item.nodeid)
    return baseline


def _tracer(files: set[str], lines: set[tuple[str, int]]) -> Callable[..., object]:
    def line(frame: FrameType, event: str, _: object) -> object:
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: object) -> object:
        return line if frame.f_code.co_filename in files else None

    return call


def _digest_of_sources() -> bytes:
    digest = hashlib.sha256(f"{EXAMPLES} {STATEFUL_EXAMPLES}".encode())
    for source in SOURCES:
        for path in sorted(Path(source).rglob("*")):
            test = path.name.startswith("test_") or path.parts[:2] == ("tests", "mutants")
            if path.suffix in (".py", ".jsonl", ".json") and path.is_file() and not test:
                digest.update(str(path).encode() + path.read_bytes())
    return digest.digest()


def _digest(common: bytes, path: Path) -> str:
    return hashlib.sha256(common + str(path).encode() + path.read_bytes()).hexdigest()[:16]
