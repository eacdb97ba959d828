"""One address for all connections: none of its options is lost on the way to Django, the pools, the queue or Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper
from kombu import Connection
from psycopg.conninfo import conninfo_to_dict

from kcoord.config import Config
from kcoord.database import queue_transport
from kcoord.database.address import django_database, libpq_conninfo
from kcoord.database.pool import Database
from offsets.spark.postgres import without_secrets

URLS = [
    "postgresql://ann:a%20b%27c%5Cd%40@db.example:5433/kcoord?sslmode=verify-full&sslrootcert=%2Fetc%2Four%20ca.pem",
    "postgresql://ann@db1.example:5433,db2.example:5434/kcoord?target_session_attrs=read-write&connect_timeout=4",
    "postgresql://ann@db.example/kcoord?passfile=%2Fhome%2Fann%2F.pgpass&options=-c%20search_path%3Dapp",
    "postgresql:///kcoord?host=%2Ftmp%2Fa%20b&user=postgres",
]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools are created but not opened."""
    monkeypatch.setattr(queue_transport.ConnectionPool, "_open", lambda self: None)


def queue_conninfo(conninfo: str) -> dict[str, object]:
    """What the connections of Celery's queue are opened with."""
    options = {"conn_string": conninfo, "pool_size": 2, "visibility_timeout": 300}
    transport = queue_transport.Transport.__new__(queue_transport.Transport)
    transport.client = SimpleNamespace(transport_options=options)
    return dict(conninfo_to_dict(transport._create_pgmq_client().pool.conninfo))


@pytest.mark.parametrize("url", URLS)
def test_every_connection_has_every_option(url: str, no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "")
    wanted = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    conninfo = libpq_conninfo(url, Path("/nowhere"))
    assert conninfo_to_dict(conninfo) == wanted
    assert queue_conninfo(conninfo) == wanted
    assert conninfo_to_dict(Database(conninfo, Config({}))._writers.conninfo) == wanted
    of_django = DatabaseWrapper({**SETTINGS, **django_database(conninfo)}).get_connection_params()
    assert {name: str(of_django[name]) for name in wanted} == wanted
    assert conninfo_to_dict(without_secrets(conninfo)) == {k: v for k, v in wanted.items() if k != "password"}


SETTINGS = {"TIME_ZONE": None, "CONN_HEALTH_CHECKS": False, "AUTOCOMMIT": True, "ATOMIC_REQUESTS": False}
"""What Django adds to an entry of DATABASES."""


def test_a_url_without_a_database_means_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGDATABASE", raising=False)
    monkeypatch.setenv("PGUSER", "bea")
    for url, name in (("postgresql://ann@db.example", "ann"), ("postgresql://db.example", "bea")):
        conninfo = libpq_conninfo(url, Path("/nowhere"))
        assert conninfo_to_dict(conninfo)["dbname"] == name
        assert django_database(conninfo)["NAME"] == name
    monkeypatch.setenv("PGDATABASE", "other")
    assert conninfo_to_dict(libpq_conninfo("postgresql://ann@db.example", Path("/nowhere")))["dbname"] == "other"


def test_the_queue_works_in_a_socket_directory_with_a_space(database: str, tmp_path: Path) -> None:
    parts = conninfo_to_dict(database)
    place = tmp_path / "a b"
    place.symlink_to(str(parts["host"]))
    conninfo = libpq_conninfo(
        f"postgresql:///{parts['dbname']}?user={parts['user']}&host={quote(str(place))}", tmp_path
    )
    options = {"conn_string": conninfo, "pool_size": 1, "visibility_timeout": 300, "polling_interval": 0.05}
    options["wait_time_seconds"] = 0
    with Connection(f"{queue_transport.SCHEME}://", transport_options=options) as connection:
        queue = connection.SimpleQueue("of_this_test")
        queue.put({"n": 1})
        assert queue.get(timeout=5).payload == {"n": 1}
        queue.close()
