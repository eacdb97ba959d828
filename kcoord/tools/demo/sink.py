"""Where the counts go: a SQLite file that counts each line once, however often it is delivered.

A consumer that commits after processing gets lines again if it dies in between: at-least-once delivery. The sink keeps,
in the same transaction as the counts of a partition, the offset it expects next there. Lines before that are already
known and skipped; a gap would be a loss and is refused. So the counts are exact, whichever process dies when.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from kcoord.client import Record
from kcoord.tools.demo.corpus import words

BUSY_SECONDS = 30.0

_SCHEMA = """
create table if not exists progress (
    partition integer primary key, next_offset integer not null, repeated integer not null
);
create table if not exists words (
    partition integer not null, word text not null, count integer not null, primary key (partition, word)
) without rowid;
"""


class LinesMissing(Exception):
    """Lines were skipped on the way to the sink: some of the input would not be counted."""


@dataclass(frozen=True, slots=True)
class Total:
    """What the sink holds. `lines` were counted; `repeated` deliveries were recognised and not counted again."""

    words: Counter[str]
    lines: int
    repeated: int


class Sink:
    """Counts of words by partition. Several processes may have it open; each transaction is one partition's batch."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        # Survives the death of a process at any time; only a power cut could undo the last transactions.
        self._database.execute("pragma journal_mode = wal")
        self._database.execute("pragma synchronous = normal")
        self._database.executescript(_SCHEMA)

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, partition: int, records: Sequence[Record[str]]) -> int:
        """Count the words of `records`, which are consecutive lines; returns how many were already known.

        Raises LinesMissing if they begin after the expected line.
        """
        with self._transaction():
            expected = self._expected(partition)
            if records[0].offset > expected:
                raise LinesMissing(f"partition {partition}: expected line {expected}, got {records[0].offset}")
            fresh = [record for record in records if record.offset >= expected]
            repeated = len(records) - len(fresh)
            counted = Counter(word for record in fresh for word in words(record.value))
            self._database.executemany(
                "insert into words values (?, ?, ?) on conflict do update set count = count + excluded.count",
                [(partition, word, count) for word, count in counted.items()],
            )
            self._database.execute(
                "insert into progress values (?, ?, ?) on conflict do update"
                " set next_offset = excluded.next_offset, repeated = repeated + excluded.repeated",
                (partition, max(expected, records[-1].offset + 1), repeated),
            )
        return repeated

    def total(self) -> Total:
        """Everything that was counted so far."""
        with closing(self._database.execute("select word, sum(count) from words group by word")) as rows:
            counted = Counter(dict(rows))
        query = "select coalesce(sum(next_offset), 0), coalesce(sum(repeated), 0) from progress"
        lines, repeated = self._database.execute(query).fetchone()
        return Total(counted, lines, repeated)

    def _expected(self, partition: int) -> int:
        row = self._database.execute("select next_offset from progress where partition = ?", (partition,)).fetchone()
        return row[0] if row else 0

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._database.execute("rollback")
            raise
        self._database.execute("commit")
