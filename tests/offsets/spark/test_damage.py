"""Archives that cannot be used: named, nothing published, nothing dropped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from offsets.core.days import DAY_MS
from offsets.spark.archive import archiving
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.errors import ArchiveDamaged, JobError, RunInProgress
from offsets.spark.runs import RunRequest, running
from tests.conftest import START_MS
from tests.offsets.spark.support import Archive, counted_days, fill, journal_rows, runs_of

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")


def never() -> SparkSession:
    """Damage is found before Spark is started."""
    raise AssertionError("Spark was started")


@pytest.fixture
def published(archive: Archive) -> Archive:
    """An archive of 100 rows; the journal has 50 more."""
    fill(archive.conninfo, 100, step=1)
    archive.run()
    fill(archive.conninfo, 50, first=START_MS + DAY_MS, step=1)
    return archive


def file_of(archive: Archive) -> Path:
    """The Parquet file that was published first."""
    return Path(archive.path) / "journal" / archive.table().files[0].path


def remove(archive: Archive) -> str:
    file_of(archive).unlink()
    return "is missing"


def truncate(archive: Archive) -> str:
    path = file_of(archive)
    path.write_bytes(path.read_bytes()[:-1])
    return "bytes instead of"


def change_a_byte(archive: Archive) -> str:
    path = file_of(archive)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    return "was changed: its SHA-256 differs"


def change_the_manifest(archive: Archive) -> str:
    path = Path(archive.path) / "manifests" / "000000000001.json"
    path.write_text(path.read_text().replace('"rows": 100', '"rows": 101'))
    return "manifests/000000000001.json was changed"


def remove_the_manifest(archive: Archive) -> str:
    (Path(archive.path) / "manifests" / "000000000001.json").unlink()
    return "manifests/000000000001.json is missing"


def of_a_later_release(archive: Archive) -> str:
    log = Path(archive.path) / "journal" / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace('"kcoord.schema.version":"1"', '"kcoord.schema.version":"2"'))
    return "has schema version 2, this release reads versions up to 1"


def remove_the_log(archive: Archive) -> str:
    log = Path(archive.path) / "journal" / "_delta_log"
    for file in log.iterdir():
        file.unlink()
    log.rmdir()
    return "the Delta log is missing"


DAMAGES = [remove, truncate, change_a_byte, change_the_manifest, remove_the_manifest, remove_the_log]
REFUSED = [*DAMAGES, of_a_later_release]


def test_a_damaged_archive_is_named_and_left_alone(published: Archive, tmp_path: Path) -> None:
    path, whole = Path(published.path), tmp_path / "whole"
    path.rename(whole)
    published.start = never
    for damage in REFUSED:
        shutil.copytree(whole, path)
        said = damage(published)
        before = sorted(str(file) for file in path.rglob("*"))
        with pytest.raises(ArchiveDamaged if damage in DAMAGES else JobError) as told:
            published.run()
        assert said in str(told.value), damage
        assert sorted(str(file) for file in path.rglob("*")) == before, damage
        shutil.rmtree(path)
    assert [run[1] for run in runs_of(published.conninfo)] == ["succeeded", *["failed"] * len(REFUSED)]


def test_a_path_that_cannot_be_written_is_named(archive: Archive) -> None:
    Path(archive.path).write_text("a file")
    archive.start = never
    with pytest.raises(JobError, match=r"the archive cannot be used: .*KCOORD_ARCHIVE_PATH"):
        archive.run()


def test_no_path_says_which_setting_is_missing(archive: Archive) -> None:
    archive.path = ""
    with pytest.raises(JobError, match="KCOORD_ARCHIVE_PATH"):
        archive.run()


def of_another_cluster(archive: Archive) -> None:
    """The newest manifest names another cluster, and the database knows nothing of its run."""
    path = Path(archive.path) / "manifests" / "000000000001.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "system_identifier": "1"}))
    forget_runs(archive)


def forget_runs(archive: Archive) -> None:
    with psycopg.connect(archive.conninfo, autocommit=True) as connection:
        connection.execute("truncate offsets_sparkrun, offsets_reconcilefinding, offsets_archivedday")


def test_an_archive_of_another_installation_is_refused_until_it_is_adopted(published: Archive) -> None:
    of_another_cluster(published)
    before = published.rows()
    with pytest.raises(JobError, match=r"belongs to another installation \(cluster 1; .*--adopt"):
        published.run()
    assert published.rows() == before
    report = published.run(ArchiveOptions(adopt=True))
    assert (report.rebased, report.rows) == (True, 50)
    assert published.rows() == journal_rows(published.conninfo)
    assert counted_days(published.conninfo) == (150, True)
    assert published.run().rows == 0


def test_a_database_put_back_to_an_older_state_loses_no_row(published: Archive) -> None:
    """Ids of transactions are given out again then: the bound of the archive says nothing."""
    published.run()
    forget_runs(published)
    with psycopg.connect(published.conninfo, autocommit=True) as connection:
        connection.execute("delete from offset_commit_log where at >= %s", [START_MS + DAY_MS])
        connection.execute(
            "insert into offset_commit_log (id, at, xact_id, kind, group_name, topic, partition, committed_offset)"
            " values (101, %s, 5, 'commit', 'reused', 't', 0, 1)",
            [START_MS + DAY_MS],
        )
    kept = {row[0]: row for row in published.rows() if row[0] > 100}
    report = published.run()
    assert (report.rebased, report.rows) == (True, 1)
    assert len(published.rows()) == 151  # what the database lost stays in the archive
    assert set(journal_rows(published.conninfo)) <= set(published.rows())
    assert set(kept.values()) <= set(published.rows())
    assert counted_days(published.conninfo) == (101, True)


def test_one_run_at_a_time(archive: Archive) -> None:
    with running(archive.conninfo, "archive", RunRequest("first")) as first:
        archive.start = never
        with pytest.raises(RunInProgress, match=str(first.id)):
            archive.run()
    assert [run[1] for run in runs_of(archive.conninfo)] == ["succeeded"]


def test_rows_that_executors_kept_to_themselves_are_missed(published: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is published, and the next run takes them all."""
    before, found = published.rows(), archiving.staged_files
    monkeypatch.setattr(archiving, "staged_files", lambda *given: found(*given)[:-1])
    with pytest.raises(JobError, match="Spark wrote 50 rows, 0 of them are at"):
        published.run()
    assert published.rows() == before
    monkeypatch.undo()
    assert published.run().rows == 50
    assert published.rows() == journal_rows(published.conninfo)
