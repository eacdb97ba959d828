"""Pages of the docs that continue after `make up`: their blocks, pasted into a shell against a server of a test."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support.processes import ROOT, Running

SECONDS = 60.0


def commands(page: str, server: Running, conninfo: str, token: str) -> list[str]:
    """The blocks of a page after `make up`, for this server and database."""
    start, *blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert start == "make up\n"
    replaced = {
        "$(sed -n 's/^api_token=//p' .kcoord/credentials)": token,
        "$(cat .kcoord/conninfo)": conninfo,
        "http://127.0.0.1:8000": server.url,
        ".venv/bin/python": sys.executable,
    }
    for old, new in replaced.items():
        assert any(old in block for block in blocks), old
        blocks = [block.replace(old, new) for block in blocks]
    return blocks


def paste(block: str) -> str:
    """What the commands print, which succeed."""
    done = subprocess.run(["sh", "-ec", block], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
