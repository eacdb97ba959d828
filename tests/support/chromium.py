"""The browser of the browser tests: `python -m tests.support.chromium [--required]` installs it if it is missing.

Debian's package where packages may be installed (that is, as root), else the build that playwright downloads for the
current user.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys

SHELL = "chromium-headless-shell"
"""The same engine without the windows and services of a desktop browser, which take half of the CPU time of a test."""
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome")
MISSING = "Chromium is missing; `make chromium` tries to install it"
REQUIRED = "TEST_CHROMIUM_REQUIRED"
"""Set where browser tests must not be skipped, as in `.ci/run`."""
OWN = "from playwright.sync_api import sync_playwright as p\nwith p() as it: print(it.chromium.executable_path)"
INSTALL_SECONDS = 900


@functools.cache
def find() -> str | None:
    """A browser that runs: one of the system, or playwright's."""
    for path in filter(None, (shutil.which(name) for name in NAMES)):
        if runs(path):
            return path
    own = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, timeout=60).stdout.strip()
    return own if own and runs(own) else None


def runs(path: str) -> bool:
    """Whether it starts; playwright's lacks libraries on some systems."""
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def install() -> str:
    """Try to install one; returns what went wrong, "" for nothing."""
    problems = []
    for name, commands in ways():
        for command in commands:
            try:
                environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
                done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=INSTALL_SECONDS)
            except (OSError, subprocess.SubprocessError) as error:
                problems.append(f"{name}: {error}")
                break
            if done.returncode != 0:
                problems.append(f"{name}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
                break
        find.cache_clear()
        if find():
            return ""
    return "; ".join(problems) or "it was installed but does not run"


def ways() -> list[tuple[str, list[list[str]]]]:
    """How it can be installed here, the best first."""
    own = ("playwright", [[sys.executable, "-m", "playwright", "install", "chromium"]])
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return [own]
    install = [apt, "install", "-y", "-qq", "--no-install-recommends"]
    return [
        (f"apt-get {SHELL}", [[apt, "update", "-qq"], [*install, SHELL]]),
        ("apt-get chromium", [[*install, "chromium"]]),
        own,
    ]


def main(arguments: list[str]) -> int:
    """Exit status 0; with --required 1 if there is no browser in the end."""
    if find():
        return 0
    print("installing Chromium for the browser tests", flush=True)
    problem = install()
    if problem:
        print(f"Chromium cannot be installed ({problem}); the browser tests will be skipped", file=sys.stderr)
    return 1 if problem and "--required" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
