"""Fixtures: a real Postgres for the run, a database and a running service for each test that asks for one.

The server is started once per run (shared by all xdist workers), its template database is migrated once, and each
worker works in a clone. Tests commit; `database` empties the tables of the service before the test.
"""

from __future__ import annotations

import gc
import logging
import os
import secrets
import signal
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import certifi
import httpx
import psycopg
import pytest
from hypothesis import settings as hypothesis_settings
from whitenoise.middleware import WhiteNoiseMiddleware

from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from tests.support import chromium as chromiums
from tests.support.database import FILES_VARIABLE, cloned_database, embedded_server, make_template
from tests.support.django_settings import set_for_run
from tests.support.fixtures import client_with, job, members, other, service, topic, topics  # noqa: F401 - fixtures
from tests.support.scheduling import NICENESS, Role, Scheduling, role_of
from tests.support.selection import (  # noqa: F401 - hooks
    LEFT_OUT,
    pytest_collection_modifyitems,
    pytest_deselected,
    pytest_sessionfinish,
    pytest_testnodedown,
    write_summary,
)

# How long an example takes says nothing on a machine that others use as well.
hypothesis_settings.register_profile("kcoord", deadline=None)
hypothesis_settings.register_profile("kcoord in short", deadline=None, max_examples=30)
hypothesis_settings.load_profile("kcoord")

ADMIN_VARIABLE = "TEST_DATABASE_FILE"
"""The file with the address of the server that the workers share."""
START_SECONDS = 180.0
START_MS = 1_700_000_000_000
"""Where virtual time begins."""
FEW_STARTS = 8
"""Tests with Spark for which it is not worth while to write its classes down first."""

TABLES = (
    "groups_group", "groups_member", "groups_consumermember", "groups_pendingmember", "groups_assignment",
    "groups_event", "groups_topic", "groups_watermark", "groups_groupconfigoverride", "groups_coordinatornode",
    "groups_grouplabels", "groups_coordinatorpartition", "groups_clientsoftware", "groups_partitionchange",
    "groups_generationtopics", "offsets_committedoffset", "offsets_reconcilefinding", "kcoord_apitoken",
    "offset_commit_log", "offsets_producer", "offsets_pendingoffset", "offsets_retentionpin", "offsets_offsetplan",
    "offsets_plannedoffset", "offsets_watermarksample", "offsets_lagsample", "offsets_lagpeak", "offsets_grouplag",
    "offsets_topiclag", "offsets_topictotal", "offsets_deletedtopic", "offsets_sparkrun", "offsets_archivedday",
    "offsets_groupverdict", "offsets_verdictrun", "offsets_activity", "offsets_alert", "offsets_alertmessage",
    "offsets_alertreceiver", "offsets_alertrule", "offsets_sharepartition", "offsets_sharelock", "offsets_shareretry",
    "offsets_sharedead", "offsets_shareended", "kcoord_accessrule", "kcoord_timerheartbeat", "kcoord_quota",
    "kcoord_throttled", "kcoord_auditrecord", "kcoord_auditpending", "kcoord_counter",
)  # fmt: skip
PEOPLE = (
    "auth_user", "auth_user_groups", "auth_user_user_permissions", "django_session", "django_admin_log",
    "frontend_signinattempt", "frontend_savedview", "frontend_provideridentity",
)  # fmt: skip
"""Tables whose numbers go on: a process remembers people by them."""
_EMPTIED = """
do $$
declare
    listed constant regclass[] := '{%s}';
    people constant regclass[] := '{%s}';
    small constant int := 16 * 8192;
    used record;
    large text;
begin
    -- Truncating makes new files for a table and its indexes, and plans are made again: 53 ms for all of these, before
    -- each test. Most tests write a few rows into some of them. Without triggers (the audit has one against it), and so
    -- without the cascades of foreign keys: what they would reach is listed.
    set local session_replication_role = replica;
    for used in
        select id::text as name, pg_relation_size(id) > small as is_large
        from unnest(listed || people) as named (name)
        cross join lateral (select name as id union all select relid from pg_partition_tree(name) where isleaf) l
        where pg_relation_size(id) > 0
    loop
        if used.is_large then
            large := concat_ws(', ', large, used.name);
        else
            execute 'delete from only ' || used.name;
        end if;
    end loop;
    if large is not null then
        execute 'truncate ' || large || ' restart identity cascade';
    end if;
    perform setval(seqrelid, seqstart, false)
    from pg_depend
    join pg_sequence on seqrelid = objid
    where refobjid = any(listed) and pg_sequence_last_value(seqrelid) is not null;
end
$$
"""
_CHAIN = """
update kcoord_auditchain
set seq = 0, hash = decode(repeat('00', 32), 'hex'), removed_through = 0,
    removed_hash = decode(repeat('00', 32), 'hex'), removed = 0, removed_at = null
"""


