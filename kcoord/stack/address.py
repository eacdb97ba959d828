"""Where the stack of a data directory answers: a file there, so that other programs need not be given KCOORD_PORT."""

from __future__ import annotations

import fcntl
from pathlib import Path

from kcoord.stack.preflight import LOCK_FILE

ADDRESS_FILE = "address"


def write(data_dir: Path, url: str) -> None:
    """Store the address, without a slash at its end, of a stack that starts."""
    fresh = data_dir / f"{ADDRESS_FILE}.new"
    fresh.write_text(f"{url}\n")
    fresh.replace(data_dir / ADDRESS_FILE)


def read(data_dir: Path) -> str | None:
    """The address of the last stack that was started; None: none was."""
    try:
        return (data_dir / ADDRESS_FILE).read_text().strip() or None
    except FileNotFoundError:
        return None


def is_running(data_dir: Path) -> bool:
    """A stack holds the directory, ready or not."""
    try:
        with (data_dir / LOCK_FILE).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
