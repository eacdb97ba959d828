"""The supervisor with small commands in place of the services."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kcoord.stack import supervisor as supervisors
from kcoord.stack.process import LAUNCHER, LONGEST_LINE, Command
from kcoord.stack.supervisor import Supervisor
from tests.support.processes import environment, is_alive, wait_until_gone

pytestmark = pytest.mark.processes

STEADY = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
while True:
    signal.pause()
"""
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {STUBBORN!r}])
print(child.pid, flush=True)
child.wait()
"""
TELLING = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit("bye"))
print("up", flush=True)
signal.pause()
"""


class Lines:
    """What the supervisor and its commands wrote."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []
        self._changed = asyncio.Event()

    def __call__(self, service: str, line: str) -> None:
        self.all.append((service, line))
        self._changed.set()

    async def wait_for(self, wanted: Callable[[str, str], bool], count: int = 1) -> list[str]:
        """Wait until `count` lines are as wanted; returns them."""
        async with asyncio.timeout(20):
            while True:
                found = [line for service, line in self.all if wanted(service, line)]
                if len(found) >= count:
                    return found
                self._changed.clear()
                await self._changed.wait()

    async def wait_for_line(self, service: str, text: str, count: int = 1) -> list[str]:
        """Wait until `service` wrote `count` lines with `text` in them; returns them."""
        return await self.wait_for(lambda s, line: s == service and text in line, count)


def python(name: str, code: str) -> Command:
    """A command that runs some Python."""
    return Command(name, (sys.executable, "-c", code), environment(None, Path("/nowhere")), Path("/"))


def pid_in(line: str) -> int:
    """The process id in `… (process N)`."""
    return int(line.rpartition("process ")[2].rstrip(")"))


@pytest.fixture
async def lines() -> Lines:
    return Lines()


async def test_a_command_that_dies_is_started_again_and_said_so(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    supervisor.keep(python("worker", STEADY))
    (first,) = await lines.wait_for_line("stack", "worker started")
    await lines.wait_for_line("worker", "up")
    os.kill(pid_in(first), signal.SIGKILL)
    await lines.wait_for_line("stack", "worker ended (signal 9 (SIGKILL)); starting it again in 0.5 s")
    _, second = await lines.wait_for_line("stack", "worker started", 2)
    await lines.wait_for_line("worker", "up", 2)
    await supervisor.stop()
    wait_until_gone(pid_in(first), pid_in(second))


async def test_a_command_that_ends_at_once_is_started_with_growing_pauses(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    supervisor.keep(python("beat", "import sys; sys.exit(7)"))
    said = await lines.wait_for_line("stack", "beat ended (exit status 7)", 3)
    assert [line.rpartition("in ")[2] for line in said] == ["0.5 s", "1 s", "2 s"]
    await supervisor.stop()


async def test_a_program_that_does_not_exist_is_said_and_tried_again(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    supervisor.keep(replace(python("server", ""), argv=("/no/such/program",)))
    await lines.wait_for_line("server", "cannot run /no/such/program: No such file or directory")
    await lines.wait_for_line("stack", "server ended (exit status 1)")
    await supervisor.stop()


async def test_what_cannot_be_started_at_all_is_said_and_tried_again(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    supervisor.keep(replace(python("server", ""), cwd=Path("/no/such/directory")))
    await lines.wait_for_line("stack", "could not be started: No such file or directory")
    await supervisor.stop()


async def test_a_stop_ends_stubborn_commands_and_their_children(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisors, "GRACE_SECONDS", 0.2)
    supervisor = Supervisor(lines)
    supervisor.keep(python("stubborn", STUBBORN))
    supervisor.keep(python("parent", PARENT))
    await lines.wait_for_line("stubborn", "up")
    (grandchild,) = await lines.wait_for(lambda service, line: service == "parent" and line.isdigit())
    await lines.wait_for_line("parent", "up")
    started = await lines.wait_for_line("stack", "started")
    await supervisor.stop()
    await lines.wait_for_line("stack", "stubborn did not end within 0.2 s; SIGKILL")
    wait_until_gone(*map(pid_in, started), int(grandchild))


async def test_what_others_need_stops_last(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    supervisor.keep(replace(python("postgres", TELLING), last=True))
    supervisor.keep(python("server", TELLING))
    for name in ("postgres", "server"):
        await lines.wait_for_line(name, "up")
    await supervisor.stop()
    assert [service for service, line in lines.all if line == "bye"] == ["server", "postgres"]


async def test_a_signal_asks_to_stop(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(10):
        await supervisor.stopped()
    assert await supervisor.run_once(python("setup", "")) is None
    await supervisor.stop()
    assert ("stack", "SIGTERM received") in lines.all


async def test_output_without_an_end_of_line_is_not_lost(lines: Lines) -> None:
    supervisor = Supervisor(lines)
    long = LONGEST_LINE * 3
    status = await supervisor.run_once(
        python("setup", f"import sys; sys.stdout.write('x' * {long}); sys.stderr.write('!')")
    )
    assert status == 0
    assert "".join(line for service, line in lines.all if service == "setup") == "x" * long + "!"
    await supervisor.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_a_command_ends_when_its_parent_was_killed(tmp_path: Path) -> None:
    launch = (
        "import os, subprocess, sys;"
        f"c = subprocess.Popen([sys.executable, '-I', '-S', {str(LAUNCHER)!r}, str(os.getpid()), '15', '-',"
        f" sys.executable, '-c', {STEADY!r}]); print(c.pid, flush=True); c.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", launch], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "up\n"
        assert is_alive(child)
        parent.kill()
        wait_until_gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_a_command_that_does_not_hear_signals_ends_when_the_supervisor_was_killed() -> None:
    """A server that is frozen, or hangs while it stops, would hold the port for as long."""
    program = """
import asyncio, os, sys
from pathlib import Path
from kcoord.stack.process import Command, Process

async def main():
    deaf = (sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    process = Process(Command("deaf", deaf, dict(os.environ), Path.cwd()), print)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    print(process.pid, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        child = int(supervisor.stdout.readline())
        supervisor.kill()
        wait_until_gone(child)