def emptied(tables: Iterable[str], people: Iterable[str]) -> str:
    """A statement that empties tables; the ids of `tables` begin again at 1, those of `people` go on."""
    return _EMPTIED % (",".join(tables), ",".join(people))


EMPTIED = f"{emptied(TABLES, PEOPLE)};{_CHAIN}"
"""Empties the tables of the service."""

TOKEN = """
with token as (
    insert into kcoord_apitoken (name, digest, prefix, created_at)
    select %s, %s, %s, extract(epoch from now()) * 1000
    returning id
)
insert into kcoord_accessrule (token_id, effect, operation, resource, pattern, name)
select token.id, 'allow', rule.operation, rule.resource, 'prefix', ''
from token cross join unnest(%s::text[], %s::text[]) as rule (operation, resource)
"""


def _read_authorities_once() -> None:
    """httpx reads all certificate authorities for each client, also for those that speak http alone."""
    create = ssl.create_default_context
    bundles = {certifi.where(), os.environ.get("SSL_CERT_FILE")}
    of_httpx: dict[str, ssl.SSLContext] = {}

    def shared(*arguments: Any, **given: Any) -> ssl.SSLContext:
        file = given.get("cafile")
        if arguments or given.keys() != {"cafile"} or file not in bundles:
            return create(*arguments, **given)
        if file not in of_httpx:
            of_httpx[file] = create(cafile=file)
        return of_httpx[file]

    ssl.create_default_context = shared


