"""A consumer as a process: says what it owns on standard output, until SIGTERM, until it is killed, or until the
test run has ended that started it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from tests.support.processes import Running, start


def start_worker_process(topic: str, settings: dict[str, Any], kind: str = "sync") -> Running:
    """Start a consumer of `topic` with these settings; `kind` "sync" or "async", or "share" for a worker of
    a share group that never ends with its first item.
    """
    return start("consumer", ["-m", "tests.kcoord.client.worker", topic, json.dumps(settings), kind], None)


class Told:
    """Says how many partitions there are whenever that changes."""

    last = -1

    def note(self, count: int) -> None:
        if count != self.last:
            self.last = count
            print("assigned", count, flush=True)


def main(topic: str, settings: dict[str, Any]) -> None:
    """Poll until SIGTERM."""
    from kcoord.client import Consumer

    told, parent = Told(), os.getppid()
    with Consumer(topic, stop_on=(signal.SIGTERM,), **settings) as consumer:
        while not consumer.stopping and os.getppid() == parent:
            consumer.poll(100)
            told.note(len(consumer.assignment()))


async def async_main(topic: str, settings: dict[str, Any]) -> None:
    """Poll until SIGTERM."""
    from kcoord.client import AsyncConsumer

    told, parent = Told(), os.getppid()
    async with AsyncConsumer(topic, stop_on=(signal.SIGTERM,), **settings) as consumer:
        while not consumer.stopping and os.getppid() == parent:
            await consumer.poll(100)
            told.note(len(consumer.assignment()))


def share_main(topic: str, settings: dict[str, Any]) -> None:
    """Take items, and work on the first one until it is killed."""
    from kcoord.client import ShareConsumer

    with ShareConsumer(topic, **settings) as worker:
        for item in worker:
            print("begun", item.offset, flush=True)
            while True:
                signal.pause()


if __name__ == "__main__":
    if sys.argv[3:] == ["share"]:
        share_main(sys.argv[1], json.loads(sys.argv[2]))
    elif sys.argv[3:] == ["async"]:
        asyncio.run(async_main(sys.argv[1], json.loads(sys.argv[2])))
    else:
        main(sys.argv[1], json.loads(sys.argv[2]))
