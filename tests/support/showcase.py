"""A showcase that runs a service of its own, for tests and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kcoord.stack import credentials
from tests.support.processes import Running, start

START_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Showcase:
    """A running one: its process, the address of its service without a slash at the end, and how to sign in."""

    running: Running
    url: str
    data_dir: Path
    known: credentials.Credentials


@contextmanager
def run_showcase(*arguments: str) -> Iterator[Showcase]:
    """Start one and wait until its service answers; end it and its service afterwards."""
    with start("showcase", ["-m", "kcoord.tools.showcase", *arguments], None) as running:
        running.wait_for_output(" while the demo runs)", START_SECONDS)
        said = re.search(r"dashboard: (\S+)/ \(user and password are in (\S+) while", running.output)
        assert said is not None, running.output
        data_dir = Path(said[2]).parent
        yield Showcase(running, said[1], data_dir, credentials.read(data_dir))