def _look_for_static_files_once() -> None:
    """WhiteNoise looks at each of 240 files again for each client of Django."""
    look = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Any] = {}

    def add(middleware: Any) -> None:
        if not found:
            look(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = add


def pytest_configure(config: pytest.Config) -> None:
    """Start the server in the process that starts the workers, so that they share it."""
    gc.disable()  # until the tests are collected: what is made by then stays
    _read_authorities_once()
    _look_for_static_files_once()
    if config.option.markexpr == LEFT_OUT:
        hypothesis_settings.load_profile("kcoord in short")
    # Spark's Java lives for seconds here: what its optimizing compiler would save later costs more than it is worth.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    if hasattr(config, "workerinput"):
        if role_of(config.workerinput["workerid"], config.workerinput["workercount"]) is Role.SPARE:
            os.nice(NICENESS)
        return
    if config.option.collectonly:
        return
    if not config.pluginmanager.hasplugin("xdist") or not config.option.numprocesses:
        return
    gc.enable()  # its workers collect
    directory = tempfile.TemporaryDirectory(prefix="kcoord-run-")
    told = Path(directory.name) / "conninfo"
    os.environ[ADMIN_VARIABLE] = str(told)
    os.environ[FILES_VARIABLE] = directory.name
    stack, starting = embedded_server(), ThreadPoolExecutor(1)
    started = starting.submit(_start_shared, stack, told)

    def stop() -> None:
        with directory:
            started.result()
            stack.__exit__(None, None, None)

    config.add_cleanup(stop)


def _start_shared(stack: AbstractContextManager[str], told: Path) -> None:
    """Start the server while the workers import and collect, and write where it is, or why it is nowhere."""
    try:
        admin = stack.__enter__()
        make_template(admin)
    except Exception as error:
        _write_whole(told.with_suffix(".failed"), repr(error))
        raise
    _write_whole(told, admin)


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.rename(path)


def _shared_server(told: Path) -> str:
    """Where the server of this run is, as soon as it can be used."""
    deadline = time.monotonic() + START_SECONDS
    while not told.exists():
        failed = told.with_suffix(".failed")
        assert not failed.exists(), failed.read_text()
        assert time.monotonic() < deadline, f"no Postgres after {START_SECONDS:.0f} s"
        time.sleep(0.05)
    return told.read_text()


@pytest.fixture(autouse=True)
def _process_is_left_as_found() -> Iterator[None]:
    """The handler of SIGTERM and levels of loggers belong to the process, which runs other tests afterwards."""
    before = _of_the_process()
    yield
    assert _of_the_process() == before


def _of_the_process() -> dict[str, Any]:
    loggers = {name: logging.getLogger(name).level for name in ("kcoord", "kcoord.client")}  # a service sets the root's
    handler = signal.getsignal(signal.SIGTERM)
    return {**loggers, "SIGTERM": handler, "disabled": logging.root.manager.disable}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let the tests that mostly wait run beside those that compute."""
    if config.option.dist != "loadgroup":
        return None
    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """What was collected stays, so searches for garbage need not visit it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """The last lines say where the time went, and what was left out, also for want of a browser."""
    yield
    write_summary(terminalreporter)
    skipped = [report for report in terminalreporter.getreports("skipped") if chromiums.MISSING in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"browser tests skipped: {len(skipped)}. {chromiums.MISSING}", yellow=True)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where Chromium is; `make test` installs it if it can."""
    found = chromiums.find()
    if not found and os.environ.get(chromiums.REQUIRED):
        pytest.fail(f"{chromiums.MISSING}, and {chromiums.REQUIRED} is set")
    return found or pytest.skip(chromiums.MISSING)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Conninfo of the run's server, with the migrated template on it."""
    shared = os.environ.get(ADMIN_VARIABLE)
    if shared:
        yield _shared_server(Path(shared))
        return
    with embedded_server() as admin:
        make_template(admin)
        yield admin


@pytest.fixture(scope="session")
def spark_classes(request: pytest.FixtureRequest, postgres: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Spark's Java, also that of other processes, starts in half the time."""
    from tests.offsets.spark.classes import share

    starts = sum("spark_classes" in getattr(item, "fixturenames", ()) for item in request.session.items)
    with cloned_database(postgres) as conninfo:
        share(conninfo, tmp_path_factory.mktemp("classes"), make=starts >= FEW_STARTS)


@pytest.fixture(scope="session")
def worker_database(postgres: str) -> Iterator[str]:
    """Conninfo of this worker's database."""
    with cloned_database(postgres) as conninfo:
        yield conninfo


@pytest.fixture(scope="session")
def django_db_setup(worker_database: str) -> Iterator[None]:
    """pytest-django uses the worker's database as it is."""
    from django.conf import settings
    from django.db import connections

    from kcoord.database.address import django_database

    # With the embedded Postgres there is an archive beside it, unless a test names another.
    set_for_run("KCOORD", settings.KCOORD.override({"archive.path": ""}))
    set_for_run("CONNINFO", worker_database)
    connections.close_all()
    connections.settings["default"].update(django_database(worker_database))
    connections["default"].settings_dict.update(django_database(worker_database))
    yield
    connections.close_all()


class EmptyTables:
    """Empties the tables of the service, in one session: a new one costs more than the statement."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self.connection = psycopg.connect(conninfo, autocommit=True)

    def __call__(self) -> None:
        try:
            self.connection.execute(EMPTIED)
        except psycopg.OperationalError:
            if not self.connection.closed:
                raise
            self.connection = psycopg.connect(self._conninfo, autocommit=True)  # a test ended all sessions
            self.connection.execute(EMPTIED)


@pytest.fixture(scope="session")
def empty_tables(worker_database: str) -> Iterator[EmptyTables]:
    """What empties the tables of this worker's database."""
    emptying = EmptyTables(worker_database)
    yield emptying
    emptying.connection.close()


@pytest.fixture
def database(
    worker_database: str,
    empty_tables: EmptyTables,
    django_db_setup: None,
    django_db_blocker: pytest.FixtureRequest,
) -> Iterator[str]:
    """Conninfo of an empty, migrated database. What the test writes is committed."""
    empty_tables()
    with django_db_blocker.unblock():
        yield worker_database


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time for the whole stack."""
    return VirtualClock(START_MS)


@pytest.fixture
def config() -> Config:
    """The default settings, but waiters do not look again by themselves: a wake-up that is lost would go unnoticed."""
    return Config({"notifications.repair.interval.ms": 60_000})


@pytest.fixture
async def runtime(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[object]:
    """A running service in virtual time."""
    from kcoord.process import runtime as runtimes
    from tests.support.steady import wait_out_stalls

    running = runtimes.Runtime(config, database, clock)
    wait_out_stalls(running)
    await running.start()
    await running.notifications.wait_listening()
    runtimes.use(running)
    yield running
    runtimes.use(None)
    await running.stop()


@pytest.fixture
def token(database: str, empty_tables: EmptyTables) -> str:
    """The secret of a token that may do everything, stored by one statement: most tests need one."""
    from kcoord.access.tokens import ALL_RULES, digest, generate_secret, prefix

    secret = generate_secret()
    rules = [(rule.operation, rule.resource) for rule in ALL_RULES]
    empty_tables.connection.execute(
        TOKEN, [f"test-{secrets.token_hex(4)}", digest(secret), prefix(secret), *map(list, zip(*rules, strict=True))]
    )
    return secret


@pytest.fixture
async def api(runtime: Any, token: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the real application in process, with a token that may do everything."""
    from tests.support.api import client_of
    from tests.support.told import told

    await told(runtime)  # of the token: being told later would make the process look it up again
    async with client_of(token) as client:
        yield client
