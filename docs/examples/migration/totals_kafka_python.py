"""Totals per customer of the topic `orders`, with kafka-python: python totals_kafka_python.py BROKERS"""

import json
import sys

from kafka import ConsumerRebalanceListener, KafkaConsumer


class Log(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        print("revoked:", sorted(tp.partition for tp in revoked), file=sys.stderr)

    def on_partitions_assigned(self, assigned):
        print("assigned:", sorted(tp.partition for tp in assigned), file=sys.stderr)


def main(servers):
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id="totals",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        value_deserializer=json.loads,
        consumer_timeout_ms=3000,
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
