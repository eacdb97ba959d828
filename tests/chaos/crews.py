"""The processes of the members: started, frozen, killed and replaced, closed in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.history import Writer
from tests.support.processes import ROOT

CLOSE_S = 30.0


class CrewProcesses:
    """All of them. Each process writes a history of its own in `directory`."""

    def __init__(self, options: dict[str, object], url: str, token: str, directory: Path, history: Writer) -> None:
        self._options = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self._url, self._token = url, token
        self._directory = directory
        self._history = history
        self._lives: dict[str, int] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start the members of a crew."""
        life = self._lives[name] = self._lives.get(name, 0) + 1
        path = self._directory / f"{name}.{life}.jsonl"
        arguments = [name, *self._options, "--url", self._url, "--life", str(life), "--history", str(path)]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("KCOORD_")}
        with (self._directory / f"{name}.{life}.output").open("wb") as output:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.crew", *arguments],
                cwd=ROOT,
                env={**inherited, "KCOORD_TOKEN": self._token, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def freeze(self, name: str) -> None:
        """SIGSTOP."""
        self._running[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        self._running[name].send_signal(signal.SIGCONT)

    def replace(self, name: str) -> None:
        """kill -9; another process runs the same members, as new ones but for those that are static."""
        self._running[name].kill()
        self._running[name].wait()
        self._history.write("killed", crew=name)
        self.start(name)

    def close(self) -> None:
        """Close all members. Raises AssertionError if a process ended by itself or does not end."""
        for name, process in self._running.items():
            assert process.poll() is None, f"{name} ended by itself:\n{self._output(name)}"
            process.terminate()
        for name, process in self._running.items():
            try:
                status = process.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} does not end:\n{self._output(name)}") from None
            assert status == 0, f"{name} ended with status {status}:\n{self._output(name)}"

    def kill(self) -> None:
        """End what still runs."""
        for process in self._running.values():
            process.kill()
            process.wait()

    def histories(self) -> list[Path]:
        """The files of all lives."""
        return sorted(self._directory.glob("c*.jsonl"))

    def _output(self, name: str) -> str:
        return (self._directory / f"{name}.{self._lives[name]}.output").read_text()[-4000:]


@contextmanager
def running_crews(
    names: list[str], options: dict[str, object], url: str, token: str, directory: Path, history: Writer
) -> Iterator[CrewProcesses]:
    """All crews, started; what still runs afterwards is killed."""
    crews = CrewProcesses(options, url, token, directory, history)
    try:
        for name in names:
            crews.start(name)
        yield crews
    finally:
        crews.kill()
