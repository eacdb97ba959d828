"""The credentials of the first start: an admin account and an API token, in a file that only its owner may read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CREDENTIALS_FILE = "credentials"
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
