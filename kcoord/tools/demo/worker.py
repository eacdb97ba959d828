"""One worker process: `python -m kcoord.tools.demo.worker SETTINGS`. Prints reports, one JSON object per line.

It ends on SIGTERM and when its standard input does, so that no worker outlives the demo, and leaves the group before it
exits.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kcoord.client import (
    CommitFailedError,
    Consumer,
    ConsumerRebalanceListener,
    RebalanceInProgressError,
    TopicPartition,
)
from kcoord.tools.demo.corpus import Corpus, CorpusSource
from kcoord.tools.demo.sink import Sink

BATCH_LINES = 200


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker's settings. `consumer` are settings of the client; `lines_per_second` is its pace."""

    topic: str
    manifest: str
    sink: str
    lines_per_second: int
    commit_seconds: float
    consumer: dict[str, Any]

    def argument(self) -> str:
        """As a command line argument."""
        return json.dumps(asdict(self))


def report(event: str, **fields: Any) -> None:
    """Report to the demo."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Worker(ConsumerRebalanceListener):
    """Reads lines, counts their words into the sink, then commits: in this order, or lines could be lost."""

    def __init__(self, settings: WorkerSettings, sink: Sink) -> None:
        self._settings = settings
        self._sink = sink
        self._lines = 0
        self._next_commit = time.monotonic() + settings.commit_seconds
        self.consumer = Consumer(
            source=CorpusSource(Corpus.load(Path(settings.manifest))),
            enable_auto_commit=False,
            max_poll_records=BATCH_LINES,
            stop_on=(signal.SIGTERM, signal.SIGINT),
            **settings.consumer,
        )

    def run(self) -> None:
        """Work until `stop`."""
        with self.consumer:
            self.consumer.subscribe([self._settings.topic], self)
            while not self.consumer.stopping:
                self._work()
            self._commit()
        report("stopped", lines=self._lines)

    def stop(self) -> None:
        """Stop soon; may be called from another thread."""
        self.consumer.stop()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Report what is owned now, and the generation or member epoch."""
        owned = _numbers(self.consumer.assignment())
        generation = self.consumer.generation.generation_id
        report("assigned", partitions=_numbers(assigned), owned=owned, generation=generation)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Commit what is done, so that the next owner starts there."""
        self._commit()
        if revoked:
            report("revoked", partitions=_numbers(revoked))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """Others may already have these; the sink ensures that no line counts twice."""
        report("lost", partitions=_numbers(lost))

    def _work(self) -> None:
        started = time.monotonic()
        batch = self.consumer.poll(250)
        count = sum(map(len, batch.values()))
        for partition, records in batch.items():
            self._sink.add(partition.partition, records)
        self._lines += count
        if time.monotonic() >= self._next_commit:
            self._commit()
        # The pace of a worker that does more than count words.
        due = started + count / self._settings.lines_per_second
        time.sleep(max(0.0, due - time.monotonic()))

    def _commit(self) -> None:
        self._next_commit = time.monotonic() + self._settings.commit_seconds
        report("progress", lines=self._lines)  # first: more lines committed than delivered would look like a fault
        try:
            self.consumer.commit()
        except RebalanceInProgressError:
            # The next commit covers these lines, if the rebalance leaves the partitions here.
            return
        except CommitFailedError as error:
            report("uncommitted", why=error.detail)


def _numbers(partitions: Collection[TopicPartition]) -> list[int]:
    return sorted(partition for _, partition in partitions)


def main(argument: str) -> None:
    """Run a worker until standard input ends."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    settings = WorkerSettings(**json.loads(argument))
    with Sink(Path(settings.sink)) as sink:
        worker = Worker(settings, sink)

        def wait_for_the_end() -> None:
            sys.stdin.read()
            worker.stop()

        threading.Thread(target=wait_for_the_end, name="end-of-input", daemon=True).start()
        worker.run()


if __name__ == "__main__":
    main(sys.argv[1])
