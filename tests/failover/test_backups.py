"""Backups, restored as docs/high-availability.md and docs/operations/backup.md say."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.stack.embedded import find_programs
from offsets.commits import acknowledged
from offsets.commits.acknowledged import AcknowledgedCommits
from offsets.commits.service import OffsetService
from offsets.core.types import OffsetFetch
from tests.failover.pair import STANDBY_PORT, Pair, primary_alone
from tests.failover.test_lagging import Members

pytestmark = pytest.mark.whole("backups are restored; the default promotes a standby")


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Without a standby."""
    with primary_alone() as made:
        yield made


@asynccontextmanager
async def service(conninfo: str) -> AsyncIterator[Runtime]:
    running = Runtime(Config({"group.initial.rebalance.delay.ms": 0}), conninfo)
    await running.start()
    await running.notifications.wait_listening()
    try:
        yield running
    finally:
        await running.stop()


async def run(*command: str | Path) -> None:
    await asyncio.to_thread(subprocess.run, command, check=True)


async def committed(runtime: Runtime) -> dict[int, int]:
    """By partition of the topic of the group one."""
    wanted = (("orders", (0, 1, 2)),)
    reply = await runtime.get(OffsetService).fetch(OffsetFetch("one", topics=wanted))
    return {offset.partition: offset.committed_offset for offset in reply.offsets}


async def test_a_dump_is_restored_under_a_running_service(pair: Pair, tmp_path: Path) -> None:
    programs, dump = find_programs(), tmp_path / "kcoord.dump"
    admin, name = make_conninfo(pair.conninfo, dbname="template1"), psycopg.conninfo.conninfo_to_dict(pair.conninfo)
    async with service(pair.conninfo) as before:
        members = Members(before)
        await members.begin("one")
        await members.commit("one", p0=10)
        await run(programs / "pg_dump", "-Fc", f"--file={dump}", pair.conninfo)
        await members.commit("one", p0=20)
    async with service(pair.conninfo) as after:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("create database restored")
            restored = make_conninfo(admin, dbname="restored")
            await run(programs / "pg_restore", "--exit-on-error", f"--dbname={restored}", dump)
            connection.execute(f'drop database "{name["dbname"]}" with (force)'.encode())
            connection.execute(f'alter database restored rename to "{name["dbname"]}"'.encode())
        later = Members(after)
        later.ids = members.ids
        await later.commit("one", p1=5)
        assert await committed(after) == {0: 10, 1: 5}


async def test_a_base_backup_is_replayed_to_a_point_in_time(pair: Pair) -> None:
    archive = pair.keep_logs()
    pair.back_up()
    async with service(pair.conninfo) as running:
        members = Members(running)
        await members.begin("one")
        await members.commit("one", p0=10)
        with psycopg.connect(pair.conninfo, autocommit=True) as connection:
            connection.execute("select pg_create_restore_point('before_the_accident')")
        await members.commit("one", p0=0, p1=0)
        pair.archive_log()
    pair.kill_primary()
    pair.replay(archive, "before_the_accident")
    async with service(make_conninfo(pair.conninfo, port=STANDBY_PORT)) as restored:
        assert await committed(restored) == {0: 10}
        assert restored.db.origins.latest is not None
        assert restored.db.origins.latest.timeline == 2
        await restored.get(AcknowledgedCommits).compare()
        assert acknowledged.checks(restored) == {}, "a service that was started again wants nothing back"
