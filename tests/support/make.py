"""What `make` would run. The tests themselves may be run by `make`, which tells its children so."""

from __future__ import annotations

import os
import subprocess

from tests.support.database import ROOT


def shown_by_make(*words: str) -> str:
    """The commands of a target, not run. `words`: the target and variables."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-n", *words], cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return done.stdout
