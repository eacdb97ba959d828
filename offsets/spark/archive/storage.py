"""The folder of the archive, on a file system of this machine or on one that pyarrow knows (s3, hdfs).

An object store has no folders and no renames: `move` copies and removes there, and may be interrupted in between.
Nothing relies on more than that a file which was written is there, whole: the entry of the Delta log publishes.

    journal/     the Delta table: published rows alone
    manifests/   what each publication says of the files
    staging/     files of runs that are not published yet

Paths here are relative to the folder, with `/`.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from offsets.spark.archive.address import delta_options, resolved
from offsets.spark.errors import JobError, first_line

JOURNAL, MANIFESTS, STAGING = "journal", "manifests", "staging"
PROBE = ".probe-"
CHUNK_BYTES = 1 << 20
REMOVAL_ATTEMPTS = 10
REMOVAL_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file and its size in bytes."""

    path: str
    size: int


class Storage:
    """Reads, writes, moves and removes files of an archive. Methods raise JobError naming the path."""

    def __init__(self, address: str) -> None:
        """`address`: a path (relative to the checkout) or a URI. Raises JobError for one that cannot be used."""
        if not address:
            raise JobError("no archive is configured: set KCOORD_ARCHIVE_PATH")
        self.address = resolved(address)
        self.is_local = self.address.startswith("/")
        try:
            if self.is_local:
                self._fs, self._base = fs.LocalFileSystem(), self.address
            else:
                self._fs, self._base = fs.FileSystem.from_uri(self.address.replace("s3a://", "s3://"))
        except (pa.ArrowException, OSError) as error:
            raise JobError(f"KCOORD_ARCHIVE_PATH={address}: {first_line(error)}") from error

    def spark_path(self, path: str) -> str:
        """The path in the form that Spark uses."""
        return f"file:{self.address}/{path}" if self.is_local else f"{self.address}/{path}"

    def delta_path(self) -> str:
        """The table in the form that the deltalake wheel opens."""
        return f"{self.address.replace('s3a://', 's3://')}/{JOURNAL}"

    def delta_options(self) -> dict[str, str] | None:
        """What the deltalake wheel is told about the place."""
        return delta_options(self.address, os.environ)

    def check_writable(self) -> None:
        """Raise JobError if the folder cannot be created or written to."""
        probe = f"{PROBE}{uuid.uuid4().hex}"
        self.write(probe, b"")
        self.remove(probe)

    def files(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder, including hidden ones; none if the folder does not exist."""
        selector = fs.FileSelector(self._full(folder), allow_not_found=True, recursive=True)
        with self._explaining(folder):
            found = self._fs.get_file_info(selector)
        for info in found:
            if info.is_file:
                yield StoredFile(info.path[len(self._base) :].lstrip("/"), info.size)

    def size(self, path: str) -> int | None:
        """Its size in bytes; None if the file does not exist."""
        with self._explaining(path):
            info = self._fs.get_file_info(self._full(path))
        return info.size if info.is_file else None

    def read(self, path: str) -> bytes:
        """The contents of a small file."""
        with self._explaining(path), self._fs.open_input_stream(self._full(path)) as stream:
            return bytes(stream.read())

    def write(self, path: str, data: bytes) -> None:
        """Write a small file: all of it, on disk, or nothing."""
        with self._explaining(path):
            if not self.is_local:
                with self._fs.open_output_stream(self._full(path)) as stream:
                    stream.write(data)
                return
            target = Path(self._full(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
            _sync_folder(target.parent)

    def sha256(self, path: str, *, sync: bool = False) -> str:
        """The SHA-256 of a file, in hex. `sync`: flush it to disk first."""
        digest = hashlib.sha256()
        with self._explaining(path):
            if sync and self.is_local:
                _sync_file(Path(self._full(path)))
            with self._fs.open_input_stream(self._full(path)) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    digest.update(chunk)
        return digest.hexdigest()

    def move(self, source: str, target: str) -> None:
        """Rename a file. On an object store it is copied."""
        with self._explaining(source):
            if not isinstance(self._fs, fs.S3FileSystem):
                self._fs.create_dir(self._full(target).rpartition("/")[0], recursive=True)
            self._fs.move(self._full(source), self._full(target))

    def sync_folder(self, folder: str) -> None:
        """Flush the names of a folder's files to disk."""
        with self._explaining(folder):
            if self.is_local:
                _sync_folder(Path(self._full(folder)))

    def remove(self, path: str) -> None:
        """Remove a file."""
        with self._explaining(path):
            self._fs.delete_file(self._full(path))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and its contents, if it exists.

        The Java process of a killed driver lives on for some seconds and may still write to it: hence several attempts.
        """
        for attempt in range(1, REMOVAL_ATTEMPTS + 1):
            with self._explaining(folder):
                try:
                    if self._fs.get_file_info(self._full(folder)).type == fs.FileType.Directory:
                        self._fs.delete_dir(self._full(folder))
                except OSError:
                    if attempt == REMOVAL_ATTEMPTS:
                        raise
                    time.sleep(REMOVAL_PAUSE_SECONDS)
                else:
                    return

    def open_parquet(self, path: str) -> pa.NativeFile:
        """An open file for pyarrow.parquet."""
        with self._explaining(path):
            return self._fs.open_input_file(self._full(path))

    def rows(self, paths: Sequence[str], columns: Sequence[str], wanted: ds.Expression | None = None) -> pa.Table:
        """These columns of the rows in Parquet files that `wanted` keeps. Row groups without any are not read."""
        options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        layout = ds.ParquetFileFormat(default_fragment_scan_options=options)
        with self._explaining(paths[0] if len(paths) == 1 else JOURNAL):
            dataset = ds.dataset([self._full(path) for path in paths], filesystem=self._fs, format=layout)
            return dataset.to_table(columns=list(columns), filter=wanted)

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}"

    def _explaining(self, path: str) -> _Explaining:
        return _Explaining(self.address if path.startswith(PROBE) else f"{self.address}/{path}")


class _Explaining:
    """Turns errors about a path into JobError."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Nothing yet."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (OSError, pa.ArrowException)):
            reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
            raise JobError(
                f"the archive cannot be used: {self._what}: {reason}; check KCOORD_ARCHIVE_PATH and its permissions"
            ) from error


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: Path) -> None:
    _sync_file(path)
