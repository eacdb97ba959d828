"""One child process: its output line by line, its exit, its signals.

No threads and no child watcher: output arrives over a pipe that the event loop reads, exits with SIGCHLD. A child
leads its own session, so that Ctrl-C in the terminal reaches only the supervisor, and is ended as a group.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

LONGEST_LINE = 16_384
LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. `stop_signal` asks it to end, `kill_signal` forces it, `last`: others need it until they have ended.

    `user` is (uid, gid) to run as, or None for the current user.
    """

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    last: bool = False
    user: tuple[int, int] | None = None
    pass_fds: tuple[int, ...] = ()

    @property
    def death_signal(self) -> signal.Signals:
        """What it gets when the supervisor is gone, so that nobody is left who would force it to end."""
        return self.stop_signal if self.last else self.kill_signal


def describe_exit(status: int) -> str:
    """`exit status 1` or `signal 9 (SIGKILL)`, from a return code of subprocess."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


class Process:
    """A running command. Create it on the event loop; `reap` is called for every SIGCHLD."""

    def __init__(self, command: Command, on_line: Callable[[str], None]) -> None:
        self.command = command
        self._loop = asyncio.get_running_loop()
        self._on_line = on_line
        self._rest = b""
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._output, theirs = os.pipe()
        os.set_blocking(self._output, False)
        user = "{}:{}".format(*command.user) if command.user else "-"
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(int(command.death_signal)), user]
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - our own commands
                [*launcher, *command.argv],
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env=command.environ,
                cwd=command.cwd,
                start_new_session=True,
                pass_fds=command.pass_fds,
            )
        finally:
            os.close(theirs)
        self._loop.add_reader(self._output, self._read)

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its group."""
        return self._popen.pid

    def reap(self) -> None:
        """Check whether it has ended; if so, the rest of its group is ended too."""
        if not self.exited.done() and (status := self._popen.poll()) is not None:
            self.send_group(signal.SIGKILL)
            self._drain()
            self.exited.set_result(status)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process only; no effect if it has ended."""
        if not self.exited.done():
            self._popen.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        """Send a signal to its whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is empty; macOS: only zombies left
            os.killpg(self.pid, number)

    def _drain(self) -> None:
        """Read its remaining output, and stop reading."""
        while self._read():
            pass
        if self._rest:
            self._say(self._rest)
            self._rest = b""
        self._close()

    def _read(self) -> bool:
        """Pass on complete lines; true if there may be more to read."""
        if self._output < 0:
            return False
        try:
            data = os.read(self._output, 65_536)
        except BlockingIOError:
            return False
        if not data:
            self._close()
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line)
        if len(self._rest) > LONGEST_LINE:
            self._say(self._rest)
            self._rest = b""
        return True

    def _say(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace").rstrip()
        for start in range(0, len(text), LONGEST_LINE):
            self._on_line(text[start : start + LONGEST_LINE])

    def _close(self) -> None:
        if self._output >= 0:
            self._loop.remove_reader(self._output)
            os.close(self._output)
            self._output = -1
