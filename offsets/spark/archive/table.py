"""The Delta table of the archive, through the `deltalake` wheel: opened, checked, and committed to by the driver.

Each publication is one entry of the Delta log. The entry carries the number of its manifest as the version of the
application transaction `kcoord`: of two drivers that start from the same version, one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, Transaction
from pyspark.sql import DataFrame, SparkSession

from offsets.spark.archive import manifest as manifests
from offsets.spark.archive.manifest import ArchivedFile, Manifest, ManifestUnreadable
from offsets.spark.archive.schema import DELTA_SCHEMA, PARTITION, SPARK_SCHEMA, VERSION, VERSION_KEY, check_version
from offsets.spark.archive.storage import JOURNAL, MANIFESTS, Storage
from offsets.spark.errors import ArchiveDamaged, JobError, one_line

APPLICATION = "kcoord"
HASHING_THREADS = 4


class ArchiveTable:
    """The table at one version. `manifest` is None before the first publication; `sha256` is that of the manifest."""

    def __init__(self, storage: Storage, table: DeltaTable) -> None:
        self.storage = storage
        self._table = table
        self.archive_id = str(table.metadata().id)
        check_version(table.metadata().configuration.get(VERSION_KEY), storage.delta_path())
        number = table.transaction_version(APPLICATION)
        if number is None:
            raise JobError(f"{storage.delta_path()} is a Delta table that kcoord did not write; set another path")
        self.number = int(number)
        self.manifest: Manifest | None = None
        self.sha256 = ""
        if self.number > 0:
            self.manifest, self.sha256 = self.read_manifest(self.number)

    def read_manifest(self, number: int) -> tuple[Manifest, str]:
        """A manifest and its SHA-256. Raises ArchiveDamaged; JobError for one of a later release."""
        path = manifests.path_of(number)
        if self.storage.size(path) is None:
            raise ArchiveDamaged([f"{path} is missing"])
        data = self.storage.read(path)
        try:
            found = manifests.parse(data)
        except ManifestUnreadable as error:
            raise ArchiveDamaged([f"{path}: {error}"]) from error
        check_version(found.schema_version, path)
        if found.archive_id != self.archive_id:
            raise ArchiveDamaged([f"{path} belongs to another archive"])
        if found.number != number:
            raise ArchiveDamaged([f"{path} has number {found.number}"])
        return found, manifests.digest(data)

    @property
    def files(self) -> Sequence[ArchivedFile]:
        """The published files."""
        return self.manifest.files if self.manifest is not None else ()

    def check(self, *, contents: bool = True) -> None:
        """Compare the files with the manifest: sizes, and with `contents` each SHA-256. Raises ArchiveDamaged."""
        problems = [*self._strangers(), *filter(None, map(self._size_problem, self.files))]
        if contents and not problems:
            with ThreadPoolExecutor(HASHING_THREADS) as pool:
                problems = [problem for problem in pool.map(self._content_problem, self.files) if problem]
        if problems:
            raise ArchiveDamaged(problems)

    def _strangers(self) -> Iterator[str]:
        expected = {file.path for file in self.files}
        found = {"/".join(unquote(uri).rsplit("/", 2)[-2:]) for uri in self._table.file_uris()}
        yield from (f"{JOURNAL}/{path} is in the Delta log, but not in the manifest" for path in found - expected)
        yield from (f"{JOURNAL}/{path} is in the manifest, but not in the Delta log" for path in expected - found)

    def _size_problem(self, file: ArchivedFile) -> str | None:
        path = f"{JOURNAL}/{file.path}"
        size = self.storage.size(path)
        if size is None:
            return f"{path} is missing"
        return None if size == file.size else f"{path} has {size} bytes instead of {file.size}"

    def _content_problem(self, file: ArchivedFile) -> str | None:
        path = f"{JOURNAL}/{file.path}"
        return None if self.storage.sha256(path) == file.sha256 else f"{path} was changed: its SHA-256 differs"

    def commit(self, published: Manifest, *, adds_rows: bool) -> ArchiveTable:
        """One log entry that leaves exactly the manifest's files; returns the table afterwards. Raises JobError.

        `adds_rows` False: the same rows in other files, which readers that follow the table skip.
        """
        old, new = {file.path: file for file in self.files}, {file.path: file for file in published.files}
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                file.path,
                file.size,
                {PARTITION: file.date},
                published.published_at,
                adds_rows,
                # With minima of only some columns, to_pyarrow_dataset() drops rows when it filters by another column.
                json.dumps({"numRecords": file.rows}),
            )
            for path, file in new.items()
            if path not in old
        ]
        actions += [
            RemoveAction(path, adds_rows, published.published_at, file.size, {PARTITION: file.date})
            for path, file in old.items()
            if path not in new
        ]
        properties = CommitProperties(
            custom_metadata={"kcoord.run": str(published.run_id), "kcoord.manifest": str(published.number)},
            app_transactions=[Transaction(APPLICATION, published.number)],
            max_commit_retries=0,
        )
        try:
            self._table.create_write_transaction(
                actions, "append", DELTA_SCHEMA, [PARTITION], commit_properties=properties
            )
        except CommitFailedError as error:
            raise JobError("another driver published to the archive at the same time; run it again") from error
        except (DeltaError, OSError) as error:
            raise JobError(f"the archive cannot be written: {one_line(error)}") from error
        return open_table(self.storage)


def has_table(storage: Storage) -> bool:
    """Whether there is an archive. Raises JobError if the place cannot be read, ArchiveDamaged if the log cannot."""
    with _explaining(storage):
        return bool(DeltaTable.is_deltatable(storage.delta_path(), storage.delta_options()))


def open_table(storage: Storage) -> ArchiveTable:
    """The archive's table. Raises JobError if it does not exist, ArchiveDamaged if its log cannot be read."""
    if not has_table(storage):
        raise JobError(f"there is no archive at {storage.address}; `manage.py archive` creates it")
    with _explaining(storage):
        return ArchiveTable(storage, DeltaTable(storage.delta_path(), storage_options=storage.delta_options()))


