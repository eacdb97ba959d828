"""Many short lives of one program: real processes, forked from one that has imported what they need already.

    with Nursery(program, imports) as nursery:
        life = nursery.start("argument")
        life.kill()

A life runs the program's file as it is. It costs some milliseconds instead of the second that starting Python and
importing takes, so a test can end hundreds of them.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.support.processes import Running, is_alive, start, wait_until_gone

BORN_SECONDS = 10.0


@dataclass(frozen=True)
class Life:
    """One process. `output`: where it writes."""

    pid: int
    output: Path

    @property
    def is_over(self) -> bool:
        """It has ended, by itself or not."""
        return not is_alive(self.pid)

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        wait_until_gone(self.pid)


class Nursery:
    """Starts lives of one program. Leaving the `with` block ends all of them."""

    def __init__(self, program: Path, imports: Sequence[str], env: dict[str, object]) -> None:
        self._program = program
        self._imports = imports
        self._env = env
        self._count = 0

    def __enter__(self) -> Nursery:
        self._parent: Running = start(
            "nursery", ["-m", "tests.support.lives", str(self._program), *self._imports], None, self._env
        )
        self._orders = self._parent.directory / "orders"
        os.mkfifo(self._orders)
        self._parent.wait_for_output("ready\n")
        self._pipe = self._orders.open("w")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pipe.close()
        self._parent.close()

    def start(self, *arguments: str) -> Life:
        """A life of the program with these arguments."""
        self._count += 1
        output = self._parent.directory / f"life-{self._count}"
        self._pipe.write(json.dumps([str(output), *arguments]) + "\n")
        self._pipe.flush()
        born = output.with_suffix(".pid")
        deadline = time.monotonic() + BORN_SECONDS
        while not born.exists():
            assert time.monotonic() < deadline, self._parent.report("gave no birth")
            time.sleep(0.001)
        return Life(int(born.read_text()), output)


def live(program: str, output: Path, arguments: list[str]) -> None:
    """The life itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv = [program, *arguments]
    status = 1
    try:
        runpy.run_path(program, run_name="__main__")
        status = 0
    except BaseException:  # noqa: BLE001 - told to whoever reads the output
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(program: str, imports: list[str]) -> None:
    """Fork for every line that comes in, until there is nobody left to write one."""
    for name in imports:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by themselves
    orders = Path(os.environ["KCOORD_DATA_DIR"]).parent / "orders"
    print("ready", flush=True)
    while not orders.exists():
        time.sleep(0.001)
    with orders.open() as lines:
        for line in lines:
            output, *arguments = json.loads(line)
            child = os.fork()
            if child == 0:
                live(program, Path(output), arguments)
            written = Path(output).with_suffix(".tmp")
            written.write_text(str(child))
            written.rename(Path(output).with_suffix(".pid"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
