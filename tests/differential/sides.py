"""The two sides: a server with a port for Kafka clients, and a broker, set alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tests.bench.kafka import broker
from tests.differential import scenarios
from tests.differential.playing import Place, prepared
from tests.differential.running import Both, Report, run
from tests.differential.scenes import Compared, compare
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


T = TypeVar("T")


def played(kafka: str, conninfo: str, seeds: Sequence[int], length: int, say: Callable[[str], None]) -> Report:
    """Start both, and play a sequence of each seed. Raises AssertionError if one of them does not start."""

    async def play(ours: Place, theirs: Place) -> Report:
        return await run(Both(ours, theirs, f"d{seeds[0]}"), seeds, length, say)

    return beside(kafka, conninfo, play)


def scenes(kafka: str, conninfo: str) -> Compared:
    """Start both, and play all scenarios. Raises AssertionError if one of them does not start."""

    async def play(ours: Place, theirs: Place) -> Compared:
        return await compare(ours, theirs, "s", scenarios.ALL)

    return beside(kafka, conninfo, play)


def played_and_compared(
    kafka: str, conninfo: str, seeds: Sequence[int], length: int, say: Callable[[str], None]
) -> tuple[Compared, Report]:
    """All scenarios and then a sequence of each seed, with one start of both."""

    async def play(ours: Place, theirs: Place) -> tuple[Compared, Report]:
        compared = await compare(ours, theirs, "s", scenarios.ALL)
        return compared, await run(Both(ours, theirs, f"d{seeds[0]}"), seeds, length, say)

    return beside(kafka, conninfo, play)


def beside(kafka: str, conninfo: str, play: Callable[[Place, Place], Awaitable[T]]) -> T:
    """What `play` returns of a server and a broker."""

    async def both(port: int, token: str, broker_port: int) -> T:
        return await play(await prepared(port, token), await prepared(broker_port, ""))

    with listening_on(conninfo, **SETTINGS) as here, broker.running(kafka, PROPERTIES) as there:
        return asyncio.run(both(here.port, here.service.token, there.port))
