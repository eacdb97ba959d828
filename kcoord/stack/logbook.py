"""One log for all services: each line with its time and service, on standard output and in a file.

Lines are made readable: a JSON object becomes `level event key=value …`, other text stays.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

DROPPED = frozenset({"at", "timestamp"})
"""The log puts its own time in front of every line."""


def readable(line: str) -> list[str]:
    """The lines to show for one line that a service wrote; several if it contains a traceback."""
    if not line.startswith("{"):
        return [line]
    try:
        event = json.loads(line)
    except ValueError:
        return [line]
    if not isinstance(event, dict) or "event" not in event:
        return [line]
    head = [str(event.pop("level", "info")), str(event.pop("event"))]
    trace = str(event.pop("exception", "") or "")
    pairs = [f"{key}={_value(value)}" for key, value in event.items() if key not in DROPPED and value is not None]
    return [" ".join([*head, *pairs]).replace("\n", " "), *trace.splitlines()]


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text and not set(text) & set(' "=\n') else json.dumps(text, ensure_ascii=False)


MAX_BYTES = 20 * 1024 * 1024
WIDTH = 8


class Logbook:
    """Lines `time service | text`. The file is readable only by its owner and replaced by a new one at MAX_BYTES.

    The log never stops the stack: if the file or standard output cannot be written, the other continues.
    """

    def __init__(self, path: Path, stdout: TextIO | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._stdout: TextIO | None = stdout or sys.stdout
        self._max_bytes = max_bytes
        self._file: TextIO | None = None
        self._size = 0
        self._open()

    @property
    def is_terminal(self) -> bool:
        """Standard output is a terminal, so that nothing keeps what is shown there."""
        return self._stdout is not None and self._stdout.isatty()

    def write(self, service: str, text: str) -> None:
        """Write one line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
        line = f"{now}Z {service:<{WIDTH}} | {text}\n"
        self._print(line)
        self._append(line)

    def show(self, text: str) -> None:
        """Write to standard output only: for what must not be in the file."""
        self._print(text + "\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._file = os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
        self._size = os.fstat(descriptor).st_size

    def _print(self, line: str) -> None:
        if self._stdout is None:
            return
        encoding = getattr(self._stdout, "encoding", None) or "utf-8"
        try:
            self._stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
            self._stdout.flush()
        except (OSError, ValueError):
            self._stdout = None  # its reader is gone, or it is closed

    def _append(self, line: str) -> None:
        if self._file is None:
            return
        try:
            if self._size >= self._max_bytes:
                self._rotate()
            self._file.write(line)
            self._file.flush()
            self._size += len(line)
        except OSError as error:
            self._file = None
            self.write("stack", f"{self.path} cannot be written ({error.strerror}); logging continues without it")

    def _rotate(self) -> None:
        self.close()
        self.path.replace(self.path.with_suffix(".log.1"))
        self._open()
