"""A consumer as a process: says what it owns on standard output, until it is killed."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.support.processes import Running, start


def start_worker_process(topic: str, settings: dict[str, Any]) -> Running:
    """Start a consumer of `topic` with these settings."""
    return start("consumer", ["-m", "tests.kcoord.client.worker", topic, json.dumps(settings)], None)


def main(topic: str, settings: dict[str, Any]) -> None:
    """Poll for ever."""
    from kcoord.client import Consumer

    told = -1
    with Consumer(topic, **settings) as consumer:
        while True:
            consumer.poll(100)
            if len(consumer.assignment()) != told:
                told = len(consumer.assignment())
                print("assigned", told, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
