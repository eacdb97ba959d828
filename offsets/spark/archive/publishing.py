"""From staged files to published ones, in an order that may be interrupted anywhere.

1. Each file is on disk, counted and hashed in `staging/<run>`, then moved next to the published ones: it is not in the
   log, so no reader of the table sees it.
2. The manifest is written: it counts once the log has its number.
3. The log entry: the files are published, all at once.
4. The run's row in Postgres records it.

Interrupted before 3, the next run sweeps everything; interrupted after 3, the next run makes up for 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.parquet as pq

from offsets.spark.archive import manifest as manifests
from offsets.spark.archive.jobs import counted_days
from offsets.spark.archive.manifest import ArchivedFile, Manifest
from offsets.spark.archive.storage import JOURNAL, MANIFESTS, STAGING, Storage
from offsets.spark.archive.table import ArchiveTable
from offsets.spark.errors import JobError
from offsets.spark.runs import Publication, Run

RETIRED_KEPT_MS = 86_400_000
"""How long a reader may still read files that compaction replaced."""


def staged_files(storage: Storage, folder: str, prefix: str) -> list[tuple[str, ArchivedFile]]:
    """Source and destination of each Parquet file of a staging folder. `prefix` makes names unique."""
    found = []
    for index, file in enumerate(sorted(storage.files(folder), key=lambda one: one.path)):
        place = file.path.rsplit("/", 2)[-2]
        if not file.path.endswith(".parquet") or not place.startswith("date="):
            continue
        with storage.open_parquet(file.path) as source:
            rows = pq.read_metadata(source).num_rows
        archived = ArchivedFile(
            path=f"{place}/{prefix}-{index:05d}.parquet",
            date=place.removeprefix("date="),
            rows=rows,
            size=file.size,
            sha256=storage.sha256(file.path, sync=True),
        )
        found.append((file.path, archived))
    return found


def publish(
    run: Run, table: ArchiveTable, staged: Sequence[tuple[str, ArchivedFile]], planned: Manifest, *, adds_rows: bool
) -> ArchiveTable:
    """Publish staged files as `planned`, which lists them among its files; the table after it. Raises JobError."""
    storage = table.storage
    for source, file in staged:
        storage.move(source, f"{JOURNAL}/{file.path}")
    for folder in {f"{JOURNAL}/date={file.date}" for _, file in staged}:
        storage.sync_folder(folder)
    run.confirm()  # a driver that has lost its lock must not write over the manifest of the one that has it
    write_manifest(storage, planned)
    run.confirm()
    published = table.commit(planned, adds_rows=adds_rows)
    record(run, published)
    return published


def write_manifest(storage: Storage, planned: Manifest) -> None:
    """Write it at the path for its number."""
    storage.write(manifests.path_of(planned.number), planned.to_bytes())


def record(run: Run, table: ArchiveTable) -> None:
    """Record the table's newest publication in Postgres."""
    if table.manifest is None:
        raise JobError("nothing was published yet")
    run.record(publication(table, table.manifest, table.sha256))


def publication(table: ArchiveTable, published: Manifest, sha256: str) -> Publication:
    """What Postgres stores of a manifest."""
    return Publication(
        run_id=published.run_id,
        archive_id=table.archive_id,
        archive_path=table.storage.address,
        manifest=published.number,
        sha256=sha256,
        bound=published.bound,
        system_identifier=published.system_identifier,
        timeline=published.timeline,
        days=counted_days(published.days),
        rebased=published.rebased,
    )


def make_up(run: Run, table: ArchiveTable) -> list[int]:
    """Record the publications of runs that were killed right after them; the numbers of their manifests, oldest first.

    Runs that this database does not know are not its own and are skipped.
    """
    missed = []
    for number in range(table.number, 0, -1):
        if table.storage.size(manifests.path_of(number)) is None:
            break  # only the newest are kept, and this one is gone
        found, sha256 = table.read_manifest(number)
        published = publication(table, found, sha256)
        if run.has_recorded(published) or not run.knows(found.run_id):
            break
        missed.append(published)
    for published in reversed(missed):
        run.record(published)
    return [published.manifest for published in reversed(missed)]


def sweep(table: ArchiveTable) -> int:
    """Remove what no publication needs: files of interrupted runs, old manifests. Call it under the lock.

    Returns the number of files and folders removed.
    """
    storage, swept = table.storage, 0
    for run in {file.path.split("/")[1] for file in storage.files(STAGING)}:
        storage.remove_folder(f"{STAGING}/{run}")
        swept += 1
    kept = {f"{JOURNAL}/{file.path}" for file in table.files}
    if table.manifest is not None:
        kept |= {f"{JOURNAL}/{file.path}" for file in table.manifest.retired}
    for file in list(storage.files(JOURNAL)):
        if file.path not in kept and not file.path.startswith(f"{JOURNAL}/_delta_log/"):
            storage.remove(file.path)
            swept += 1
    names = {manifests.path_of(n) for n in range(max(1, table.number - manifests.KEPT), table.number + 1)}
    for file in list(storage.files(MANIFESTS)):
        if file.path not in names:
            storage.remove(file.path)
            swept += 1
    return swept


def without_expired(planned: Manifest) -> Manifest:
    """A manifest without retired files that have expired; the next sweep removes them."""
    limit = planned.published_at - RETIRED_KEPT_MS
    return replace(planned, retired=tuple(file for file in planned.retired if file.at >= limit))
