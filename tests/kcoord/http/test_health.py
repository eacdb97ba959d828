"""/livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import psycopg
import pytest

from kcoord.config import Config
from kcoord.database import counters, pool
from kcoord.database.clock import VirtualClock
from kcoord.database.counters import Counted
from kcoord.database.pool import Connection
from kcoord.door.http import health
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.core.days import DAY_MS
from offsets.journal.journal_days import JournalDays
from tests.support.api import Members, client_of
from tests.support.journal import drop_days
from tests.support.members import eventually

TICKED = (
    "insert into kcoord_timerheartbeat values (1, %s) on conflict (id) do update set ticked_at = excluded.ticked_at"
)


@pytest.fixture
def ticked(database: str, clock: VirtualClock) -> None:
    """The timers have just run."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(TICKED, [clock.now_ms()])


async def checks(status: int) -> dict[str, Any]:
    """What /readyz says, asked without a token."""
    async with client_of(None) as client:
        response = await client.get("/readyz")
    body: dict[str, Any] = response.json()
    assert response.status_code == status, body
    assert body["status"] == ("ready" if status == 200 else "not ready")
    found: dict[str, Any] = body["checks"]
    return found


@pytest.fixture
async def days(runtime: Runtime, database: str) -> AsyncIterator[None]:
    """The journal has its days."""
    await runtime.get(JournalDays).keep()
    yield
    drop_days(database)


async def test_not_ready_while_no_transaction_gets_a_connection(
    database: str, clock: VirtualClock, ticked: None
) -> None:
    """Reads have connections of their own, and were answered all the while."""
    small = Runtime(Config({"database.pool.size": 1, "database.acquire.timeout.ms": 200}), database, clock)
    await small.start()
    await small.notifications.wait_listening()
    begun, over = asyncio.Event(), asyncio.Event()

    async def hold(connection: Connection) -> None:
        begun.set()
        await over.wait()

    async def write(connection: Connection) -> None:
        await connection.execute("select 1")

    runtimes.use(small)
    try:
        holding = asyncio.create_task(small.db.transaction(hold))
        await begun.wait()
        assert (await checks(200))["database"]["ok"], "one that is slow says nothing yet"
        with pytest.raises(ProtocolError):
            await small.db.transaction(write)
        assert "transactions get no connection" in (await checks(503))["database"]["detail"]
        over.set()
        await holding
        assert (await checks(200))["database"]["ok"], "without that anybody writes"
    finally:
        runtimes.use(None)
        await small.stop()


async def test_ready(runtime: Runtime, ticked: None, days: None, clock: VirtualClock) -> None:
    clock.advance(15_000)
    assert await checks(200) == {
        "database": {"ok": True, "detail": "", "lag_ms": None},
        "migrations": {"ok": True, "detail": "", "lag_ms": None},
        "timers": {"ok": True, "detail": "", "lag_ms": 15_000},
        "listener": {"ok": True, "detail": "", "lag_ms": None},
    }


async def test_a_journal_without_today_is_a_note(
    runtime: Runtime, ticked: None, days: None, clock: VirtualClock, database: str
) -> None:
    clock.advance(4 * DAY_MS)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(TICKED, [clock.now_ms()])
    journal = (await checks(200))["journal"]
    assert journal["ok"]
    assert "no partition for today" in journal["detail"]
    await runtime.get(JournalDays).keep()
    assert "journal" not in await checks(200)


async def test_late_timers(runtime: Runtime, ticked: None, clock: VirtualClock) -> None:
    clock.advance(15_001)
    timers = (await checks(503))["timers"]
    assert (timers["ok"], timers["lag_ms"]) == (False, 15_001)


async def test_timers_that_never_ran(runtime: Runtime) -> None:
    assert "never" in (await checks(503))["timers"]["detail"]


async def test_no_listener(runtime: Runtime, ticked: None) -> None:
    await runtime.notifications.stop()
    runtime.notifications._listening.clear()
    assert not (await checks(503))["listener"]["ok"]


