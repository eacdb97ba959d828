"""Archives of every version are read; those of later versions are refused."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from offsets.core.days import DAY_MS
from offsets.spark.archive.jobs import day_totals, manifest_days
from offsets.spark.archive.lookup import first_instant, group_at
from offsets.spark.archive.schema import COLUMNS
from offsets.spark.archive.states import collected, states_at
from offsets.spark.archive.storage import Storage
from offsets.spark.archive.table import open_table, read_archive
from offsets.spark.errors import ArchiveDamaged, JobError
from tests.offsets.spark.archives.__main__ import FIRST
from tests.offsets.spark.support import Row, rows_of

ARCHIVES = Path(__file__).parent / "archives"
VERSIONS = sorted(folder for folder in ARCHIVES.iterdir() if (folder / "archive").is_dir())
AT = FIRST + DAY_MS + 10 * 60_000
"""In the middle of the last day."""

GROUP, TOPIC, PARTITION, OFFSET = (COLUMNS.index(n) for n in ("group_name", "topic", "partition", "committed_offset"))


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def version(request: pytest.FixtureRequest) -> Path:
    """The folder of a version."""
    folder: Path = request.param
    return folder


def rows_in(version: Path) -> list[Row]:
    """The journal that the archive was made of."""
    return [tuple(json.loads(line)) for line in (version / "rows.json").read_text().splitlines()]


def test_readers_of_delta_see_every_row(version: Path) -> None:
    table = DeltaTable(str(version / "archive" / "journal"))
    assert rows_of(table.to_pyarrow_dataset().to_table()) == rows_in(version)
    quoted = ", ".join(f'"{name}"' for name in COLUMNS)
    query = f"select {quoted} from read_parquet(?, hive_partitioning=true) order by id"
    assert duckdb.execute(query, [table.file_uris()]).fetchall() == rows_in(version)


def test_its_files_are_as_its_manifest_says(version: Path) -> None:
    table = open_table(Storage(str(version / "archive")))
    table.check(contents=True)
    assert table.manifest is not None
    assert (table.number, len(table.files), len(table.manifest.retired)) == (4, 2, 2)


def test_the_past_of_a_group_is_found(version: Path) -> None:
    """As a reset to an instant does, without Spark."""
    storage = Storage(str(version / "archive"))
    files = open_table(storage).files
    rows = rows_in(version)
    assert first_instant(storage, files) == rows[0][1]
    for group in {row[GROUP] for row in rows}:
        past = {(row[TOPIC], row[PARTITION]): row[OFFSET] for row in rows if row[GROUP] == group and row[1] <= AT}
        assert group_at(storage, files, group, AT) == past


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_spark_reads_it_and_computes_the_same_checksums(version: Path, spark: SparkSession) -> None:
    table = open_table(Storage(str(version / "archive")))
    archived, rows = read_archive(spark, table), rows_in(version)
    assert rows_of(archived.toArrow()) == rows
    added: Counter[str] = Counter()
    for number in range(1, table.number + 1):
        added.update({day.date: day.checksum for day in table.read_manifest(number)[0].days})
    assert {day.date: day.checksum for day in manifest_days(day_totals(archived))} == added
    states = collected(states_at(archived, AT))
    last = {(row[GROUP], row[TOPIC], row[PARTITION]): row[OFFSET] for row in rows if row[1] <= AT}
    found = {(group, *key): offset for group in states.groups for key, offset in states.of(group).items()}
    assert found == last


LATER = [
    ("journal/_delta_log/00000000000000000000.json", '"kcoord.schema.version":"1"', '"kcoord.schema.version":"2"'),
    ("manifests/000000000004.json", '"schema_version": 1', '"schema_version": 2'),
    ("manifests/000000000004.json", '"manifest_version": 1', '"manifest_version": 2'),
]


@pytest.mark.parametrize(("file", "said", "says"), LATER, ids=["table", "manifest", "form of manifests"])
def test_a_later_version_is_refused(tmp_path: Path, file: str, said: str, says: str) -> None:
    shutil.copytree(VERSIONS[-1] / "archive", tmp_path / "archive")
    written = tmp_path / "archive" / file
    before = written.read_text()
    assert said in before
    written.write_text(before.replace(said, says))
    with pytest.raises((JobError, ArchiveDamaged), match=r"version 2.*this release reads versions up to 1"):
        open_table(Storage(str(tmp_path / "archive")))
