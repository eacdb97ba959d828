"""docs/first-worker.md, pasted into a shell: two workers count every row once, and SIGTERM ends them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack

import psycopg
import pytest

from tests.processes.pages import SECONDS, commands, paste
from tests.support.processes import ROOT, start_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("pastes a page of the docs into a shell"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on the path"),
]

PAGE = (ROOT / "docs" / "first-worker.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "docs" / "examples" / "first_worker.py").read_text(encoding="utf-8")
ROWS = 1_000


def counted(block: str) -> int:
    """How many sign-ups the page's query has counted."""
    return sum(int(line.partition("|")[2]) for line in paste(block).splitlines())


def wait_for(query: str, count: int) -> None:
    deadline = time.monotonic() + SECONDS
    while (now := counted(query)) != count:
        assert now < count, "counted twice"
        assert time.monotonic() < deadline, f"counted {now} of {count}"
        time.sleep(0.2)


def test_code_of_the_page_is_that_of_the_example() -> None:
    parts = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(parts) == 2
    assert [part for part in parts if part not in EXAMPLE] == []


def test_the_page_counts_every_row_once(database: str, token: str) -> None:
    env = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 100}
    with start_server(database, env=env) as server, ExitStack() as cleanup:
        cleanup.callback(drop, database)
        server.wait_ready()
        topic, tables, worker, query = commands(PAGE, server, database, token)
        assert '"name":"signups"' in paste(topic)
        paste(tables)
        environment = {**os.environ, "KCOORD_URL": server.url}
        workers = [
            subprocess.Popen(
                ["sh", "-ec", worker.replace("PYTHONPATH", "exec env PYTHONPATH")], cwd=ROOT, env=environment
            )
            for _ in range(2)
        ]
        for process in workers:
            cleanup.callback(process.wait, 10)
            cleanup.callback(process.kill)
        wait_for(query, ROWS)
        workers[0].send_signal(signal.SIGTERM)
        assert workers[0].wait(SECONDS) == 0
        paste(tables)
        wait_for(query, 2 * ROWS)
        workers[1].send_signal(signal.SIGTERM)
        assert workers[1].wait(SECONDS) == 0
        assert "TOPIC_ALREADY_EXISTS" in paste(topic)


def drop(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("drop schema if exists first cascade")
