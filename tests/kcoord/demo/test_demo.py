"""The demo as a whole, at a reduced size: its own service, real workers, a real SIGKILL."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import ExitStack

import psutil
import pytest

from tests.support.processes import start, start_server, wait_until_gone

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("workers of a demo; the default has a stack under chaos"),
]

DEMO = ["-m", "kcoord.tools.demo", "--lines", "14000", "--partitions", "12", "--pace", "900", "--timeout", "120"]
RUN_SECONDS = 900.0
END_SECONDS = 30.0


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and those that these started."""
    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


@pytest.mark.usefixtures("spark_classes")
def test_counts_are_equal_though_a_worker_is_killed() -> None:
    with start("demo", [*DEMO, "--spark"], None) as demo:
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
    progress = re.findall(r"(\d+) of \d+ lines committed \(\d+ %\), (\d+) delivered", output)
    assert all(int(committed) <= int(delivered) for committed, delivered in progress), progress
    assert re.search(r"archived [1-9]\d* commits as Parquet in", output), output
    assert re.search(r"reconcile compared [1-9]\d* commits in \d+\.\d s: 0 findings", output), output
    wait_until_gone(*started, seconds=END_SECONDS)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_outlives_a_demo_that_is_stopped(database: str, token: str, number: signal.Signals) -> None:
    """Killed, its own service ends as well. Asked to end, it is the guest of another, which starts faster; that its own
    ends then is in the test of the showcase, which starts it in the same way.
    """
    with ExitStack() as stack:
        env = {}
        if number is signal.SIGTERM:
            server = stack.enter_context(start_server(database))
            server.wait_ready()
            env = {"KCOORD_URL": server.url, "KCOORD_TOKEN": token}
        demo = stack.enter_context(start("demo", [*DEMO, "--group-protocol", "consumer"], None, env))
        demo.wait_for_output("worker-1 gets", seconds=RUN_SECONDS)
        started = descendants(demo.pid)
        assert len(started) >= 3
        os.kill(demo.pid, number)
        assert demo.wait(60) == (143 if number is signal.SIGTERM else -number)
        wait_until_gone(*started, seconds=END_SECONDS)
