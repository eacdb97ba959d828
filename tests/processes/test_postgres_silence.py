"""Postgres stops saying anything with its connections open: 503 after a while, recovery, and a server that can stop."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from kcoord.database import liveness
from kcoord.database.django_backend.base import CONNECT_SECONDS
from tests.support.accounts import PASSWORD, USER, make_user
from tests.support.http_members import make_token
from tests.support.postgres import OwnPostgres, own_postgres
from tests.support.processes import Running, start_server, wait_until_gone

pytestmark = [pytest.mark.processes, pytest.mark.whole("waits until silence is believed, again and again")]

ANSWER_SECONDS = 20.0
"""By then a request must be answered: silence is asked about after 4 s, and believed after 2.5 more."""
PAGE_SECONDS = 8.0
"""By then a page must say that the database is away."""


@pytest.fixture(scope="module")
def silent() -> Iterator[OwnPostgres]:
    """A migrated database on a server that nobody else uses."""
    with own_postgres() as own:
        yield own


@contextmanager
def running_on(silent: OwnPostgres) -> Iterator[Running]:
    with start_server(silent.conninfo, env={"KCOORD_DATABASE_ACQUIRE_TIMEOUT_MS": 1_000}) as running:
        running.wait_ready()
        yield running


@pytest.fixture(scope="module")
def server(silent: OwnPostgres) -> Iterator[Running]:
    with running_on(silent) as running:
        yield running


@contextmanager
def client_of(server: Running, silent: OwnPostgres) -> Iterator[httpx.Client]:
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


def test_requests_are_answered_and_the_service_recovers(silent: OwnPostgres, server: Running) -> None:
    with client_of(server, silent) as client:
        with silent.frozen():
            for _ in range(2):
                refused = join(client)
                assert (refused.status_code, refused.json()["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
                assert "retry-after" in refused.headers
        for _ in range(30):
            answer = join(client)
            if answer.status_code == 409:
                return
            assert answer.status_code == 503
    raise AssertionError(answer.text)


def test_server_stops_while_requests_wait_for_postgres(silent: OwnPostgres) -> None:
    with running_on(silent) as server, client_of(server, silent) as client, silent.frozen():
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/groups/g/heartbeat", json={"member_id": "m", "generation_id": 1}, timeout=1.0)
        server.send(signal.SIGTERM)
        wait_until_gone(server.pid)


@pytest.fixture(scope="module")
def person(silent: OwnPostgres, server: Running) -> Iterator[httpx.Client]:
    """Somebody who has signed in."""
    make_user(silent.conninfo)
    with httpx.Client(base_url=server.url, timeout=30) as client:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/sign-in").text)
        assert token is not None
        form = {"username": USER, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        assert client.post("/sign-in", data=form).status_code == 302
        yield client


def test_no_wait_of_a_page_is_longer_than_promised() -> None:
    """Whichever wait the silence hits; what follows it fails at once or is not tried."""
    pools = liveness.UNRESPONSIVE_SECONDS * (1 + 1 / liveness.LOOKS) + liveness.ANSWER_SECONDS
    assert max(CONNECT_SECONDS, pools) <= PAGE_SECONDS - 1, "a second is left for the rest of the request"


def test_pages_and_admin_say_in_time_that_the_database_is_silent(silent: OwnPostgres, person: httpx.Client) -> None:
    paths = ("/groups", "/admin/", "/admin/groups/group/", "/live", "/sign-in")
    with silent.frozen():
        for path in paths:
            began = time.monotonic()
            refused = person.get(path)
            assert refused.status_code == 503, path
            assert time.monotonic() - began < PAGE_SECONDS, path
            assert '<meta http-equiv="refresh" content="5">' in refused.text
            assert "script-src 'self';" in refused.headers["content-security-policy"] or path.startswith("/admin")
        asked = person.get("/groups", headers={"Accept": "application/json"})
        assert (asked.headers["content-type"], asked.json()["error"]) == (
            "application/problem+json",
            "COORDINATOR_NOT_AVAILABLE",
        )
        assert "retry-after" in asked.headers
    for path in paths[:3]:
        assert until_served(person, path) == 200


def until_served(client: httpx.Client, path: str) -> int:
    """The first status that is not 503."""
    for _ in range(10):
        status = client.get(path).status_code
        if status != 503:
            return status
        time.sleep(0.5)
    return 503


def test_a_page_that_waits_for_an_answer_is_told_too(silent: OwnPostgres, person: httpx.Client) -> None:
    """Postgres falls silent when the request has its connection: here it waits for a lock on the sessions."""
    with (
        psycopg.connect(silent.conninfo) as holder,
        psycopg.connect(silent.conninfo, autocommit=True) as looker,
        ThreadPoolExecutor(1) as pool,
    ):
        holder.execute("lock table django_session")
        asking = pool.submit(person.get, "/groups")
        until = time.monotonic() + ANSWER_SECONDS
        while not looker.execute("select from pg_locks where not granted").fetchall():
            assert time.monotonic() < until
            time.sleep(0.02)
        with silent.frozen():
            began = time.monotonic()
            assert asking.result(ANSWER_SECONDS).status_code == 503
            assert time.monotonic() - began < PAGE_SECONDS
    assert until_served(person, "/groups") == 200


def test_a_page_that_waits_for_a_server_that_lives_is_not_ended(silent: OwnPostgres, person: httpx.Client) -> None:
    with psycopg.connect(silent.conninfo) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("lock table django_session")
        asking = pool.submit(person.get, "/groups")
        with pytest.raises(TimeoutError):
            asking.result(PAGE_SECONDS)
        holder.rollback()
        assert asking.result(ANSWER_SECONDS).status_code == 200