async def test_migrations_of_a_newer_release_are_told_and_served(
    runtime: Runtime, ticked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while servers are replaced one after the other."""
    expected = health.expected_migrations()
    last = max(one for one in expected if one[0] == "offsets")
    monkeypatch.setattr(health, "expected_migrations", lambda: expected - {last})
    migrations = (await checks(200))["migrations"]
    assert migrations["ok"]
    assert f"{'.'.join(last)} is unknown here" in migrations["detail"]


async def test_missing_migrations(runtime: Runtime, ticked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = health.expected_migrations() | {("groups", "9999_future")}
    monkeypatch.setattr(health, "expected_migrations", lambda: expected)
    migrations = (await checks(503))["migrations"]
    assert "groups.9999_future" in migrations["detail"]
    assert "migrate" in migrations["detail"]


async def test_no_database(runtime: Runtime) -> None:
    await runtime.db.close()
    found = await checks(503)
    assert not found["database"]["ok"]
    async with client_of(None) as client:
        assert (await client.get("/livez")).json() == {"status": "alive"}


FULL = psycopg.errors.DiskFull("could not extend file: No space left on device")


async def fail(connection: Connection) -> None:
    raise FULL


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A disk on which the probe finds no space."""
    monkeypatch.setattr(pool.Q, "take_space", "do $$ begin raise sqlstate '53100'; end $$")
    return monkeypatch


async def test_a_full_disk_is_told_as_soon_as_something_cannot_be_stored(
    runtime: Runtime, ticked: None, full_disk: pytest.MonkeyPatch
) -> None:
    assert "disk" not in await checks(200), "it is not looked for while all is well"
    with pytest.raises(ProtocolError, match="the disk of the database is full"):
        await runtime.db.transaction(fail)
    for _ in range(2):
        disk = (await checks(503))["disk"]
        assert disk["detail"] == "the disk of the database is full and nothing can be stored; free space on it"
    full_disk.undo()
    assert "disk" not in await checks(200), "there is space again"


async def test_a_full_disk_may_be_why_the_timers_are_late(runtime: Runtime, full_disk: pytest.MonkeyPatch) -> None:
    assert not (await checks(503))["disk"]["ok"]


async def test_the_probe_writes_to_the_disk(runtime: Runtime, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:

        def written() -> int:
            statement = "select temp_bytes from pg_stat_database where datname = current_database()"
            found = connection.execute(statement).fetchone()
            assert found is not None
            return int(found[0])

        before = written()
        assert await runtime.db.has_space()
        await runtime.db.close()  # a session reports what it wrote when it ends, or has been idle for a while
        await eventually(lambda: written() - before > 1_000_000, "a megabyte is written")


async def test_no_space_for_the_embedded_postgres(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    await runtime.db.close()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5 * 2**20))
    assert "is full (5 MiB left): free space on it" in (await checks(503))["database"]["detail"]


async def test_metrics_have_what_other_processes_counted(runtime: Runtime) -> None:
    async def work(connection: Connection) -> None:
        await counters.count(connection, Counted.OFFSETS_EXPIRED, 3)
        await counters.count(connection, Counted.OFFSETS_EXPIRED, 0)

    before = (await counters.read(runtime.db))[Counted.OFFSETS_EXPIRED]
    await runtime.db.transaction(work)
    async with client_of(None) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    assert f"kcoord_offsets_expired_total {before + 3}.0" in lines
    assert any(line.startswith("kcoord_transactions_abandoned_total ") for line in lines)
    assert any(line.startswith("kcoord_offsets_committed_total ") for line in lines)


async def test_metrics_need_no_token_and_name_nobody(members: Members, runtime: Runtime) -> None:
    await members.stable("very-secret-group")
    async with client_of(None) as client:
        response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    for expected in (
        'kcoord_commands_total{command="join",error="MEMBER_ID_REQUIRED"}',
        'kcoord_commands_total{command="sync",error="NONE"}',
        'kcoord_http_requests_total{method="POST",route="/v1/groups/{group_id}/join",status="200"}',
        'kcoord_http_request_seconds_bucket{le="+Inf",route="/v1/groups/{group_id}/sync"}',
        'kcoord_parked_requests{kind="join"} 0.0',
        'kcoord_group_transactions_total{outcome="committed"}',
    ):
        assert expected in response.text
    assert "very-secret-group" not in response.text


async def test_the_service_endpoints_are_read_only(api: httpx.AsyncClient) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        assert (await api.post(path)).status_code == 405
