"""Carries out faults on a world and its crews, and writes down when each began and was over."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Protocol

from tests.chaos import schedule as faults
from tests.chaos.clock import set_ahead
from tests.chaos.history import Writer
from tests.chaos.schedule import Fault
from tests.chaos.world import CELERY, World

CUT = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
where pid <> pg_backend_pid() and backend_type = 'client backend' and datname = current_database()
"""


class Crews(Protocol):
    """The processes of the members."""

    def freeze(self, name: str) -> None:
        """SIGSTOP."""

    def thaw(self, name: str) -> None:
        """SIGCONT."""

    def replace(self, name: str) -> None:
        """SIGKILL, and another process with the same members."""


class Nemesis:
    """Does one fault at a time; returns when it is over."""

    def __init__(self, world: World, crews: Crews, history: Writer) -> None:
        self._world = world
        self._crews = crews
        self._history = history
        self._actions: dict[str, Callable[[Fault], None]] = {
            faults.KILL: lambda fault: self._end(signal.SIGKILL, fault.target),
            faults.FREEZE: lambda fault: self._freeze(fault.s, fault.target),
            faults.HAND_OVER: lambda fault: self._end(signal.SIGTERM, fault.target),
            faults.CUT: lambda fault: self._cut(),
            faults.RESTART: lambda fault: self._restart_postgres(signal.SIGINT),
            faults.CRASH: lambda fault: self._restart_postgres(signal.SIGQUIT),
            faults.CELERY: lambda fault: self._freeze(fault.s, *CELERY),
            faults.KILL_CELERY: lambda fault: self._end(signal.SIGKILL, *CELERY),
            faults.JUMP: lambda fault: self._jump(fault.s),
            faults.LEAP: lambda fault: self._jump(fault.s),
            faults.FREEZE_ALL: self._freeze_all,
            faults.KILL_ALL: self._kill_all,
            faults.KILL_CREW: lambda fault: crews.replace(fault.target),
            faults.FREEZE_CREW: self._freeze_crew,
        }

    def carry_out(self, fault: Fault) -> None:
        """Do it, wait until it is over."""
        self._history.write("fault", name=fault.name, target=fault.target, s=fault.s)
        self._actions[fault.name](fault)
        self._history.write("over", name=fault.name)

    def _end(self, number: signal.Signals, *names: str) -> None:
        """The supervisor starts them again."""
        self._world.send(number, *names)

    def _freeze(self, seconds: float, *names: str) -> None:
        pids = [self._world.pid(name) for name in names]
        self._world.send(signal.SIGSTOP, *names)
        time.sleep(seconds)
        assert pids == [self._world.pid(name) for name in names], "what is frozen is not replaced"
        self._world.send(signal.SIGCONT, *names)

    def _cut(self) -> None:
        self._world.sql(CUT)

    def _restart_postgres(self, number: signal.Signals) -> None:
        old = self._world.pid("postgres")
        self._world.send(number, "postgres")
        self._world.wait_new_process("postgres", old)
        self._world.wait_sql()

    def _jump(self, seconds: float) -> None:
        set_ahead(self._world.conninfo, round(seconds * 1000))
        # Its moment is the commit: what was decided while the locks were being taken did not see it coming.
        self._history.write("jump", s=seconds)
        if seconds >= faults.SESSION_S:
            # Every lease is over with it, so no session could be counted: the same as an outage.
            self._history.write("outage", s=0.0)

    def _freeze_all(self, fault: Fault) -> None:
        self._outage(fault.s, signal.SIGSTOP, signal.SIGCONT)

    def _kill_all(self, fault: Fault) -> None:
        self._world.pause_supervisor()
        try:
            self._outage(fault.s, signal.SIGKILL, None)
        finally:
            self._world.resume_supervisor()
        self._world.wait_serving(*self._world.servers)

    def _outage(self, seconds: float, begin: signal.Signals, end: signal.Signals | None) -> None:
        """No server and no Celery for this long. The time is counted from when the last has stopped."""
        names = (*CELERY, *self._world.servers)
        self._world.send(begin, *names)
        began = time.monotonic()
        time.sleep(seconds)
        self._history.write("outage", t=began, s=time.monotonic() - began)
        if end is not None:
            self._world.send(end, *names)

    def _freeze_crew(self, fault: Fault) -> None:
        self._crews.freeze(fault.target)
        time.sleep(fault.s)
        self._crews.thaw(fault.target)
