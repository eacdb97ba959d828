"""Totals per customer of the topic `orders`, with kcoord: python totals_kcoord.py URL"""

import json
import signal
import sys
from pathlib import Path

from kcoord.client import Consumer, ConsumerRebalanceListener, Record


class JsonLines:
    """Partition p of a topic is the file TOPIC-p.jsonl here; the offset is the number of the line."""

    def fetch(self, topic, partition, offset, max_records):
        lines = self._lines(topic, partition)[offset : offset + max_records]
        return [Record(topic, partition, offset + i, value=json.loads(line)) for i, line in enumerate(lines)]

    def beginning_offset(self, topic, partition):
        return 0

    def end_offset(self, topic, partition):
        return len(self._lines(topic, partition))

    def _lines(self, topic, partition):
        return Path(f"{topic}-{partition}.jsonl").read_text().splitlines()


class Log(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        print("revoked:", sorted(tp.partition for tp in revoked), file=sys.stderr)

    def on_partitions_assigned(self, assigned):
        print("assigned:", sorted(tp.partition for tp in assigned), file=sys.stderr)


def main(url):
    consumer = Consumer(
        url=url,
        group_id="totals",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        source=JsonLines(),
        consumer_timeout_ms=3000,
        stop_on=(signal.SIGTERM, signal.SIGINT),
    )
    consumer.subscribe(["orders"], listener=Log())
    totals = {}
    for count, record in enumerate(consumer, 1):
        order = record.value
        totals[order["customer"]] = totals.get(order["customer"], 0) + order["amount"]
        if count % 100 == 0:
            consumer.commit()
    consumer.commit()
    for tp, end in consumer.end_offsets(sorted(consumer.assignment())).items():
        print(f"{tp.topic}-{tp.partition}: {consumer.committed(tp)} of {end}")
    consumer.close()
    print(json.dumps(totals, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1])
