"""The location of an archive: KCOORD_ARCHIVE_PATH as it is recorded."""

from __future__ import annotations

from pathlib import Path

BASE = Path(__file__).resolve().parent.parent.parent.parent
"""Paths are relative to the checkout, like those of the data directory."""


def resolved(address: str) -> str:
    """An absolute path, or a URI without a slash at its end."""
    return address.rstrip("/") if "://" in address else str((BASE / address).resolve())
