"""Makes an archive of the present version: `python -m tests.offsets.spark.archives FOLDER`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from offsets.core.days import DAY_MS
from offsets.spark.archive.archiving import ArchiveOptions
from offsets.spark.session import SparkSettings, spark_session
from tests.conftest import START_MS
from tests.offsets.spark.support import Archive, fill, journal_rows
from tests.support.database import ephemeral_database

HERE = Path(__file__).parent
FIRST = START_MS // DAY_MS * DAY_MS


def make(folder: Path) -> None:
    """Three runs: a day, more of it, which compacts it, and another day."""
    folder.mkdir()
    with (
        ephemeral_database() as conninfo,
        tempfile.TemporaryDirectory() as directory,
        spark_session(SparkSettings("local[2]", Path(directory))) as spark,
    ):
        archive = Archive(conninfo, str(folder / "archive"), lambda: spark, ArchiveOptions(most_files=1))
        for first in (FIRST, FIRST + 20 * 60_000, FIRST + DAY_MS):
            fill(conninfo, 20, first=first)
            archive.run()
        lines = [json.dumps(row, ensure_ascii=False) for row in journal_rows(conninfo)]
        (folder / "rows.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    make(HERE / sys.argv[1])
