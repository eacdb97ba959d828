"""Processes of the service forked from one that has imported it, instead of a Python started for each.

Starting a server takes two seconds of CPU time, all but a tenth of them imports. A forked process is as real: it has a
session of its own, is killed and frozen by its pid, reads its environment and the settings after the fork, and runs its
module as `python -m` does. Imports alone are shared, and of the service's code only what does not read a setting while
it is imported: not `kcoord.asgi` and `kcoord.celery`.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from kcoord import config, constants
from kcoord.constants import Constant

ROOT = Path(__file__).resolve().parent.parent.parent
PRELOADED = "tests.support.forked_imports"


class Forked:
    """A forked process, with what tests use of `subprocess.Popen`."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        assert process.pid is not None
        self.pid: int = process.pid

    def poll(self) -> int | None:
        """Its exit status, or None while it runs; of a process ended by signal N it is -N."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; returns its exit status. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)


def fork(arguments: Sequence[str], env: Mapping[str, str], output: Path, descriptors: Sequence[int] = ()) -> Forked:
    """Run `python ARGUMENTS…`: [-W FILTER] -m MODULE …, or a program's path.

    `output`: an existing file to write to; `descriptors`: what it inherits, under the same numbers.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    inherited = {number: DupFd(number) for number in descriptors}
    process = context.Process(target=_run, args=(arguments, env, output, inherited), daemon=True)
    process.start()
    return Forked(process)


def _run(arguments: Sequence[str], env: Mapping[str, str], output: Path, inherited: Mapping[int, Any]) -> None:
    """The forked process."""
    os.setsid()
    os.chdir(ROOT)
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    for number, descriptor in inherited.items():
        os.dup2(descriptor.detach(), number)
    os.environ.clear()
    os.environ.update(env)
    set_constants()
    forget_settings()
    sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    if arguments[0] == "-W":
        action, message = arguments[1].split(":", 1)
        warnings.filterwarnings(action, message)  # type: ignore[arg-type]
        arguments = arguments[2:]
    if arguments[0] == "-m":
        sys.argv = [*arguments[1:]]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [*arguments]
        runpy.run_path(arguments[0], run_name="__main__")


def of_constants(env: Mapping[str, object]) -> dict[str, Constant]:
    """The constants (`kcoord.constants`) that are numbers and that variables of `env` set: the service refuses them."""
    return {one.env: one for one in constants.CONSTANTS if one.env in env and not isinstance(one.value, bool)}


def set_constants() -> None:
    """Give constants the values of their variables, in this process only, and remove the variables."""
    given = {one: int(os.environ.pop(env)) for env, one in of_constants(os.environ).items()}
    config.CONSTANTS = tuple(replace(one, value=given.get(one, one.value)) for one in constants.CONSTANTS)  # type: ignore[attr-defined]


def forget_settings() -> None:
    """Django's settings are read again, from the environment of now, and no connection knows those of before."""
    from django.conf import empty, settings  # type: ignore[attr-defined]
    from django.db import connections

    settings._wrapped = empty
    sys.modules.pop(os.environ["DJANGO_SETTINGS_MODULE"], None)
    for connection in connections.all(initialized_only=True):
        del connections[connection.alias]
    connections._settings = None
    vars(connections).pop("settings", None)
