"""A worker with confluent-kafka, in the consumer protocol: it prints the lines of text files, which a group shares.

    KCOORD_TOKEN=… python worker_confluent.py DIRECTORY

Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. The topic has to exist.
KCOORD_KAFKA says where the service listens for Kafka clients.
"""

import os
import signal
import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

BATCH = 20  # lines of a partition between two commits
running = True
places = {}  # partition -> the next line


def stop(*_):
    global running
    running = False


def assigned(consumer, partitions):
    for partition in consumer.committed(partitions, timeout=10):
        places[partition.partition] = max(partition.offset, 0)


def revoked(consumer, partitions):
    for partition in partitions:
        places.pop(partition.partition, None)


def work(consumer, directory):
    for partition, line_number in list(places.items()):
        lines = (directory / f"{partition}.txt").read_text().split("\n")[:-1]
        batch = lines[line_number : line_number + BATCH]
        for number, line in enumerate(batch, line_number):
            print(partition, number, line, flush=True)
        if batch:
            places[partition] = line_number + len(batch)
            consumer.commit(offsets=[TopicPartition("lines", partition, places[partition])], asynchronous=False)


def main(directory):
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ.get("KCOORD_KAFKA", "127.0.0.1:9092"),
            "group.id": os.environ.get("KCOORD_GROUP", "lines-confluent"),
            "group.protocol": "consumer",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "worker",
            "sasl.password": os.environ["KCOORD_TOKEN"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["lines"], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while running:
        consumer.poll(0.1)  # rebalances happen here; there are never records
        try:
            work(consumer, directory)
        except KafkaException as error:
            print(f"not committed, another worker may do these lines again: {error}", file=sys.stderr)
    consumer.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main(Path(sys.argv[1]))
