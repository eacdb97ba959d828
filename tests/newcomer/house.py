"""A copy of the working tree in an awkward place, with the service running in it as `make up` starts it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ROOT, Running, free_port

DOCUMENTED = "127.0.0.1:8000"
SCRIPT_SECONDS = 120.0
STOP_SECONDS = 30.0


NOBODY = 65_534
"""The user and the group that every Linux has, and that own nothing."""


@dataclass(frozen=True)
class House:
    """Where the newcomer works. `user`: None, that of the tests."""

    directory: Path
    running: Running
    user: int | None

    def paste(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run commands as they stand, but for the port, which may be taken."""
        commands = script.replace(DOCUMENTED, f"127.0.0.1:{self.running.port}")
        return subprocess.run(
            ["sh", "-e", "-c", commands],
            cwd=self.directory,
            env=environment(self.directory.parent, self.running.port),
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
        )


def environment(home: Path, port: int | None) -> dict[str, str]:
    """That of a shell without settings of the service, but for the port, or of Python."""
    ours = ("KCOORD_", "DJANGO_", "PYTHON", "VIRTUAL_ENV")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**inherited, "HOME": str(home), "KCOORD_PORT": str(port)}


def may_run(python: str, user: int) -> bool:
    """Whether a user may run this interpreter: that of the tests may be in root's own directory."""
    try:
        return subprocess.run([python, "-c", ""], user=user, group=user, extra_groups=[]).returncode == 0
    except OSError:
        return False


def ordinary_python() -> str | None:
    """A Python of the same version that any user may run; None if there is no such Python, or without root."""
    if os.geteuid() != 0:
        return None
    name = f"python3.{sys.version_info.minor}"
    found = [sys.executable, *filter(None, (shutil.which(name, path=path) for path in ("/usr/local/bin", "/usr/bin")))]
    return next((python for python in found if may_run(python, NOBODY)), None)


def copy(directory: Path, python: str | None) -> None:
    """What a clone contains, with the packages that are installed already."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
    environment = directory / ".venv"
    if python is None:
        environment.symlink_to(sys.prefix)
        return
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    packages = next(environment.glob("lib/python3*/site-packages"))
    (packages / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (environment / ".runtime").touch()
    for path in (directory.parent, *directory.parent.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@contextmanager
def moved_in() -> Iterator[House]:
    """The service is ready in a new directory; at the end it is stopped and the directory deleted."""
    # Not pytest's own directory: each run of pytest takes the rights of others from it, and the newcomer, or the user
    # that runs Postgres for root, is another one.
    parent = Path(tempfile.mkdtemp(prefix="kcoord-newcomer-"))
    parent.chmod(0o755)
    directory = parent / "neuer Ordner für Übungen" / "kcoord"
    directory.mkdir(parents=True)
    python = ordinary_python()
    user = None if python is None else NOBODY
    copy(directory, python)
    port = free_port()
    with (parent / "output").open("wb") as output:
        popen = subprocess.Popen(
            ["make", "up"],
            cwd=directory,
            env=environment(directory.parent, port),
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    running = Running("up", popen, parent, port)
    try:
        running.wait_ready(120, timers=True)
        yield House(directory, running, user)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(popen.pid, signal.SIGINT)
        running.wait(STOP_SECONDS)
        shutil.rmtree(parent, ignore_errors=True)