@contextmanager
def _explaining(storage: Storage) -> Iterator[None]:
    """Errors of the place are not those of the log: a store that does not answer is not a damaged archive."""
    try:
        yield
    except OSError as error:
        raise JobError(f"the archive cannot be used: {storage.delta_path()}: {one_line(error)}") from error
    except DeltaError as error:
        raise ArchiveDamaged([f"the Delta log of {storage.delta_path()}: {one_line(error)}"]) from error


def open_or_create(storage: Storage) -> ArchiveTable:
    """The archive's table, created if the folder is empty. Raises JobError, ArchiveDamaged."""
    storage.check_writable()
    if has_table(storage):
        return open_table(storage)
    left = [*storage.files(JOURNAL), *storage.files(MANIFESTS)]
    if left:
        raise ArchiveDamaged([f"the Delta log is missing, but {left[0].path} exists"])
    try:
        DeltaTable.create(
            storage.delta_path(),
            DELTA_SCHEMA,
            partition_by=[PARTITION],
            name="kcoord journal",
            configuration={VERSION_KEY: str(VERSION)},
            storage_options=storage.delta_options(),
            commit_properties=CommitProperties(app_transactions=[Transaction(APPLICATION, 0)]),
            raise_if_key_not_exists=False,
        )
    except (DeltaError, OSError) as error:
        raise JobError(f"the archive cannot be created at {storage.address}: {one_line(error)}") from error
    return open_table(storage)


def read_archive(spark: SparkSession, table: ArchiveTable) -> DataFrame:
    """The published rows, with the columns of `schema.SPARK_SCHEMA`. No jar is needed."""
    return read_files(spark, table.storage, JOURNAL, [f"{JOURNAL}/{file.path}" for file in table.files])


def read_files(spark: SparkSession, storage: Storage, base: str, paths: Sequence[str]) -> DataFrame:
    """Rows of Parquet files below the folder `base`, partitioned like the archive."""
    if not paths:
        return spark.createDataFrame([], SPARK_SCHEMA)
    reader = spark.read.schema(SPARK_SCHEMA).option("basePath", storage.spark_path(base))
    return reader.parquet(*map(storage.spark_path, paths))
