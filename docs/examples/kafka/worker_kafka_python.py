"""A worker with kafka-python: it prints the lines of text files, which a group of workers shares.

    KCOORD_TOKEN=… python worker_kafka_python.py DIRECTORY

Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. The topic has to exist.
KCOORD_KAFKA says where the service listens for Kafka clients.
"""

import os
import signal
import sys
from pathlib import Path

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata
from kafka.errors import CommitFailedError, RebalanceInProgressError

BATCH = 20  # lines of a partition between two commits
running = True


def stop(*_):
    global running
    running = False


class Places(ConsumerRebalanceListener):
    """Where this worker is in each of its partitions. A listener may not call the service itself."""

    def __init__(self):
        self.at = {}

    def on_partitions_assigned(self, assigned):
        self.at.update(dict.fromkeys(assigned))  # not known yet

    def on_partitions_revoked(self, revoked):
        for partition in revoked:
            self.at.pop(partition, None)


def work(consumer, places, directory):
    for partition, line_number in list(places.at.items()):
        if line_number is None:
            line_number = places.at[partition] = consumer.committed(partition) or 0
        lines = (directory / f"{partition.partition}.txt").read_text().split("\n")[:-1]
        batch = lines[line_number : line_number + BATCH]
        for number, line in enumerate(batch, line_number):
            print(partition.partition, number, line, flush=True)
        if batch:
            consumer.commit({partition: OffsetAndMetadata(line_number + len(batch), "", -1)})
            if partition in places.at:
                places.at[partition] = line_number + len(batch)


def main(directory):
    consumer = KafkaConsumer(
        bootstrap_servers=os.environ.get("KCOORD_KAFKA", "127.0.0.1:9092"),
        group_id=os.environ.get("KCOORD_GROUP", "lines-kafka-python"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="worker",
        sasl_plain_password=os.environ["KCOORD_TOKEN"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
    )
    places = Places()
    consumer.subscribe(["lines"], listener=places)
    consumer.partitions_for_topic("lines")  # known before it joins: kafka-python 3.0 could miss its assignment else
    while running:
        consumer.poll(timeout_ms=100)  # rebalances happen here; there are never records
        try:
            work(consumer, places, directory)
        except (CommitFailedError, RebalanceInProgressError) as error:
            print(f"not committed, another worker may do these lines again: {error}", file=sys.stderr)
    consumer.close(autocommit=False)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main(Path(sys.argv[1]))
