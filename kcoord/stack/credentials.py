"""What the stack leaves in its data directory for other programs: its address, and the credentials of the first start.

The credentials, of an admin account and an API token, are in a file that only its owner may read.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from kcoord.stack.preflight import LOCK_FILE

CREDENTIALS_FILE = "credentials"
LOG_FILE = "kcoord.log"
SECRET_KEY_FILE = "secret_key"  # noqa: S105 - the name of the file
NOTE = "# Created at the first start. Change the password in the dashboard; delete the token in the admin.\n"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What was generated at the first start; it is not updated when they are changed later."""

    admin_user: str
    admin_password: str
    api_token: str


def write(data_dir: Path, credentials: Credentials) -> Path:
    """Store them, replacing older ones; returns the file."""
    lines = [f"{name}={getattr(credentials, name)}\n" for name in credentials.__slots__]
    return write_private(data_dir / CREDENTIALS_FILE, NOTE + "".join(lines))


def read(data_dir: Path) -> Credentials:
    """What `write` stored. Raises FileNotFoundError before the first start, ValueError for a damaged file."""
    path = data_dir / CREDENTIALS_FILE
    pairs = [line.partition("=") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    try:
        return Credentials(**{name: value for name, _, value in pairs})
    except TypeError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def write_private(path: Path, text: str) -> Path:
    """Write a file of mode 0600, completely or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    return path


ADDRESS_FILE = "address"


def write_address(data_dir: Path, url: str) -> None:
    """Store the address, without a slash at its end, of a stack that starts."""
    fresh = data_dir / f"{ADDRESS_FILE}.new"
    fresh.write_text(f"{url}\n")
    fresh.replace(data_dir / ADDRESS_FILE)


def read_address(data_dir: Path) -> str | None:
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
