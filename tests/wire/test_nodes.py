"""Unmodified clients of two nodes: they see both, find the owner of their group, and go on when it is killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.kcoord.client.live import FAST, Service
from tests.processes.test_examples import PARTITIONS, TOPIC
from tests.support.http_members import make_token
from tests.support.processes import Running, free_ports, start_server
from tests.wire.client import WireClient
from tests.wire.kafka_workers import Listening
from tests.wire.members import SECONDS, Member, described, member_of, polled

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"),
]

EVERYTHING = set(range(PARTITIONS))
KINDS = ["kafka-python", "confluent", "confluent-consumer"]
NAMES = [f"group-{number}" for number in range(40)]


@dataclass(frozen=True)
class Nodes(Listening):
    """Nodes by their ports for Kafka clients, which know all of them; `service` and `port`: of the first."""

    servers: Mapping[int, Running]

    def login(self) -> dict[str, str]:
        return {**super().login(), "bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.servers)}


@pytest.fixture
def nodes(database: str) -> Iterator[Nodes]:
    port = free_ports(2)
    servers = {}
    with ExitStack() as stack:
        for number in (port, port + 1):
            env = {**FAST, "KCOORD_KAFKA_PORT": number, "KCOORD_NODE_ID": f"node-{number}"}
            env["KCOORD_COORDINATOR_ROUTING"] = "owner"
            servers[number] = stack.enter_context(start_server(database, env=env))
        for server in servers.values():
            server.wait_ready()
        service = Service(servers[port], database, make_token(database))
        service.topic(PARTITIONS, TOPIC)
        yield Nodes(service, port, servers)


def eventually_true(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def owners(nodes: Nodes) -> dict[str, int]:
    """The ports that FindCoordinator names for groups, when each node owns some; else nothing."""

    async def ask() -> dict[str, int]:
        async with WireClient(nodes.port) as client:
            await client.log_in(nodes.service.token)
            found = (await client.ask("find_coordinator", 4, key_type=0, coordinator_keys=NAMES)).coordinators
        return {entry.key: entry.port for entry in found if entry.error_code == 0}

    found = asyncio.run(ask())
    return found if len(found) == len(NAMES) and set(found.values()) == set(nodes.servers) else {}


def coordinators(admin: Any, groups: Sequence[str]) -> set[int]:
    """Of groups, as confluent-kafka describes them."""
    asked = admin.describe_consumer_groups(groups, request_timeout=SECONDS)
    return {future.result().coordinator.port for future in asked.values()}


def generations_at(nodes: Nodes, port: int, groups: Sequence[str]) -> list[int]:
    """Generations or epochs of groups, as their owner describes them."""
    owner = Listening(replace(nodes.service, server=nodes.servers[port]), port)
    return [described(owner, group)[0] for group in groups]


def commit_somehow(member: Member, offset: int) -> None:
    """Commit as a program does that tries again after an error of Kafka."""
    import confluent_kafka
    import kafka

    deadline = time.monotonic() + SECONDS
    while True:
        member.poll()
        try:
            return member.commit(0, offset)
        except (kafka.errors.KafkaError, confluent_kafka.KafkaException):
            assert time.monotonic() < deadline


def test_clients_go_on_when_the_owner_of_their_group_is_killed(nodes: Nodes) -> None:
    pytest.importorskip("kafka")
    admins = pytest.importorskip("confluent_kafka.admin")
    admin = admins.AdminClient(nodes.login())
    eventually_true(lambda: {n.port for n in admin.describe_cluster().result().nodes} == set(nodes.servers))
    by_group = eventually_true(lambda: owners(nodes))
    survivor, killed = nodes.servers
    groups = [group for group, port in by_group.items() if port == killed][: len(KINDS)]
    with ExitStack() as stack:
        members = [
            stack.enter_context(closing(member_of(kind, nodes, group)))
            for kind, group in zip(KINDS, groups, strict=True)
        ]
        polled(lambda: all(member.numbers() == EVERYTHING for member in members), *members)
        for member in members:
            member.commit(0, 5)
        assert coordinators(admin, groups) == {killed}
        before = generations_at(nodes, killed, groups[:2])
        nodes.servers[killed].kill()
        for member in members:
            commit_somehow(member, 6)
        polled(lambda: all(member.numbers() == EVERYTHING for member in members), *members)
        assert [member.committed(0) for member in members] == [6, 6, 6]
        assert coordinators(admin, groups) == {survivor}
        assert generations_at(nodes, survivor, groups[:2]) == before, "their sessions have outlasted it"
