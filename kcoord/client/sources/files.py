"""Files as records, one each: a directory with numbered files for each partition.

The offset of a file is its number. Numbers have no gaps: `append` gives a file the next one at the moment when it is
complete, with a hard link, which of several writers only one can make. A reader that meets a missing number waits for
it, so that no file is skipped.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kcoord.client.errors import OffsetOutOfRangeError
from kcoord.client.types import Record, TopicPartition

DIGITS = 12
"""Numbers are padded with zeros, so that the files are listed in order."""


class NumberedFiles:
    """The files `<directory>/<topic>/<partition>/<number><suffix>`; keys are their names, values their paths.

    Parameters: `directory`, on a file system that knows hard links, the same for all readers; `suffix`, e.g. ".json".
    Files may be deleted from the oldest on, but the newest has to stay: its number tells the next.
    """

    def __init__(self, directory: str | os.PathLike[str], suffix: str = "") -> None:
        self._directory = Path(directory)
        self._suffix = suffix

    def path(self, topic: str, partition: int, offset: int) -> Path:
        """Where a file is, or will be."""
        return self._partition(topic, partition) / f"{offset:0{DIGITS}}{self._suffix}"

    def append(self, topic: str, partition: int, content: bytes) -> int:
        """Add a file; returns its offset. Several programs may do that at once.

        The file appears complete, and is on disk when this returns. Raises OSError.
        """
        where = self._partition(topic, partition)
        where.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".", dir=where)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            offset = self._number(topic, partition, name)
        finally:
            Path(name).unlink()
        _sync(where)
        return offset

    def delete_before(self, topic: str, partition: int, offset: int) -> int:
        """Delete the files with smaller offsets, except the newest of all; returns how many were deleted."""
        numbers = self._numbers(topic, partition)
        old = [number for number in numbers[:-1] if number < offset]
        for number in old:
            self.path(topic, partition, number).unlink(missing_ok=True)
        return len(old)

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[Path]]:
        """See `RecordSource.fetch`."""
        records: list[Record[Path]] = []
        while len(records) < max_records:
            path = self.path(topic, partition, offset + len(records))
            if not path.exists():
                break
            records.append(Record(topic, partition, offset + len(records), key=path.name, value=path))
        if not records:
            self._check(topic, partition, offset)
        return records

    def beginning_offset(self, topic: str, partition: int) -> int:
        """The number of the oldest file, 0 without files."""
        return next(iter(self._numbers(topic, partition)), 0)

    def end_offset(self, topic: str, partition: int) -> int:
        """The number after that of the newest file."""
        numbers = self._numbers(topic, partition)
        return numbers[-1] + 1 if numbers else 0

    def _partition(self, topic: str, partition: int) -> Path:
        return self._directory / topic / str(partition)

    def _number(self, topic: str, partition: int, name: str) -> int:
        """Link the file to the next number."""
        offset = self.end_offset(topic, partition)
        while True:
            try:
                os.link(name, self.path(topic, partition, offset))
            except FileExistsError:  # another writer was faster
                offset += 1
            except OSError as error:
                if error.errno in (errno.EPERM, errno.ENOTSUP):
                    raise OSError(error.errno, "the file system has no hard links, which append needs", name) from error
                raise
            else:
                return offset

    def _numbers(self, topic: str, partition: int) -> list[int]:
        """The numbers of the files, ascending; other files are ignored."""
        try:
            names = [path.name for path in self._partition(topic, partition).iterdir()]
        except FileNotFoundError:
            return []
        stems = [name.removesuffix(self._suffix) for name in names if name.endswith(self._suffix)]
        return sorted(int(stem) for stem in stems if len(stem) >= DIGITS and stem.isascii() and stem.isdigit())

    def _check(self, topic: str, partition: int, offset: int) -> None:
        """Raise unless files are only not there yet."""
        if offset > 0 and self.path(topic, partition, offset - 1).exists():
            return
        first, end = self.beginning_offset(topic, partition), self.end_offset(topic, partition)
        if not first <= offset <= end:
            where = TopicPartition(topic, partition)
            raise OffsetOutOfRangeError(
                f"{self._partition(topic, partition)} ({where}) has the files {first} to {end - 1}: were they deleted?"
            )


def _sync(directory: Path) -> None:
    """Write the names in a directory to disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
