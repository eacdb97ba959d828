"""docs/queue.md, pasted into a shell: two workers send every mail once, one comes again, one is a dead letter."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
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

PAGE = (ROOT / "docs" / "queue.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "docs" / "examples" / "queue_worker.py").read_text(encoding="utf-8")


def sent(block: str) -> dict[int, tuple[int, int]]:
    """By attempt: how many mails were sent, and how many different ones."""
    rows = [[int(cell) for cell in line.split("|")] for line in paste(block).splitlines()]
    return {attempt: (mails, different) for attempt, mails, different in rows}


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)


def test_code_of_the_page_is_that_of_the_example() -> None:
    parts = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(parts) == 2
    assert [part for part in parts if part not in EXAMPLE] == []


def test_the_page_sends_every_mail_once(database: str, token: str) -> None:
    with start_server(database) as server, ExitStack() as cleanup:
        cleanup.callback(drop, database)
        server.wait_ready()
        topic, tables, worker, query, letters, replay = commands(PAGE, server, database, token)
        said = paste(topic)
        assert '"name":"mail"' in said
        assert '"share.release.backoff.ms"' in said
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
        until(lambda: sent(query) == {1: (200, 200), 2: (1, 1)}, lambda: sent(query))
        workers[0].send_signal(signal.SIGTERM)
        assert workers[0].wait(SECONDS) == 0
        paste(tables)
        until(lambda: sent(query) == {1: (400, 400), 2: (2, 2)}, lambda: sent(query))

        until(lambda: paste(letters).count('"cause":"rejected"') == 2, lambda: paste(letters))
        dead = re.findall(r'"id":(\d+)', paste(letters))
        variables = letters.rpartition("call ")[0]
        paste(variables + replay.replace("DEAD=1\n", f"DEAD={dead[0]}\n"))
        until(lambda: sent(query) == {1: (401, 401), 2: (2, 2)}, lambda: sent(query))
        assert paste(letters).count('"cause":"rejected"') == 1

        workers[1].send_signal(signal.SIGTERM)
        assert workers[1].wait(SECONDS) == 0
        assert "TOPIC_ALREADY_EXISTS" in paste(topic)


def drop(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("drop schema if exists queue cascade")
