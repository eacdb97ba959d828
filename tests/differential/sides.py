"""The two sides: a server with a port for Kafka clients, and a broker, set alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.bench.kafka import broker
from tests.differential.playing import prepared
from tests.differential.running import Both, Report, run
from tests.wire.kafka_workers import listening_on

PROPERTIES = """group.consumer.assignment.interval.ms=0
group.consumer.min.assignment.interval.ms=0
group.consumer.assignor.offload.enable=false
group.initial.rebalance.delay.ms=0
group.consumer.assignors=range,uniform
"""
"""The broker computes targets at once, as this service does; `uniform` resolves ties by hashes of member ids."""
SETTINGS = {
    "KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": 45_000,
    "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": 5_000,
    "KCOORD_GROUP_CONSUMER_ASSIGNORS": "range,uniform",
}
"""The server has the timeouts of the broker."""


def played(kafka: str, conninfo: str, seeds: Sequence[int], length: int, say: Callable[[str], None]) -> Report:
    """Start both, and play a sequence of each seed. Raises AssertionError if one of them does not start."""

    async def play(ours: int, token: str, theirs: int) -> Report:
        both = Both(await prepared(ours, token), await prepared(theirs, ""), f"d{seeds[0]}")
        return await run(both, seeds, length, say)

    with listening_on(conninfo, **SETTINGS) as here, broker.running(kafka, PROPERTIES) as there:
        return asyncio.run(play(here.port, here.service.token, there.port))
