"""TLS that the address demands holds for every connection: the pools, Django's, the queue's, Spark's, the listener."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from offsets.spark.postgres import connect
from tests.support.processes import start_beat, start_server, start_worker
from tests.support.tls import TlsProxy, tls_proxy

pytestmark = [pytest.mark.processes, pytest.mark.whole("the same service through another door of Postgres")]


@pytest.fixture
def proxy(database: str) -> Iterator[TlsProxy]:
    with tempfile.TemporaryDirectory(prefix="kcoord tls ") as directory, tls_proxy(database, Path(directory)) as proxy:
        yield proxy


@pytest.fixture
def conninfo(database: str, proxy: TlsProxy) -> str:
    """The database by name, with a certificate that must be right."""
    parts = conninfo_to_dict(database)
    return make_conninfo(
        host="localhost",
        port=proxy.port,
        dbname=parts["dbname"],
        user=parts["user"],
        password="a word's space",
        sslmode="verify-full",
        sslrootcert=str(proxy.certificate),
        target_session_attrs="read-write",
    )


def test_server_worker_and_beat_use_it_for_all_connections(conninfo: str, proxy: TlsProxy) -> None:
    with start_server(conninfo) as server, start_worker(conninfo), start_beat(conninfo):
        server.wait_ready(timers=True)
    connect(conninfo).close()
    assert proxy.plain == []
    # Django's own connections have no name.
    assert {"kcoord", "kcoord-listener", "kcoord-queue", "kcoord-spark", ""} <= set(proxy.encrypted)


def test_a_server_with_another_certificate_is_refused(conninfo: str, database: str) -> None:
    with tempfile.TemporaryDirectory() as directory, tls_proxy(database, Path(directory)) as other:
        elsewhere = make_conninfo(conninfo, port=other.port)
        with start_worker(elsewhere, env={"PGCONNECT_TIMEOUT": 2}) as worker:
            worker.wait_for_output("certificate verify failed")
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(elsewhere)
    assert other.encrypted == []
