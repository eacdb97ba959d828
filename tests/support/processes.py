"""Real processes of the service for tests: servers, workers and beat on a given database.

    with start_server(conninfo) as server:
        server.wait_ready()
        httpx.post(f"{server.url}/v1/groups/g/join", …)
        server.kill()

Each process has a data directory and an output file of its own; what it wrote is shown when a wait fails. Leaving the
`with` block ends the process and all it started.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, urlencode

import httpx
from psycopg.conninfo import conninfo_to_dict

from kcoord.stack.services import ROOT_WARNING, beat_options, worker_options
from tests.support.forked import Forked, fork, of_constants

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS = 120.0
STOP_SECONDS = 10.0
PORTS = 12_000, 32_000
"""Below those that Linux gives to outgoing connections (32,768 to 60,999)."""
FORKED = "PYTEST_VERSION" in os.environ
"""Whether services are forked: in tests. Programs that measure start Python, as an installation does."""


def database_url(conninfo: str) -> str:
    """A connection string as KCOORD_DATABASE_URL takes it; a socket directory travels as a parameter."""
    parts = {key: str(value) for key, value in conninfo_to_dict(conninfo).items() if value is not None}
    return f"postgresql:///{quote(parts.pop('dbname'), safe='')}?{urlencode(parts, quote_via=quote)}"


def environment(conninfo: str | None, data_dir: Path, extra: Mapping[str, object] | None = None) -> dict[str, str]:
    """The environment of a process: nobody else's settings, this database, this directory, and `extra`."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("KCOORD_")}
    own: dict[str, object] = {
        "DJANGO_SETTINGS_MODULE": "kcoord.settings",
        "KCOORD_DATA_DIR": data_dir,
        "PYTHONPATH": ROOT,
        "PYTHONUNBUFFERED": 1,
    }
    if conninfo is not None:
        own["KCOORD_DATABASE_URL"] = database_url(conninfo)
        own["KCOORD_SECRET_KEY"] = "of tests alone, the same in every process of a test"
    return inherited | {key: str(value) for key, value in (own | dict(extra or {})).items()}


