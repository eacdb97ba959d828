"""Lines of files that programs append to: a directory with a file for each partition.

The offset of a line is the position in bytes of the newline that ends it. So the offset after a line is where the next
one begins, lag is the number of bytes left to read, and a line that is still being written is not read yet.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from kcoord.client.errors import OffsetOutOfRangeError
from kcoord.client.types import Record, TopicPartition

BLOCK = 1 << 16
"""How many bytes are read at once when looking for a newline backwards."""


class LineFiles:
    """The files `<directory>/<topic>/<partition><suffix>`; values are lines as `bytes`, without their newline.

    Files may be missing as long as nothing was written, and may only grow: one that was cut off or written again is
    out of range for those who had read more of it. To start over, write to a new topic.
    """

    def __init__(self, directory: str | os.PathLike[str], suffix: str = ".log") -> None:
        self._directory = Path(directory)
        self._suffix = suffix

    def path(self, topic: str, partition: int) -> Path:
        """Where the lines of a partition are."""
        return self._directory / topic / f"{partition}{self._suffix}"

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[bytes]]:
        """See `RecordSource.fetch`. An offset within a line is that of the whole line."""
        records: list[Record[bytes]] = []
        try:
            with self.path(topic, partition).open("rb") as file:
                self._check(topic, partition, offset, os.fstat(file.fileno()).st_size)
                file.seek(_start_of_line(file, offset))
                while len(records) < max_records and (line := file.readline()).endswith(b"\n"):
                    records.append(Record(topic, partition, file.tell() - 1, value=line[:-1]))
        except FileNotFoundError:
            self._check(topic, partition, offset, 0)
        return records

    def beginning_offset(self, topic: str, partition: int) -> int:
        """0."""
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        """The number of bytes in complete lines."""
        try:
            with self.path(topic, partition).open("rb") as file:
                return _start_of_line(file, os.fstat(file.fileno()).st_size)
        except FileNotFoundError:
            return 0

    def _check(self, topic: str, partition: int, offset: int, size: int) -> None:
        if not 0 <= offset <= size:
            where = TopicPartition(topic, partition)
            raise OffsetOutOfRangeError(f"{self.path(topic, partition)} ({where}) has {size} bytes: was it cut off?")


def _start_of_line(file: BinaryIO, position: int) -> int:
    """Where the line begins that `position` is in; `position` itself just behind a newline."""
    end = position
    while end > 0:
        start = max(end - BLOCK, 0)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
