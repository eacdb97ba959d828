"""A worker that bills orders exactly once: what it writes and how far it has come are one Postgres transaction.

    PYTHONPATH=CHECKOUT python billing.py CONNINFO ['{"group_protocol": "consumer", …}']

Any number of them share the work. KCOORD_URL and KCOORD_TOKEN say where the service is.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from kcoord.client import CommitFailedError, Consumer, RebalanceInProgressError, Record, TopicPartition

GROUP, TOPIC = "billing", "orders"
STOP = (signal.SIGTERM, signal.SIGINT)

COMMIT = "select kcoord.commit_offsets(%s, %s, %s, %s)"

AGAIN = {
    "KC014",  # COORDINATOR_LOAD_IN_PROGRESS
    "KC015",  # COORDINATOR_NOT_AVAILABLE
    "KC022",  # ILLEGAL_GENERATION
    "KC025",  # UNKNOWN_MEMBER_ID
    "KC027",  # REBALANCE_IN_PROGRESS
    "KC069",  # GROUP_ID_NOT_FOUND
    "KC100",  # UNKNOWN_TOPIC_ID: the topic was created again, and the consumer begins with the new one
    "KC113",  # STALE_MEMBER_EPOCH
    "40001",  # the group changed since the transaction's snapshot
    "40P01",  # a deadlock
}
"""Refusals after which the transaction is undone for certain and polling goes on."""


class Orders:
    """Where the records are: partition p of topic orders is the rows of shop.orders with that number."""

    def __init__(self, conninfo: str) -> None:
        self._connection = psycopg.connect(conninfo, autocommit=True)

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> list[Record]:
        rows = self._connection.execute(
            'select "offset", customer, amount from shop.orders'
            ' where partition = %s and "offset" >= %s order by "offset" limit %s',
            (partition, offset, max_records),
        )
        return [Record(topic, partition, number, value=(customer, amount)) for number, customer, amount in rows]

    def beginning_offset(self, topic: str, partition: int) -> int:
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        rows = self._connection.execute('select max("offset") from shop.orders where partition = %s', (partition,))
        ((last,),) = rows
        return 0 if last is None else last + 1


def bill(connection: psycopg.Connection[Any], consumer: Consumer, batch: dict[TopicPartition, list[Record]]) -> None:
    """Write the results of a batch and commit its offsets: all of it, or nothing."""
    orders = [record for records in batch.values() for record in records]
    lines = [(order.partition, order.offset, *order.value) for order in orders]
    ends = consumer.sink_offsets({partition: records[-1].offset + 1 for partition, records in batch.items()})
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany("insert into shop.invoice_lines values (%s, %s, %s, %s)", lines)
        cursor.executemany(
            "insert into shop.balances values (%s, %s)"
            " on conflict (customer) do update set amount = balances.amount + excluded.amount",
            sorted(order.value for order in orders),  # every worker locks customers in one order
        )
        me = consumer.group_metadata()
        cursor.execute(COMMIT, (GROUP, me.member_id, me.generation_id, Jsonb(ends)))  # last, just before the COMMIT


def work(connection: psycopg.Connection[Any], consumer: Consumer) -> None:
    """One poll and its transaction. Where that was refused, the next poll begins at the same records."""
    batch = consumer.poll(1000)
    if not batch:
        return
    try:
        bill(connection, consumer, batch)
    except (CommitFailedError, RebalanceInProgressError):
        rewind(consumer, batch)
    except psycopg.Error as error:
        # Anything else ends this process. After a lost connection nobody knows whether the transaction was committed:
        # a new member, which comes after it or fences it, must find out from the committed offsets.
        if error.sqlstate not in AGAIN:
            raise
        rewind(consumer, batch)


def rewind(consumer: Consumer, batch: dict[TopicPartition, list[Record]]) -> None:
    """Read the batch again, as far as its partitions are still here. The new owners of the others begin there too."""
    for partition, records in batch.items():
        if partition in consumer.assignment():
            consumer.seek(partition, records[0].offset)
    time.sleep(0.05)


def main(conninfo: str, **settings: Any) -> None:
    """Bill until SIGTERM or Ctrl-C: a batch that was begun is finished, and the others have its partitions at once."""
    source = Orders(conninfo)
    defaults: dict[str, Any] = {"group_id": GROUP, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    with (
        psycopg.connect(conninfo, autocommit=True) as connection,
        Consumer(TOPIC, source=source, stop_on=STOP, **{**defaults, **settings}) as consumer,
    ):
        while not consumer.stopping:
            work(connection, consumer)


if __name__ == "__main__":
    main(sys.argv[1], **json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}"))
