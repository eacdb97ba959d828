"""COPY as Arrow record batches. NULL and the empty string are kept distinct."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
import pyarrow as pa
import pyarrow.csv as pacsv

BLOCK_BYTES = 4 << 20


class CopyStream:
    """The bytes of a COPY as a file that pyarrow can read."""

    def __init__(self, copy: psycopg.Copy) -> None:
        self._chunks = iter(copy)
        self._left = bytes(next(self._chunks, b""))
        self.is_empty = not self._left
        self.closed = False

    def readable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """Nothing is read any more."""
        self.closed = True

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer at the end."""
        parts, have = [self._left], len(self._left)
        while have < size and (chunk := next(self._chunks, None)) is not None:
            parts.append(bytes(chunk))
            have += len(chunk)
        data = b"".join(parts)
        self._left = data[size:]
        return data[:size]


def record_batches(copy: psycopg.Copy, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """The batches of a `COPY … TO STDOUT (FORMAT csv)` with these columns, in this order."""
    stream = CopyStream(copy)
    if stream.is_empty:
        return  # pyarrow refuses an empty file
    yield from pacsv.open_csv(
        stream,
        pacsv.ReadOptions(column_names=list(types), block_size=BLOCK_BYTES, use_threads=False),
        # NULL in a single column is an empty line.
        pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        # NULL arrives as nothing, an empty string as "".
        pacsv.ConvertOptions(
            column_types=dict(types),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
