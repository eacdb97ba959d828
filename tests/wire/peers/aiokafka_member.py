"""A member with aiokafka, for tests: it polls, and does what the lines of its standard input ask.

    python aiokafka_member.py ADDRESS GROUP TOPIC SESSION_MS

KCOORD_TOKEN is the password. Lines and answers are those of java_member/Member.java.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

address, group, topic, session_ms = sys.argv[1:]


def text(partitions: Iterable[TopicPartition]) -> str:
    return " ".join(str(partition.partition) for partition in partitions)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None: ...

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        print("revoked", text(revoked), flush=True)


async def answer(consumer: AIOKafkaConsumer, words: list[str]) -> str:
    where = TopicPartition(topic, int(words[1])) if len(words) > 1 else None
    if words[0] == "commit":
        await consumer.commit({where: int(words[2])})
        return ""
    if words[0] == "committed":
        found = await consumer.committed(where)
        return str(-1 if found is None else found)
    return text(consumer.assignment())


async def poll(consumer: AIOKafkaConsumer) -> None:
    while True:
        await consumer.getmany(timeout_ms=200)


async def main() -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="any",
        sasl_plain_password=os.environ["KCOORD_TOKEN"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=int(session_ms),
        heartbeat_interval_ms=500,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    polling = asyncio.create_task(poll(consumer))
    while (line := (await asyncio.to_thread(sys.stdin.readline)).split()) and line != ["close"]:
        try:
            print("=", await answer(consumer, line), flush=True)
        except (KafkaError, ValueError) as error:
            print("!", repr(error), flush=True)
    polling.cancel()
    await consumer.stop()
    print("= closed", flush=True)


asyncio.run(main())
