"""Who listens must read: a connection that does not holds up CREATE and DROP DATABASE in the whole cluster."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import psycopg
import pytest

from tests.support.http_members import make_token
from tests.support.postgres import OwnPostgres, own_postgres
from tests.support.processes import start_beat, start_server, start_worker

pytestmark = [pytest.mark.processes, pytest.mark.whole("Postgres of its own and floods of notifications")]

PATIENCE_SECONDS = 90
CELERY_CHANNEL = "pgmq.q_kcoord.INSERT"
PAGES_CHANNEL = "kcoord_changed"
FLOOD = 2_000
"""Notifications of 7,000 bytes each: many times what the buffers of a socket hold."""
BLOCKED = "select pid from pg_stat_activity where wait_event = 'ClientWrite' and datname = current_database()"

LISTENERS = "select count(*) from pg_stat_activity where application_name = 'kcoord-listener'"


@pytest.fixture(scope="module")
def own() -> Iterator[OwnPostgres]:
    """What is looked at here belongs to a whole cluster."""
    with own_postgres() as postgres:
        yield postgres


def test_celery_leaves_no_notification_unread(own: OwnPostgres) -> None:
    with start_worker(own.conninfo) as worker, start_beat(own.conninfo), connected(own) as look:
        worker.wait_for_output(" ready.")
        ticks = wait_for(look, "select ticked_at from kcoord_timerheartbeat where id = 1")
        flood(look, CELERY_CHANNEL)
        flood(look, PAGES_CHANNEL)  # the worker's notifications reads these
        ticks = wait_for(look, f"select ticked_at from kcoord_timerheartbeat where ticked_at > {ticks}")
        assert create_and_drop(look)
        wait_for(look, "select true where pg_notification_queue_usage() < 0.0001")
        wait_for(look, f"select ticked_at from kcoord_timerheartbeat where ticked_at > {ticks}")
        assert look.execute(BLOCKED.encode()).fetchall() == []
        listening = "select query from pg_stat_activity where query ilike 'listen%' and application_name = ''"
        assert look.execute(listening.encode()).fetchall() == []


def test_celery_sends_no_notifications(own: OwnPostgres) -> None:
    with connected(own) as look:
        look.execute("delete from kcoord_timerheartbeat")
        with start_worker(own.conninfo) as worker, start_beat(own.conninfo):
            worker.wait_for_output(" ready.")
            wait_for(look, "select ticked_at from kcoord_timerheartbeat where id = 1")
        assert look.execute("select * from pgmq.list_notify_insert_throttles()").fetchall() == []
        triggers = "select tgname from pg_trigger where tgrelid = 'pgmq.q_kcoord'::regclass and not tgisinternal"
        assert look.execute(triggers.encode()).fetchall() == []


def test_the_listener_of_a_frozen_server_is_ended_by_the_others(own: OwnPostgres) -> None:
    token = make_token(own.conninfo)
    with start_server(own.conninfo) as frozen, ExitStack() as servers, connected(own) as look:
        frozen.wait_ready()
        only = "select min(pid) from pg_stat_activity where application_name = 'kcoord-listener' having count(*) = 1"
        stuck = wait_for(look, only)
        healthy = servers.enter_context(start_server(own.conninfo))
        healthy.wait_ready()
        listeners = (
            "select count(*) from pg_stat_activity where application_name = 'kcoord-listener' having count(*) = 2"
        )
        wait_for(look, listeners)
        frozen.send(signal.SIGSTOP)
        flood(look, PAGES_CHANNEL)
        # Not any blocked backend: on a busy machine that of the healthy server may be one for a moment.
        wait_for(look, f"select true from ({BLOCKED}) blocked (pid) where pid = {stuck}")
        assert create_and_drop(look), "it waits until the listener is ended, and then goes on"
        wait_for(look, f"select true where not exists (select from pg_stat_activity where pid = {stuck})")
        wait_for(look, "select true where pg_notification_queue_usage() < 0.0001")
        healthy.wait_for_output("stuck_listener_ended")
        frozen.send(signal.SIGCONT)
        frozen.wait_for_output("listener_lost")
        frozen.wait_ready()
        answer = httpx.get(f"{frozen.url}/v1/groups", headers={"Authorization": f"Bearer {token}"}, timeout=60)
        assert answer.status_code == 200


def connected(own: OwnPostgres) -> psycopg.Connection[tuple[object, ...]]:
    """A connection in autocommit whose statements end, whatever they wait for."""
    options = f"-c statement_timeout={PATIENCE_SECONDS}s"
    return psycopg.connect(own.conninfo, autocommit=True, options=options)


def flood(connection: psycopg.Connection[tuple[object, ...]], channel: str) -> None:
    for _ in range(10):  # many transactions: each commit makes the listeners read
        connection.execute(
            "select count(pg_notify(%s, number || repeat('x', 7000))) from generate_series(1, %s) number",
            [channel, FLOOD // 10],
        )


def create_and_drop(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Both wait until every backend of the cluster has taken notice. Raises QueryCanceled where one never does."""
    name = f"doomed_{secrets.token_hex(4)}"
    connection.execute(f"create database {name}".encode())
    connection.execute(f"drop database {name}".encode())
    return True


def wait_for(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> object:
    """The first column of a statement, as soon as it has a row."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        row = connection.execute(statement.encode()).fetchone()
        if row is not None:
            return row[0]
        assert time.monotonic() < deadline, f"no row in {PATIENCE_SECONDS} s: {statement}"
        time.sleep(0.05)
