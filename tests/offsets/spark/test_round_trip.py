"""What Spark is for, once: an archive, a lost database that is filled from it, a restore, and a reconcile of all."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.core.days import DAY_MS
from offsets.spark.errors import JobError
from tests.conftest import EMPTIED
from tests.offsets.spark.support import Archive, Reconciler, journal_rows
from tests.offsets.spark.test_restore import (
    Shadow,
    committed,
    config,  # noqa: F401 - a fixture
    details,
    of_another_cluster,
    refill,
    restore,
)
from tests.support.journal import assert_journal_agrees


async def test_an_empty_database_is_filled_from_the_archive_alone(
    runtime: Runtime, clock: VirtualClock, archive: Archive
) -> None:
    shadow = Shadow(runtime, clock, archive.conninfo, 8)
    await shadow.begin()
    await shadow.live(40, 3 * 3_600_000)
    await asyncio.to_thread(archive.run)
    last = archive.rows()[-1][0]
    known = details(archive.conninfo)
    with pytest.raises(JobError, match="the database is not empty"):
        await refill(archive)
    with psycopg.connect(archive.conninfo, autocommit=True) as connection:
        connection.execute(EMPTIED)
        connection.execute("truncate groups_revision")  # an empty database has had no topics
    of_another_cluster(archive)
    clock.advance(DAY_MS)
    with pytest.raises(JobError, match="belongs to another installation"):
        await asyncio.to_thread(archive.run)
    outcome = await refill(archive, create_topics=True)
    assert outcome.result is not None
    assert outcome.result["created_topics"] == sorted({key[1] for key in known})
    assert details(archive.conninfo) == known
    assert_journal_agrees(archive.conninfo)
    lines = journal_rows(archive.conninfo)
    assert {line[3] for line in lines} == {"restore"}
    assert min(line[0] for line in lines) > last
    if archive.rows()[-1][0] < lines[-1][0]:  # transactions in the databases of other tests held the run back
        await asyncio.to_thread(archive.run)
    assert archive.rows()[-len(lines) :] == lines
    before = len(archive.rows())
    assert (await asyncio.to_thread(archive.run)).rows == 0
    assert len(archive.rows()) == before
    clock.advance(1)
    for at in shadow.moments(2):  # time travel goes on behind the disaster
        clock.advance(1)
        await restore(archive, at)
        assert committed(archive.conninfo) == shadow.at(at)
    report = await asyncio.to_thread(archive.run)
    assert (report.rebased, report.rows > 0) == (False, True)
    reconciled = await asyncio.to_thread(Reconciler(archive.conninfo, archive.start), archive.path)
    assert (reconciled.with_archive, reconciled.partitions) == (
        True,
        len({key for _, then in shadow.states for key in then}),
    )
    assert reconciled.listed == []
