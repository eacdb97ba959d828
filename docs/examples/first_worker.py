"""Count sign-ups by country, exactly once: the counts and the offsets are stored in one Postgres transaction."""

import signal
import sys
from collections import Counter

import psycopg
from psycopg.types.json import Jsonb

from kcoord.client import CommitFailedError, Consumer, RebalanceInProgressError
from kcoord.client.sources.postgres import PostgresTable

GROUP = "signup-counts"
COUNT = """
insert into first.counts values (%s, %s)
on conflict (country) do update set signups = counts.signups + excluded.signups
"""
COMMIT = "select kcoord.commit_offsets(%s, %s, %s, %s)"

# The commit was refused and the transaction undone: this member's time is over, or it should try again.
REFUSED = {"KC014", "KC015", "KC022", "KC025", "KC027", "KC069", "KC100", "KC113", "40001", "40P01"}

database = sys.argv[1]
signups = PostgresTable(lambda: psycopg.connect(database), "first.signups", partitions=4)

with (
    psycopg.connect(database, autocommit=True) as connection,
    Consumer(
        "signups",
        group_id=GROUP,
        source=signups,
        enable_auto_commit=False,  # the transaction below commits the offsets
        auto_offset_reset="earliest",
        stop_on=(signal.SIGTERM, signal.SIGINT),
    ) as consumer,
):
    while not consumer.stopping:
        batch = consumer.poll(timeout_ms=1000)
        if not batch:
            continue
        counts = Counter(record.value["country"] for records in batch.values() for record in records)
        try:
            offsets = consumer.sink_offsets({partition: records[-1].offset + 1 for partition, records in batch.items()})
            member = consumer.group_metadata()
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(COUNT, sorted(counts.items()))  # one order for all workers: no deadlocks
                cursor.execute(COMMIT, (GROUP, member.member_id, member.generation_id, Jsonb(offsets)))
        except (CommitFailedError, RebalanceInProgressError, psycopg.Error) as error:
            if isinstance(error, psycopg.Error) and error.sqlstate not in REFUSED:
                raise  # the outcome may be unknown: end, and let a new process start from the committed offsets
            for partition, records in batch.items():
                if partition in consumer.assignment():
                    consumer.seek(partition, records[0].offset)
