"""What is counted of Kafka clients: requests by API and version, connections, and why they were closed."""

from __future__ import annotations

from prometheus_client import REGISTRY

from kcoord.door.kafka.gateway import Gateway
from tests.support.members import eventually
from tests.wire.client import WireClient
from tests.wire.conftest import Connect


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


async def test_requests_are_counted_by_api_and_version(wire: WireClient) -> None:
    def counts() -> list[float]:
        requests = [value("kcoord_kafka_requests_total", api="metadata", version=version) for version in ("9", "12")]
        return [*requests, value("kcoord_kafka_request_seconds_count", api="metadata")]

    before = counts()
    for version in (9, 12, 12):
        await wire.ask("metadata", version, topics=[])
    assert [after - was for after, was in zip(counts(), before, strict=True)] == [1, 2, 3]


async def test_connections_are_counted_with_the_reason_of_their_end(connect: Connect, gateway: Gateway) -> None:
    before = value("kcoord_kafka_connections_closed_total", reason="invalid")
    client = await connect()
    await connect()
    assert value("kcoord_kafka_connections") == 2
    client.send_raw(b"abc")
    assert await client.is_closed()
    await eventually(lambda: len(gateway.peers.open) == 1, "it is closed")
    assert value("kcoord_kafka_connections") == 1
    assert value("kcoord_kafka_connections_closed_total", reason="invalid") == before + 1
