"""The demo as a whole, at a reduced size: its own service, real workers, a real SIGKILL."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Running, is_alive, start

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("workers of a demo; the default has a stack under chaos"),
]

SMALL = ["--lines", "14000", "--partitions", "12", "--pace", "900", "--timeout", "120"]
RUN_SECONDS = 900.0


@pytest.fixture
def options() -> list[str]:
    """Beside those that make it small."""
    return ["--group-protocol", "consumer"]


@pytest.fixture
def demo(options: list[str]) -> Iterator[Running]:
    """A demo where no service runs: its data directory is empty."""
    with start("demo", ["-m", "kcoord.demo", *SMALL, *options], None) as running:
        yield running


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and those that these started."""
    children: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), set()).add(int(entry.name))
    found: set[int] = set()
    new = {pid}
    while new:
        new = set().union(*(children.get(each, set()) for each in new)) - found
        found |= new
    return found


def wait_for_the_end_of(processes: set[int]) -> None:
    deadline = time.monotonic() + 30
    while alive := {pid for pid in processes if is_alive(pid)}:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.05)


@pytest.mark.usefixtures("spark_classes")
@pytest.mark.parametrize("options", [["--spark"]])
def test_counts_are_equal_though_a_worker_is_killed(demo: Running) -> None:
    demo.wait_for_output("workers started", seconds=RUN_SECONDS)
    started = descendants(demo.pid)
    assert len(started) > 3
    assert demo.wait(RUN_SECONDS) == 0, demo.output
    output = demo.output
    assert re.search(r"dashboard: http://127\.0\.0\.1:\d+/groups/wordcount-\w+", output)
    killed = re.search(r"SIGKILL to (worker-\d) \(pid \d+\), which owned (\d+) partitions", output)
    assert killed, output
    assert int(killed[2]) > 0
    assert re.search(r"is owned again \d+\.\d s after the SIGKILL", output), output
    assert "rebalance: generation 2" in output
    assert "the session timeout is 6 s" in output
    assert "equal, all" in output
    assert re.search(r"archived [1-9]\d* commits as Parquet in", output), output
    assert re.search(r"reconcile compared [1-9]\d* commits in \d+\.\d s: 0 findings", output), output
    wait_for_the_end_of(started)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_outlives_a_demo_that_is_stopped(demo: Running, number: signal.Signals) -> None:
    demo.wait_for_output("worker-1 gets", seconds=RUN_SECONDS)
    started = descendants(demo.pid)
    assert len(started) > 3
    os.kill(demo.pid, number)
    assert demo.wait(60) == (143 if number is signal.SIGTERM else -number)
    wait_for_the_end_of(started)
