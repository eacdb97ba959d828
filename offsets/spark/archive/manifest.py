"""Manifests: what the archive consists of after each publication, in `manifests/<number>.json`.

A manifest is written before the entry of the Delta log that makes its files visible, and counts once that entry exists:
the entry carries its number, as the version of the application transaction `kcoord`. Each lists all files of the table
with size and SHA-256, so the newest is enough to check the archive; the Delta log has neither.

Standard library only: the service reads manifests before it drops a day of the journal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

VERSION = 1
KEPT = 100
"""The number of newest manifests that are kept."""


class ManifestUnreadable(Exception):
    """Not a manifest, or one of a later release. The text says which."""


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A Parquet file of the table. `path` is relative to the table, `date` as YYYY-MM-DD, `size` in bytes."""

    path: str
    date: str
    rows: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class RetiredFile:
    """A file that compaction replaced at `at` (ms): readers of the previous version may still read it."""

    path: str
    at: int


@dataclass(frozen=True, slots=True)
class ManifestDay:
    """What the publication added to a day: rows, and the sum of their hashes."""

    date: str
    rows: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The archive after publication `number` by `run_id`.

    `bound`: committed rows of transactions below it are in the archive, for the cluster that `system_identifier` and
    `timeline` identify. `rebased`: `days` are all days that the journal had, not only those added.
    """

    number: int
    run_id: UUID
    archive_id: str
    schema_version: int
    system_identifier: str
    timeline: int
    bound: int
    published_at: int
    rebased: bool
    files: Sequence[ArchivedFile]
    retired: Sequence[RetiredFile]
    days: Sequence[ManifestDay]

    def to_bytes(self) -> bytes:
        """Its stored form."""
        written = {**asdict(self), "run_id": str(self.run_id), "manifest_version": VERSION}
        return (json.dumps(written, indent=1, sort_keys=True) + "\n").encode()

    def renumbered(self, number: int, run_id: UUID) -> Manifest:
        """The start of the next manifest: the same files, and nothing added."""
        return replace(self, number=number, run_id=run_id, rebased=False, days=())


def path_of(number: int) -> str:
    """The path of a manifest, relative to the archive."""
    return f"manifests/{number:012d}.json"


def digest(data: bytes) -> str:
    """The SHA-256 of a manifest as it is stored, in hex."""
    return hashlib.sha256(data).hexdigest()


def parse(data: bytes) -> Manifest:
    """Parses the output of `to_bytes`. Raises ManifestUnreadable."""
    try:
        read: dict[str, Any] = json.loads(data)
        version = read.pop("manifest_version")
        if not isinstance(version, int) or version > VERSION:
            raise ManifestUnreadable(f"manifest version {version}; this release reads versions up to {VERSION}")
        return Manifest(
            **{
                **read,
                "run_id": UUID(read["run_id"]),
                "files": tuple(ArchivedFile(**one) for one in read["files"]),
                "retired": tuple(RetiredFile(**one) for one in read["retired"]),
                "days": tuple(ManifestDay(**one) for one in read["days"]),
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestUnreadable(f"not a manifest: {type(error).__name__} {error}") from error