def free_port() -> int:
    """A port nobody listens on at the moment, and that no outgoing connection can be given meanwhile."""
    while True:
        port = random.SystemRandom().randrange(*PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def free_ports(count: int) -> int:
    """A port after which `count` others are free as well, at the moment."""
    while True:
        first = free_port()
        try:
            for port in range(first, first + count + 1):
                socket.create_server(("127.0.0.1", port)).close()
        except (OSError, OverflowError):
            continue
        return first


def is_alive(pid: int) -> bool:
    """The process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until_gone(*pids: int, seconds: float = STOP_SECONDS) -> None:
    """Wait until none of these processes exists. Raises AssertionError where one goes on."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"still there after {seconds:g} s: {left}"
        time.sleep(0.01)


@dataclass(slots=True)
class Running:
    """A process of the service. `port` is None where it serves nothing."""

    name: str
    popen: subprocess.Popen[bytes] | Forked
    directory: Path
    port: int | None = None
    _closed: bool = field(default=False, init=False)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    @property
    def url(self) -> str:
        """Where it serves, without a slash at the end."""
        assert self.port is not None, f"{self.name} serves nothing"
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        """What it wrote so far."""
        return (self.directory / "output").read_text(errors="backslashreplace")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.popen.kill()
        self.popen.wait(STOP_SECONDS)

    def terminate(self, seconds: float = STOP_SECONDS) -> int:
        """Ask it to end (SIGTERM) and wait for that; returns its exit status."""
        self.popen.terminate()
        return self.wait(seconds)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end; returns its exit status. Raises AssertionError, with its output, where it goes on."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.report(f"did not end within {seconds:g} s")) from None

    def wait_for_output(self, text: str, seconds: float = READY_SECONDS) -> None:
        """Wait until it wrote `text`. Raises AssertionError, with its output, where it ended or did not."""
        deadline = time.monotonic() + seconds
        while text not in self.output:
            assert self.popen.poll() is None, self.report(f"ended before it wrote {text!r}")
            assert time.monotonic() < deadline, self.report(f"did not write {text!r} within {seconds:g} s")
            time.sleep(0.02)

    def wait_ready(self, seconds: float = READY_SECONDS, *, timers: bool = False) -> None:
        """Wait until /readyz says it serves; that the timers run (worker and beat) counts only with `timers`."""
        deadline = time.monotonic() + seconds
        last = "no answer"
        while True:
            assert self.popen.poll() is None, self.report("ended before it was ready")
            assert time.monotonic() < deadline, self.report(f"not ready within {seconds:g} s: {last}")
            try:
                answer = httpx.get(f"{self.url}/readyz", timeout=5)
            except httpx.TransportError as error:
                last = repr(error)
            else:
                last = answer.text
                if answer.status_code == 200 or (not timers and _only_timers_fail(answer)):
                    return
            time.sleep(0.05)

    def report(self, problem: str) -> str:
        """A problem together with what the process wrote."""
        status = self.popen.poll()
        state = "running" if status is None else f"status {status}"
        return f"{self.name} ({state}) {problem}\n--- {self.name} wrote:\n{self.output[-8000:]}"

    def close(self) -> None:
        """End it and all it started."""
        if self._closed:
            return
        self._closed = True
        ended = self.popen.poll() is not None
        if not ended:
            self.popen.kill()
        if not (ended and is_alive(self.pid)):  # numbers come again within minutes: that would be another's group
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait(STOP_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)


def _only_timers_fail(answer: httpx.Response) -> bool:
    if answer.status_code != 503:
        return False
    checks: dict[str, dict[str, object]] = answer.json().get("checks", {})
    return bool(checks) and {name for name, check in checks.items() if not check["ok"]} == {"timers"}


def start(
    name: str,
    arguments: list[str],
    conninfo: str | None,
    env: Mapping[str, object] | None = None,
    listener: socket.socket | None = None,
    *,
    python: str = sys.executable,
    root: Path = ROOT,
    forked: bool = False,
) -> Running:
    """Start `python ARGUMENTS…` in a session of its own. `env` adds to its environment or replaces parts of it.

    `root`: where the code is; `forked`: from a process that has imported the service (`tests/support/forked.py`), as
    it is whenever `env` sets a constant.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"kcoord-{name}-"))
    whole = environment(conninfo, directory / "data", {"PYTHONPATH": root, **(env or {})})
    descriptors = [listener.fileno()] if listener else []
    popen: subprocess.Popen[bytes] | Forked
    if forked or of_constants(env or {}):
        (directory / "output").touch()
        popen = fork(arguments, whole, directory / "output", descriptors)
    else:
        with (directory / "output").open("wb") as output:
            popen = subprocess.Popen(
                [python, *arguments],
                cwd=root,
                env=whole,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=descriptors,
            )
    return Running(name, popen, directory, listener.getsockname()[1] if listener else None)


def start_server(
    conninfo: str,
    *,
    port: int = 0,
    env: Mapping[str, object] | None = None,
    module: str = "kcoord.stack.server",
    forked: bool = FORKED,
) -> Running:
    """A server on `port` of the loopback address, or on a free one; call `wait_ready` before you use it.

    `module`: what runs, in place of the real one; `forked`: as of `start`.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        extra = {"KCOORD_PORT": listener.getsockname()[1], **(env or {})}
        arguments = ["-m", module, "--fd", str(listener.fileno())]
        return start("server", arguments, conninfo, extra, listener, forked=forked)


def start_worker(conninfo: str, *, env: Mapping[str, object] | None = None) -> Running:
    """A Celery worker; it says ` ready.` when it takes tasks."""
    return start(
        "worker", ["-W", f"ignore:{ROOT_WARNING}", "-m", "celery", *worker_options()], conninfo, env, forked=FORKED
    )


def start_beat(conninfo: str, *, env: Mapping[str, object] | None = None) -> Running:
    """Celery beat."""
    return start("beat", ["-m", "celery", *beat_options()], conninfo, env, forked=FORKED)
