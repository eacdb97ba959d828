"""Days of the journal while there is an archive: dropped once published runs cover them, kept and named otherwise."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.core.days import DAY_MS, bounds, day_of, partition_name
from offsets.journal import journal_days
from offsets.journal.journal_days import JournalDays
from offsets.spark.postgres import exported_snapshot
from tests.conftest import START_MS
from tests.offsets.spark.support import Archive, fill, journal_rows, make_day

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

OLD = day_of(START_MS) - 10
NAME = partition_name(OLD)
FIRST = bounds(OLD)[0]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The journal is kept for five days, and there is an archive."""
    return Config({"offsets.journal.retention.days": 5, "archive.path": str(tmp_path / "archive")})


@pytest.fixture
def days(runtime: Runtime) -> JournalDays:
    """The upkeep of this process."""
    return runtime.get(JournalDays)


@pytest.fixture
def archived(archive: Archive) -> Archive:
    """An old day in a partition of its own, and an older one in the default partition, both archived."""
    make_day(archive.conninfo, OLD)
    fill(archive.conninfo, 40, first=FIRST, step=1)
    fill(archive.conninfo, 30, first=FIRST - DAY_MS, step=1)
    archive.run()
    return archive


def change(archive: Archive, statement: str) -> None:
    """Change the journal as nobody should."""
    with psycopg.connect(archive.conninfo, autocommit=True) as connection:
        connection.execute(statement.encode())


async def test_days_that_the_archive_covers_are_dropped(archived: Archive, days: JournalDays) -> None:
    kept = archived.rows()
    report = await days.keep()
    assert (report.dropped, report.trimmed, report.kept) == ([NAME], 30, [])
    assert journal_rows(archived.conninfo) == []
    assert archived.rows() == kept
    assert archived.run().rows == 0


async def test_nothing_is_dropped_before_the_first_run(archive: Archive, days: JournalDays) -> None:
    make_day(archive.conninfo, OLD)
    fill(archive.conninfo, 3, first=FIRST, step=1)
    report = await days.keep()
    assert (report.dropped, report.kept) == ([], [NAME])
    assert len(journal_rows(archive.conninfo)) == 3


OTHERS = (
    f"insert into {NAME} (at, kind, group_name, topic, partition) values ({FIRST}, 'commit', 'late', 't', 0)",
    f"update {NAME} set committed_offset = 7 where id = (select min(id) from {NAME})",
    f"update {NAME} set transactional_id = '' where id = (select max(id) - 1 from {NAME})",
    f"delete from {NAME} where id = (select min(id) from {NAME})",
)


async def test_a_day_whose_rows_are_others_is_kept(archived: Archive, days: JournalDays) -> None:
    change(archived, f"create table saved as select * from {NAME}")
    for number, statement in enumerate(OTHERS):
        change(archived, statement)
        before = journal_rows(archived.conninfo)
        report = await days.keep()
        trimmed = 0 if number else 30  # the older day goes, and nothing else
        assert (report.dropped, report.kept, report.trimmed) == ([], [NAME], trimmed), statement
        assert set(journal_rows(archived.conninfo)) <= set(before)
        assert len(journal_rows(archived.conninfo)) == len(before) - trimmed
        change(archived, f"truncate {NAME}")
        change(archived, f"insert into {NAME} overriding system value select * from saved")
    change(archived, "drop table saved")
    assert (await days.keep()).dropped == [NAME], "nothing of the changes was left"


async def test_a_late_line_is_archived_before_it_goes(archived: Archive, days: JournalDays) -> None:
    await days.keep()
    fill(archived.conninfo, 1, first=FIRST, step=1)  # its day is gone: it lies in the default partition
    report = await days.keep()
    assert (report.kept, report.trimmed) == ([NAME], 0)
    assert archived.run().rows == 1
    assert (await days.keep()).trimmed == 1
    assert len(archived.rows()) == 71


def remove(path: Path) -> None:
    path.unlink()


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


async def test_a_day_is_kept_while_the_archive_is_damaged(archived: Archive, days: JournalDays) -> None:
    (file,) = [file for file in archived.table().files if file.date == "2023-11-04"]
    for place in (f"journal/{file.path}", "manifests/000000000001.json"):
        path = Path(archived.path) / place
        data = path.read_bytes()
        for damage in (remove, change_a_byte):
            damage(path)
            report = await days.keep()
            assert report.dropped == [], (place, damage)
            assert NAME in report.kept
            assert len([row for row in journal_rows(archived.conninfo) if row[1] >= FIRST]) == 40
            path.write_bytes(data)
    assert (await days.keep()).dropped == [NAME], "it is whole again"


async def test_a_day_of_another_timeline_is_kept_and_one_that_a_run_reads_is_dropped_later(
    archived: Archive, days: JournalDays, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(archived, "update offsets_archivedday set timeline = timeline + 1")
    assert (await days.keep()).dropped == []
    change(archived, "update offsets_archivedday set timeline = timeline - 1")
    monkeypatch.setattr(journal_days, "LOCK_ATTEMPTS", 1)
    with exported_snapshot(archived.conninfo):
        assert NAME in (await days.keep()).put_off
    assert (await days.keep()).dropped == [NAME]


async def test_without_an_archive_retention_alone_decides(journal: str, clock: VirtualClock) -> None:
    make_day(journal, OLD)
    fill(journal, 40, first=FIRST, step=1)
    fill(journal, 30, first=FIRST - DAY_MS, step=1)
    runtime = Runtime(Config({"offsets.journal.retention.days": 5}), journal, clock)
    await runtime.start()
    report = await runtime.get(JournalDays).keep()
    await runtime.stop()
    assert (report.dropped, report.trimmed) == ([NAME], 30)
