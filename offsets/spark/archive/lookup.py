"""The archive as of an instant for one group, without Spark: files of later days are not opened, row groups of other
groups not read.

Only pyarrow and the standard library: services read the archive this way too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

import pyarrow as pa
import pyarrow.compute as pc

from offsets.core.days import DAY_MS, written_day
from offsets.spark.archive.manifest import ArchivedFile
from offsets.spark.archive.storage import JOURNAL, Storage
from offsets.spark.errors import ArchiveDamaged

Past = Mapping[tuple[str, int], int | None]
"""The offset of each partition; None: it was removed. Absent: nothing was ever committed on it."""

COLUMNS = ("topic", "partition", "at", "id", "committed_offset")
LAST = ("committed_offset", "last", pc.ScalarAggregateOptions(skip_nulls=False))


def day_text(at: int) -> str:
    """The UTC day of an instant (ms), as the archive writes it."""
    return written_day(at // DAY_MS)


def first_instant(storage: Storage, files: Sequence[ArchivedFile]) -> int | None:
    """When the oldest row was written (ms); None for an empty archive. Raises JobError, ArchiveDamaged."""
    oldest = min((file.date for file in files), default=None)
    if oldest is None:
        return None
    rows = storage.rows(_checked(storage, [file for file in files if file.date == oldest]), ["at"])
    first: int = pc.min(rows.column("at")).as_py()
    return first


def group_at(
    storage: Storage, files: Sequence[ArchivedFile], group: str, at: int, until: Set[tuple[str, int]] | None = None
) -> Past:
    """What the last row of each partition of a group, written up to `at` (ms), says.

    Days are read backwards until the partitions in `until` are found; None: to the first day. Raises JobError,
    ArchiveDamaged: a file is missing, truncated or cannot be read.
    """
    found: dict[tuple[str, int], int | None] = {}
    days: dict[str, list[ArchivedFile]] = defaultdict(list)
    for file in files:
        if file.date <= day_text(at):
            days[file.date].append(file)
    wanted = (pc.field("group_name") == group) & (pc.field("at") <= at)
    for date in sorted(days, reverse=True):
        if until is not None and until <= found.keys():
            break
        rows = storage.rows(_checked(storage, days[date]), COLUMNS, wanted)
        for key, offset in _last(rows).items():
            found.setdefault(key, offset)
    return found


def _last(rows: pa.Table) -> Past:
    if not rows.num_rows:
        return {}
    ordered = rows.sort_by([("at", "ascending"), ("id", "ascending")])
    last = ordered.group_by(["topic", "partition"], use_threads=False).aggregate([LAST])
    keys = zip(last.column("topic").to_pylist(), last.column("partition").to_pylist(), strict=True)
    return dict(zip(keys, last.column("committed_offset_last").to_pylist(), strict=True))


def _checked(storage: Storage, files: Sequence[ArchivedFile]) -> list[str]:
    """The locations of the files. Raises ArchiveDamaged for one that is missing or truncated."""
    problems, paths = [], []
    for file in files:
        path = f"{JOURNAL}/{file.path}"
        size = storage.size(path)
        if size is None:
            problems.append(f"{path} is missing")
        elif size != file.size:
            problems.append(f"{path} has {size} bytes instead of {file.size}")
        paths.append(path)
    if problems:
        raise ArchiveDamaged(problems)
    return paths
