"""What was committed at an instant according to the archive, if the journal no longer reaches back.

Reading it needs pyarrow; nothing here starts Spark. Source: architecture.md 7; docs/restore.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import structlog

from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.spark_packages import SparkUnavailable, require_spark
from offsets.core.types import Millis, TopicPartition
from offsets.journal.archived_days import Published
from offsets.spark.archive import manifest as manifests
from offsets.spark.archive.address import resolved
from offsets.spark.archive.manifest import Manifest
from offsets.spark.errors import JobError

if TYPE_CHECKING:
    from offsets.spark.archive.storage import Storage

log = structlog.get_logger(__name__)

Q = queries("offsets")

T = TypeVar("T")

Offsets = Mapping[TopicPartition, int | None]
"""The offset of each partition; None: it was removed. Absent: nothing was ever committed on it."""


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """States of all groups at one instant, computed by a Spark job, so the archive is not read again."""

    at: Millis
    of: Callable[[str], Offsets]


@dataclass(slots=True)
class ArchivedOffsets:
    """Reads the archive at `archive.path`. Methods raise UNKNOWN_SERVER_ERROR, saying why, if it cannot be read."""

    runtime: Runtime
    read_ahead: ReadAhead | None = None
    _path: str = field(init=False)
    _last: tuple[tuple[str, str, Millis], Offsets] | None = field(init=False, default=None)
    """The last query and its answer: making a plan asks more than once."""

    def __post_init__(self) -> None:
        self._path = self.runtime.config.str("archive.path")

    async def begins(self) -> Millis | None:
        """When its oldest line was written (ms); None: no archive, or an empty one."""
        manifest = await self._newest()
        if manifest is None:
            return None

        def read(storage: Storage) -> Millis | None:
            from offsets.spark.archive.lookup import first_instant

            return first_instant(storage, manifest.files)

        return await self._reading(read)

    async def at(self, group_id: str, at: Millis, wanted: Set[TopicPartition] | None = None) -> Offsets:
        """What the archive's last line up to an instant says about each partition of a group.

        `wanted`: only these matter, so it is read backwards until all are found; None: the whole group.
        """
        if wanted is not None and not wanted:
            return {}
        if self.read_ahead is not None and self.read_ahead.at == at:
            return self.read_ahead.of(group_id)
        manifest = await self._newest()
        if manifest is None:
            return {}

        def read(storage: Storage) -> Offsets:
            from offsets.spark.archive.lookup import group_at

            return group_at(storage, manifest.files, group_id, at, wanted)

        if wanted is not None:
            return await self._reading(read)
        asked = f"{manifest.archive_id} {manifest.number}", group_id, at
        if self._last is None or self._last[0] != asked:
            self._last = asked, await self._reading(read)
        return self._last[1]

    async def _newest(self) -> Manifest | None:
        """The newest manifest that this database knows of, compared with the digest that it stores."""
        if not self._path:
            return None
        async with self.runtime.db.connection() as connection:
            path = {"path": resolved(self._path)}
            published = await self.runtime.db.record(connection, Published, Q.newest_publication, path)
        if published is None:
            return None

        def read(storage: Storage) -> Manifest:
            where = manifests.path_of(published.manifest)
            data = storage.read(where)
            if manifests.digest(data) != published.sha256:
                raise manifests.ManifestUnreadable(f"{where} was changed")
            return manifests.parse(data)

        return await self._reading(read)

    async def _reading(self, read: Callable[[Storage], T]) -> T:
        return await asyncio.to_thread(self._read, read)

    def _read(self, read: Callable[[Storage], T]) -> T:
        try:
            require_spark()
            # Here: services without an archive do not need pyarrow.
            from offsets.spark.archive.storage import Storage

            return read(Storage(self._path))
        except (JobError, SparkUnavailable, manifests.ManifestUnreadable) as error:
            log.warning("archive_unreadable", reason=str(error))
            raise ProtocolError(
                Error.UNKNOWN_SERVER_ERROR,
                f"the offsets of that time are in the archive, which cannot be read: {error}",
            ) from error
