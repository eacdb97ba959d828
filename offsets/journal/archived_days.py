"""Days of the journal that the archive covers: only these are dropped if an archive is configured.

A day is covered when published runs hold as many rows of it as the journal, with the same checksum, and the files that
hold them exist and are unchanged. Reading those files needs pyarrow; nothing here starts Spark.

Source: architecture.md 7; docs/archive.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kcoord.database.pool import Connection
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.spark_packages import SparkUnavailable, require_spark
from offsets.core.days import Day, bounds, written_day
from offsets.spark.archive import manifest as manifests
from offsets.spark.archive.address import resolved
from offsets.spark.errors import JobError

Q = queries("offsets")


@dataclass(frozen=True, slots=True)
class Published:
    """The newest publication that this database knows of."""

    archive_id: str
    manifest: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Rows:
    """How many rows of a day there are, and the sum of their hashes."""

    rows: int
    checksum: int


class ArchivedDays:
    """Decides whether a day may be dropped."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._path = runtime.config.str("archive.path")

    @property
    def is_configured(self) -> bool:
        """An archive is configured, so days wait for it."""
        return self._path != ""

    async def problem_of_files(self, connection: Connection, day: Day) -> str | None:
        """Why the archive's files do not cover the day; None: they exist as published."""
        published = await self._published(connection)
        if published is None:
            return f"no run has published to {self._path} yet"
        return await asyncio.to_thread(_problem_of_files, self._path, published, day)

    async def problem_of_rows(self, connection: Connection, day: Day) -> str | None:
        """Why the rows of the day are not covered; None: count and checksum agree.

        Call it in the transaction that drops the day, in which no rows can be added to it.
        """
        published = await self._published(connection)
        if published is None:
            return f"no run has published to {self._path} yet"
        first, after = bounds(day)
        journal = await self._db.record(connection, _Rows, Q.day_in_journal, {"first": first, "after": after})
        parameters = {"day": day, "archive_id": published.archive_id}
        archive = await self._db.record(connection, _Rows, Q.day_in_archive, parameters)
        assert journal is not None
        assert archive is not None
        if journal.rows != archive.rows:
            return f"the journal has {journal.rows} rows of it, the archive {archive.rows}"
        if journal.checksum != archive.checksum:
            return "its rows in the journal and in the archive have different checksums"
        return None

    async def trim(self, connection: Connection, day: Day) -> int:
        """Delete the day's lines from the default partition, and stop counting the day; returns the line count."""
        first, after = bounds(day)
        trimmed = await connection.execute(Q.trim_day.encode(), {"first": first, "after": after})
        await connection.execute(Q.forget_archived_day.encode(), {"day": day})
        return trimmed.rowcount

    async def _published(self, connection: Connection) -> Published | None:
        return await self._db.record(connection, Published, Q.newest_publication, {"path": resolved(self._path)})


def _problem_of_files(path: str, published: Published, day: Day) -> str | None:
    """Compare the day's files with the manifest, and that with its digest in the database."""
    try:
        require_spark()
        # Here: services without an archive do not need pyarrow.
        from offsets.spark.archive.storage import JOURNAL, Storage

        storage = Storage(path)
        where = manifests.path_of(published.manifest)
        if storage.size(where) is None:
            return f"{where} of the archive is missing"
        data = storage.read(where)
        if manifests.digest(data) != published.sha256:
            return f"{where} of the archive was changed"
        for file in manifests.parse(data).files:
            if file.date != written_day(day):
                continue
            place = f"{JOURNAL}/{file.path}"
            if storage.size(place) != file.size:
                return f"{place} of the archive is missing or truncated"
            if storage.sha256(place) != file.sha256:
                return f"{place} of the archive was changed"
    except (JobError, SparkUnavailable, manifests.ManifestUnreadable) as error:
        return str(error)
    return None
