"""An account to sign in with on a running server."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.database import ROOT
from tests.support.processes import Running, environment

USER, PASSWORD = "mara", "correct horse battery staple"
MAKE_USER = f"""
import django; django.setup()
from django.contrib.auth import get_user_model
get_user_model().objects.create_superuser({USER!r}, password={PASSWORD!r})
"""


def make_user(server: Running, database: str) -> None:
    """Make the account, which may do everything."""
    subprocess.run(
        [sys.executable, "-c", MAKE_USER],
        cwd=ROOT,
        env=environment(database, server.directory / "data", {"PATH": os.environ["PATH"]}),
        check=True,
        timeout=60,
    )
