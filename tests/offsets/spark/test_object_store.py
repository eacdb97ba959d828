"""An archive on `s3a://`, with a server that speaks S3 on loopback. Off by default: Spark's library for S3 has 690 MB.

`TEST_S3_JARS` names the folder of the jars (docs/archive.md, “Object stores”), `TEST_MOTO` the program
`moto_server` of the wheel `moto[server]`, which needs no place in this virtual environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from pyspark.sql import SparkSession

from offsets.spark.archive.lookup import first_instant, group_at
from offsets.spark.archive.storage import JOURNAL
from offsets.spark.errors import ArchiveDamaged, JobError
from tests.conftest import START_MS
from tests.offsets.spark import elsewhere
from tests.offsets.spark.support import Archive, counted_days, journal_rows
from tests.support.database import ROOT
from tests.support.processes import free_port

JARS, MOTO = os.environ.get("TEST_S3_JARS", ""), os.environ.get("TEST_MOTO", "")

pytestmark = [
    pytest.mark.skipif(not (JARS and MOTO), reason="TEST_S3_JARS and TEST_MOTO are not set; see docs/archive.md"),
    pytest.mark.whole("needs jars of 690 MB"),
]


def never() -> SparkSession:
    """Damage is found before Spark is started."""
    raise AssertionError("Spark was started")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket, and the variables that name its store; yields the path of an archive in it."""
    url = f"http://127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [MOTO, "-H", "127.0.0.1", "-p", url.rpartition(":")[2]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for name, value in {
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "of tests alone",
    }.items():
        monkeypatch.setenv(name, value)
    try:
        made_bucket(url, process)
        yield "s3a://bucket/a/place"
    finally:
        process.kill()
        process.wait()


def made_bucket(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for the store, then make the bucket."""
    deadline = time.monotonic() + 120
    while True:
        assert process.poll() is None, "moto_server ended"
        assert time.monotonic() < deadline, "moto_server does not answer"
        try:
            httpx.put(f"{url}/bucket", timeout=10).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return


def test_the_jobs_on_an_object_store(journal: str, store: str, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"spark.driver.extraClassPath {JARS}/*\n")
    command = [
        sys.executable,
        "-m",
        "tests.offsets.spark.elsewhere",
        journal,
        store,
        str(tmp_path / "spark"),
        "local[2]",
    ]
    environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["rows"] == [elsewhere.ROWS, 0, elsewhere.MORE]
    assert told["compacted"] == [0, 0, 2]
    archive = Archive(journal, store, never)
    assert archive.rows() == journal_rows(journal)
    assert counted_days(journal) == (elsewhere.ROWS + elsewhere.MORE, True)
    storage, table = archive.storage(), archive.table()
    assert [storage.size(path) for path in (*told["exported"], *told["written"]) if not storage.size(path)] == []
    assert list(storage.files("staging")) == []
    assert first_instant(storage, table.files) == START_MS + elsewhere.STEP_MS
    past = group_at(storage, table.files, "group-1", START_MS + elsewhere.ROWS * elsewhere.STEP_MS)
    assert {f"group-1 {topic}-{partition}" for topic, partition in past} == {
        key for key in told["states"] if key.startswith("group-1 ")
    }
    two_drivers(archive)
    damages(archive)


def two_drivers(archive: Archive) -> None:
    """Both begin at the same version: the store refuses the second one's entry, and the first one's stays."""
    one, other = archive.table(), archive.table()
    assert one.manifest is not None
    planned = one.manifest.renumbered(one.number + 1, uuid4())
    archive.storage().write(f"manifests/{planned.number:012d}.json", planned.to_bytes())
    assert one.commit(planned, adds_rows=False).number == planned.number
    with pytest.raises(JobError, match="another driver published"):
        other.commit(replace(planned, run_id=uuid4()), adds_rows=False)
    assert archive.table().number == planned.number


def damages(archive: Archive) -> None:
    """A changed file, a truncated one, and one that is gone are named."""
    storage, place = archive.storage(), f"{JOURNAL}/{archive.table().files[0].path}"
    data = storage.read(place)
    for changed, said in ((bytes([data[0] ^ 1]) + data[1:], "was changed"), (data[:-1], "bytes instead of")):
        storage.write(place, changed)
        with pytest.raises(ArchiveDamaged, match=said):
            archive.run()
    storage.remove(place)
    with pytest.raises(ArchiveDamaged, match="is missing"):
        archive.run()


def test_a_store_that_refuses_is_no_damage(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(JobError, match="the archive cannot be used: s3://bucket/a/place") as told:
        Archive("", store, never).table()
    assert not isinstance(told.value, ArchiveDamaged)
    assert "\n" not in str(told.value)
