"""The worker processes of a demo and what they report."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from kcoord.tools.demo.service import DemoProblem
from kcoord.tools.demo.worker import WorkerSettings

STOP_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Report:
    """One line of a worker."""

    worker: str
    event: str
    fields: dict[str, Any]


@dataclass(slots=True)
class Member:
    """A worker process as the demo sees it; `owned` partitions and `delivered` lines are as last reported."""

    name: str
    process: subprocess.Popen[str]
    owned: set[int] = field(default_factory=set)
    delivered: int = 0
    killed: bool = False


class Crew:
    """Starts, kills and stops workers. Leaving the `with` block ends all of them."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for member in self.members.values():
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()

    def start(self, name: str, settings: WorkerSettings) -> Member:
        """Start a worker."""
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "kcoord.tools.demo.worker", settings.argument()],
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        member = self.members[name] = Member(name, process)
        for target in (self._read_reports, self._read_complaints):
            threading.Thread(target=target, args=(member,), name=f"{name}-reader", daemon=True).start()
        return member

    def kill(self, member: Member) -> None:
        """SIGKILL: the worker has no chance to notify anyone."""
        member.killed = True
        member.process.send_signal(signal.SIGKILL)
        member.process.wait()

    def stop(self) -> None:
        """Ask all workers to end and wait for it. Raises DemoProblem for one that does not or that failed."""
        running = [member for member in self.members.values() if not member.killed]
        for member in running:
            assert member.process.stdin is not None, "started with a pipe"
            member.process.stdin.close()
        for member in running:
            try:
                status = member.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                raise DemoProblem(f"{member.name} did not end within {STOP_SECONDS:g} s") from None
            if status != 0:
                raise DemoProblem(f"{member.name} ended with status {status}")

    def reports(self, seconds: float) -> Iterator[Report]:
        """What the workers report within `seconds`. Raises DemoProblem if one ended unexpectedly."""
        try:
            yield self._reports.get(timeout=seconds)
            while True:
                yield self._reports.get_nowait()
        except queue.Empty:
            pass
        for member in self.members.values():
            if not member.killed and member.process.poll() is not None:
                raise DemoProblem(f"{member.name} ended early with status {member.process.returncode}")

    def _read_reports(self, member: Member) -> None:
        assert member.process.stdout is not None, "started with a pipe"
        for line in member.process.stdout:
            try:
                fields = json.loads(line)
            except ValueError:
                # The last line of a killed worker may be cut off.
                continue
            self._reports.put(Report(member.name, fields.pop("event"), fields))

    def _read_complaints(self, member: Member) -> None:
        assert member.process.stderr is not None, "started with a pipe"
        for line in member.process.stderr:
            self._reports.put(Report(member.name, "says", {"text": line.rstrip()}))
