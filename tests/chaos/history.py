"""What happened, as JSON lines: one file per process while it runs, one merged list afterwards.

Every line has `k`, its kind, and `t`, seconds of CLOCK_MONOTONIC, which all processes of a machine share. Kinds:

`start` wall: what to add to `t` for seconds since the epoch; lease_s · `group` g, topic, partitions, protocol
`begin` m, g, session_s: a member object exists · `end` m: it is closed · `killed` crew: its process was killed
`state` m, s: unjoined, rebalancing or stable, as the client says
`refused`, `failed` m, error: a call of the user raised it; it goes on, or not
`assigned`, `revoked`, `lost` m, ps: the listener was called; `revoked` when it has returned
`answer` m, g, api, sent, error, member_id, gen, more: what a request was told; error "NONE" if it succeeded,
"disconnected" if nobody answered; gen: the generation or member epoch that the answer names
`fault` name, target, s · `over` name · `jump` s: the clock went ahead · `outage` s: no server and no Celery since `t`
`quiet`: no fault after it · `finish`: after it the members are closed; what Postgres then has follows
`journal` id, g, topic, p, offset, gen, member_id · `committed` g, topic, p, offset
`event` id, g, at (ms since the epoch), what, gen, member_id, cause · `change` id, partition, epoch, gap, reason
`left` g, state, members: a group as Postgres has it before `finish`
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

Line = dict[str, Any]


class Writer:
    """Appends lines to a file of this process. Every line is flushed: the process may be killed at any time."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", buffering=1)

    def write(self, kind: str, **fields: Any) -> None:
        """Write a line; `t` is now unless it is given."""
        line = {"k": kind, "t": round(fields.pop("t", time.monotonic()), 6), **fields}
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(*paths: Path) -> list[Line]:
    """All lines of these files, in the order of time. A last line that a killed process did not finish is left out."""
    return sorted((line for path in paths for line in _lines(path)), key=lambda line: float(line["t"]))


def _lines(path: Path) -> Iterator[Line]:
    for text in path.read_text().splitlines(keepends=True):
        if text.endswith("\n"):
            yield json.loads(text)


def of_kind(lines: Iterable[Line], *kinds: str) -> list[Line]:
    """The lines of these kinds."""
    return [line for line in lines if line["k"] in kinds]
