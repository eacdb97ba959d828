"""Processes of Spark runs: started by a service, each in its own process group, with its own log.

They outlive the server or worker that started them; their progress is in their rows (`offsets.models.SparkRun`).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kcoord.config import BASE_DIR, Config

MOST_LOGS = 200
"""The number of logs that are kept; the oldest are deleted first."""
TAIL_BYTES = 65_536
"""How much of the end of a log is shown, in bytes."""
NICE = 10
"""Runs yield to the server on a busy machine; see nice(1)."""


def command(kind: str, run_id: str, log_path: Path) -> Sequence[str]:
    """What a run's process executes. It imports no Django, so it starts sooner than `manage.py` does."""
    given = ("--run-id", run_id, "--log-path", str(log_path), "--nice", str(NICE))
    return (sys.executable, "-m", "offsets.spark", kind, *given)


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of a log. `size`: its total in bytes; `skipped`: bytes before `text`."""

    text: str
    size: int
    skipped: int


class RunLogs:
    """The logs of runs that this machine started, in the data directory."""

    def __init__(self, config: Config) -> None:
        self._directory = config.data_dir / "spark" / "runs"

    def path(self, run_id: str) -> Path:
        """The path of a run's log."""
        return self._directory / f"{run_id}.log"

    def create(self, run_id: str) -> Path:
        """Create an empty log that only this account can read, and delete the oldest ones. Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        logs = sorted(self._directory.glob("*.log"), key=lambda path: path.stat().st_mtime)
        for old in logs[: max(0, len(logs) - MOST_LOGS + 1)]:
            old.unlink(missing_ok=True)
        path = self.path(run_id)
        path.touch(mode=0o600)
        return path

    def tail(self, run_id: str) -> LogTail | None:
        """The end of a run's log; None if it has none."""
        try:
            with self.path(run_id).open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                skipped = log.seek(max(0, size - TAIL_BYTES))
                return LogTail(log.read(TAIL_BYTES).decode("utf-8", "replace"), size, skipped)
        except FileNotFoundError:
            return None


def start_process(kind: str, run_id: str, log_path: Path, ended: Callable[[int], None]) -> int:
    """Start a run's process and return its id. Raises OSError.

    `ended` is called with the exit status when it has ended, on a separate thread, if this process is still alive.
    """
    path = os.pathsep.join(filter(None, [str(BASE_DIR), os.environ.get("PYTHONPATH", "")]))
    with log_path.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command(kind, run_id, log_path),
            cwd=BASE_DIR,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait() -> None:
        status = process.wait()
        with contextlib.suppress(RuntimeError):  # the receiving event loop has ended
            ended(status)

    threading.Thread(target=wait, name=f"kcoord-run-{run_id}", daemon=True).start()
    return process.pid
