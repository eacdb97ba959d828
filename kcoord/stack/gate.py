"""Import what a command needs while the database is being prepared, and run the command once that is done.

`python -m kcoord.stack.gate FD IMPORTS MODULE ARGUMENT…` runs `python -m MODULE ARGUMENT…` with Django set up and the
modules IMPORTS, separated by commas, imported already. FD is a socket; the supervisor, who has its other end, sends
a byte to let the commands go on. None of them takes it out, so one that is started again later finds it too.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import runpy
import socket
import sys

import django


class Gate:
    """The supervisor's ends of the socket. `descriptor` is inherited by the commands that wait."""

    def __init__(self) -> None:
        self._own, self._theirs = socket.socketpair()
        self.descriptor = self._theirs.fileno()

    def open(self) -> None:
        """Let the commands go on, and those started later too."""
        self._own.send(b"o")


def main(arguments: list[str]) -> int:
    """Import, wait, and become the command. Status 1 if the supervisor is gone."""
    descriptor, modules, command, *rest = arguments
    _import(modules.split(","))
    with socket.socket(fileno=int(descriptor)) as gate:
        if not gate.recv(1, socket.MSG_PEEK):
            return 1
    sys.argv = [command, *rest]
    runpy.run_module(command, run_name="__main__", alter_sys=True)
    return 0


def _import(modules: list[str]) -> None:
    """What is imported stays, and to look for garbage in it takes a tenth of the time."""
    gc.disable()
    # The setup reports settings that are wrong, in one line; the command meets the same error after that.
    with contextlib.suppress(Exception):
        django.setup()
        for module in modules:
            importlib.import_module(module)
    gc.enable()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
