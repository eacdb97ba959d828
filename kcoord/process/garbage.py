"""Python's search for cyclic garbage, so that it does not stop the event loop.

A full search visits every object of the process: with thousands of waiting requests it takes half a second, and Python
starts it again whenever the heap has grown by a quarter, most often during a storm of joins. Nearly everything here is
freed without it. So a full search is made seldom, preferably while the process has little to do, and what it leaves is
not searched again: the next one visits only what is new since. Everything is searched only after the process has grown
by much, which is how it would show that old objects have become garbage.

Young objects are searched as always, and every few milliseconds besides. Python counts how many more were made than
were freed: while a storm's first requests are freed and as many second ones made, the count stands still, and the next
search of "young" objects visits several hundred thousand.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

YOUNG, MIDDLE = 2_000, 1
"""Python's first two thresholds: new objects until the young ones are searched, and such searches until the next kind.

Python's 700 make each storm of requests many searches; with many thousands a single one takes several milliseconds. The
next kind is made sooner than Python's 10: it visits each object once all the same, but fewer at a time.
"""
NEVER = 1_000_000_000
YOUNG_SECONDS = 0.01
"""Between two searches of young objects; one that finds nothing new takes a few microseconds."""
LOOK_SECONDS = 10.0
LEAST_SECONDS = 60.0
"""Between two full searches."""
SHARE = 1 / 1_000
"""The part of the time that full searches may take."""
PATIENCE = 4
"""A busy process puts a search off until this many times the usual pause is over."""
BUSY = 0.5
"""The part of a processor's time above which a process is busy."""
GROWN_BYTES = 512 * 2**20
"""A process that has grown by this much since everything was searched has it searched again, and does not wait long."""


def is_due(since: float, took: float, load: float, grown: int) -> bool:
    """Whether to make a full search now: `since` the last one, which `took` that long, both in seconds.

    `load`: the part of a processor's time that the process uses. `grown`: bytes since the last search.
    """
    pause = max(LEAST_SECONDS, took / SHARE)
    if since < pause:
        return grown >= GROWN_BYTES and since >= max(LEAST_SECONDS, took / SHARE / 10)
    return load < BUSY or grown >= GROWN_BYTES or since >= PATIENCE * pause


def resident_bytes() -> int:
    """Memory of this process; 0 where the kernel does not say it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def busy_seconds(schedstat: Path = Path("/proc/self/schedstat")) -> float:
    """Seconds of CPU that this process has used, and for which its main thread has waited for a processor.

    A process that other programs keep from running has much to do, however little it has done.
    """
    try:
        waited = int(schedstat.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # the kernel does not say it
        waited = 0.0
    return time.process_time() + waited


@dataclass(slots=True)
class Made:
    """When a search ended, and how long it took, both in seconds."""

    at: float = 0.0
    took: float = 0.0


class GarbageSearch:
    """Takes over from Python between `start` and `stop`, for a process that runs an event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = busy_seconds,
        memory: Callable[[], int] = resident_bytes,
    ) -> None:
        self._clock, self._cpu, self._memory = clock, cpu, memory
        self._before = gc.get_threshold()
        self._handle: asyncio.TimerHandle | None = None
        self._young: asyncio.TimerHandle | None = None
        self._searches = 0
        self._looked = self._used = 0.0
        self._new, self._all = Made(), Made()
        self._resident = 0

    def start(self) -> None:
        """Everything that exists now is taken to stay."""
        self._before = gc.get_threshold()
        gc.set_threshold(YOUNG, MIDDLE, NEVER)
        self._search(everything=True)
        self._new.took = 0.0  # the next one does not visit what was there
        self._look_later()
        self._search_young_later()

    def stop(self) -> None:
        """Leave the search to Python again."""
        if self._young is not None:
            self._young.cancel()
            self._young = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
            gc.unfreeze()
            gc.set_threshold(*self._before)

    def look(self) -> None:
        """Make a full search if it is time."""
        now, used = self._clock(), self._cpu()
        load = (used - self._used) / max(now - self._looked, 0.001)
        grown = self._memory() - self._resident
        everything = grown >= GROWN_BYTES and is_due(now - self._all.at, self._all.took, load, grown)
        if everything or is_due(now - self._new.at, self._new.took, load, 0):
            self._search(everything=everything)
            log.debug("garbage_searched", ms=round(self._new.took * 1_000), everything=everything)
        self._look_later()

    def search_young(self) -> None:
        """Search what is new since the last time, and each few times also what such searches have left."""
        self._searches += 1
        gc.collect(0 if self._searches % (MIDDLE + 1) else 1)
        self._search_young_later()

    def _search_young_later(self) -> None:
        self._young = asyncio.get_running_loop().call_later(YOUNG_SECONDS, self.search_young)

    def _search(self, *, everything: bool) -> None:
        """Search what is new, or everything, and take what is left to stay."""
        began = self._clock()
        if everything:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._new = Made(self._clock(), self._clock() - began)
        if everything:
            self._all = replace(self._new)
            self._resident = self._memory()

    def _look_later(self) -> None:
        self._looked, self._used = self._clock(), self._cpu()
        self._handle = asyncio.get_running_loop().call_later(LOOK_SECONDS, self.look)
