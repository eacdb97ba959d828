"""One run of retention in a process of its own, as a Celery worker does it: `python -m tests.bench.sweep CONNINFO`."""

from __future__ import annotations

import asyncio
import sys

from kcoord.config import Config
from kcoord.process.runtime import Runtime
from offsets.commits.retention.sweep import RetentionService


async def sweep(conninfo: str) -> int:
    """Remove what has expired; returns the number of offsets."""
    runtime = Runtime(Config({}), conninfo)
    await runtime.start()
    try:
        return (await runtime.get(RetentionService).run()).offsets
    finally:
        await runtime.stop()


if __name__ == "__main__":
    print(asyncio.run(sweep(sys.argv[1])))
