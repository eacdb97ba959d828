"""Install packages into this environment: `python -m kcoord.stack.install service|spark|tests`.

uv does it, which pip brings; where that fails pip itself, and says so. Only the standard library is imported: nothing
else may be there yet. An installation that was interrupted is continued by the next one. Exit status 1: it failed, and
the last line says what to run.
"""

from __future__ import annotations

import ast
import errno
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from kcoord.spark_packages import MARKER

ROOT = Path(__file__).resolve().parents[2]
SPARK_LIST = "deploy/requirements-spark.txt"
UV = "0.13.9"
UV_OF_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""The settings of pip that uv does not read, under the names of its own."""
NO_SPACE = os.strerror(errno.ENOSPC)
LITTLE_BYTES = 32 * 1024 * 1024
"""A disk with less is taken for a full one."""

BEHIND = 10
"""The niceness of an installation beside a running service."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of requirements: its file, what it is called, the target of `make` that installs it."""

    file: str
    what: str
    target: str


LISTS: Mapping[str, Listed] = {
    "service": Listed("deploy/requirements-service.txt", "what the service needs", "up"),
    # The whole list: nothing of the service may get another version.
    "spark": Listed("requirements.txt", "the Spark packages", "spark"),
    "tests": Listed("tests/requirements.txt", "what the tests need", "venv"),
}


class NotInstalled(Exception):
    """The text is one line: why, and what to run."""


def main(arguments: list[str]) -> int:
    """Install one of the lists; returns the exit status."""
    name, *options = arguments
    beside = "--beside" in options
    try:
        if name == "spark":
            install_spark(beside=beside)
        else:
            install(LISTS[name], quiet=False)
    except NotInstalled as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def say(text: str) -> None:
    """One line for the person who waits."""
    print(text, flush=True)  # noqa: T201


def has_spark() -> bool:
    """Every Spark package is there in the pinned version, and no installation was interrupted."""
    return not (Path(sys.prefix) / MARKER).exists() and _has_pinned()


def _has_pinned() -> bool:
    return all(_version(package) == version for package, version in pins(ROOT / SPARK_LIST))


def pins(path: Path) -> Iterator[tuple[str, str]]:
    """(package, version) of each line of a list of requirements."""
    for line in path.read_text().splitlines():
        if found := re.fullmatch(r"([\w.-]+)(?:\[.*\])?==(\S+)", line.strip()):
            yield found[1], found[2]


def install_spark(*, beside: bool) -> None:
    """Install the Spark packages. `beside`: a service runs meanwhile. Raises NotInstalled."""
    if has_spark():
        return
    began = time.monotonic()
    if beside:
        os.nice(BEHIND)
        say("installing the Spark packages, about 900 MB; the service runs meanwhile, and Spark jobs wait for them")
    with _marked():
        install(LISTS["spark"], quiet=beside)
    say(f"Spark packages installed in {time.monotonic() - began:.0f} s: Spark jobs can run")


@contextmanager
def _marked() -> Iterator[None]:
    """Mark the environment; the mark stays if the block fails or is killed. Waits for another installation."""
    path = Path(sys.prefix) / MARKER
    with path.open("ab") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        os.set_inheritable(marker.fileno(), True)  # uv or pip may outlive this process
        path.touch()  # since when; and it is back if another installation has ended meanwhile
        yield
        path.unlink(missing_ok=True)


def install(listed: Listed, *, quiet: bool) -> None:
    """Install a list with uv, else with pip. `quiet`: show output only of a failure. Raises NotInstalled."""
    if _has_uv():
        uv = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "-r", listed.file]
        said = _run(uv, uv_environment(), quiet=quiet)
        if said is None:
            return
        say(f"uv could not install {listed.what} ({reason(said)}); pip installs it instead, which takes longer")
    said = _run([*_pip(), "--no-compile", "-r", listed.file], os.environ, quiet=quiet)
    if said is not None:
        raise NotInstalled(
            f"{listed.what} could not be installed: {reason(said)}; run `make {listed.target}` to continue"
        )


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]


def _has_uv() -> bool:
    """uv is there; installs it if it is not. Says so if that fails."""
    if _version("uv") == UV:
        return True
    said = _run([*_pip(), "--quiet", "--only-binary", ":all:", f"uv=={UV}"], os.environ, quiet=True)
    if said is not None:
        say(f"uv could not be installed ({reason(said)}); pip installs everything instead, which takes longer")
    return said is None


def uv_environment() -> dict[str, str]:
    """The environment of uv: it never downloads a Python, finds packages where pip does, and links or copies them."""
    found = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    shown = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    for name, value in settings_of_pip(shown).items():
        found.setdefault(name, value)
    cache = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "uv", "cache", "dir"], env=found, capture_output=True, text=True, check=False
    ).stdout.strip()
    if not _on_one_disk(Path(cache), Path(sys.prefix)):
        found.setdefault("UV_LINK_MODE", "copy")  # uv would warn that it cannot link
    return found


def settings_of_pip(listed: str) -> dict[str, str]:
    """What `pip config list` shows, as variables of uv."""
    found = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        variable = UV_OF_PIP.get(name.rpartition(".")[2])
        if variable and value.startswith(("'", '"')):
            found[variable] = " ".join(str(ast.literal_eval(value)).split())
    return found


def _on_one_disk(cache: Path, environment: Path) -> bool:
    while not cache.exists() and cache != cache.parent:
        cache = cache.parent
    return cache.stat().st_dev == environment.stat().st_dev


def reason(said: str) -> str:
    """Why an installer failed, from its output, in one line; "": it was shown as it came."""
    lines = [line.strip(" ×╰─▶├│") for line in said.splitlines() if line.strip()]
    if any(NO_SPACE in line for line in lines) or shutil.disk_usage(sys.prefix).free < LITTLE_BYTES:
        return f"{NO_SPACE}: {sys.prefix}, the cache or the directory for temporary files is full"
    worst = [line for line in lines if line.lower().startswith(("error", "failed", "caused"))]
    return ((worst or lines)[-1] if lines else "see above")[:300]


def _run(command: list[str], environ: Mapping[str, str], *, quiet: bool) -> str | None:
    """Run it; None if it succeeded, else its output, or "" if that was shown as it came."""
    stream = subprocess.PIPE if quiet else None
    done = subprocess.run(  # noqa: S603
        command,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=stream,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
        close_fds=False,
    )
    return None if done.returncode == 0 else done.stdout or ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
