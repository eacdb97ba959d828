"""The schema of the archive, and its version.

Version 1: the columns of the journal in the order of `offsets.spark.tables`, then `date`, the UTC day of `at`, by which
the table is partitioned. Adding a column that readers may ignore keeps the version; anything else raises it.
"""

from __future__ import annotations

import pyarrow as pa
from deltalake import Schema

from offsets.spark.errors import JobError
from offsets.spark.tables import ARROW, TABLES

VERSION = 1
VERSION_KEY = "kcoord.schema.version"
"""The key of the version in the Delta table's configuration."""

JOURNAL = TABLES["journal"].columns
COLUMNS = tuple(JOURNAL)
PARTITION = "date"

ARROW_SCHEMA = pa.schema([*((name, ARROW[kind]) for name, kind in JOURNAL.items()), (PARTITION, pa.date32())])
DELTA_SCHEMA = Schema.from_arrow(ARROW_SCHEMA)
SPARK_SCHEMA = ", ".join([*(f"`{name}` {kind}" for name, kind in JOURNAL.items()), f"`{PARTITION}` date"])


def check_version(found: object, where: str) -> None:
    """Raise JobError for a version that this release does not know."""
    try:
        version = int(str(found))
    except ValueError:
        raise JobError(
            f"{where} does not state its schema version ({found!r}); it is not an archive of kcoord"
        ) from None
    if not 1 <= version <= VERSION:
        raise JobError(
            f"{where} has schema version {version}, this release reads versions up to {VERSION}; use the release that "
            "wrote it"
        )
