"""How many files one request of each kind goes through: a change that needs more has to say why.

The counts are printed (`pytest -s`), for section 9 of docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from groups.api.kafka.apis import APIS as GROUPS
from groups.topics import TopicService
from kcoord.access.rights import digest
from kcoord.asgi import BY_PATH, application
from kcoord.database.clock import VirtualClock
from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.door import DOOR, Door
from kcoord.door.http.peers import HttpPeers, PeerLimits, Phase
from kcoord.door.kafka import connection as connections
from kcoord.door.kafka.dispatch import SIZE
from kcoord.door.kafka.gateway import Gateway
from kcoord.process.runtime import Runtime
from offsets.api.kafka.apis import APIS as OFFSETS
from tests.docs.walks import Walk, walking
from tests.groups.lane.support import Process, from_memory, register
from tests.support.doors import post
from tests.support.members import eventually, stable_member
from tests.support.told import told
from tests.wire.client import request_frame

MOST_FILES = {"join": 37, "consumer-heartbeat": 36, "offsets/commit": 37, "heartbeat": 15}
"""Entered for a function or two, of an idea of their own: whether this node answers (`groups.nodes.hosting`), counts
without a lock (`kcoord.metrics`), what was acknowledged before a fail-over (`offsets.commits.acknowledged`), and the
transaction that decides batches (`groups.engine.batches`) apart from the queues they are taken from."""

JOIN = {
    "member_id": "",
    "group_instance_id": "worker-1",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 60_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "subscription": {"topics": ["orders"]}}],
    "max_wait_ms": 0,
}
HEARTBEAT = {
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}
MOST_FILES_OF_KAFKA = {"join_group": 39, "consumer_group_heartbeat": 42, "offset_commit": 41, "heartbeat": 17}
"""The same requests over Kafka's protocol."""

COMMIT = {"topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 7}]}]}

KAFKA_JOIN = {
    "session_timeout": 10_000,
    "rebalance_timeout": 60_000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}
KAFKA_HEARTBEAT = {
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout": 60_000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}
KAFKA_COMMIT = {
    "topics": [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 7}]}],
    "generation_id_or_member_epoch": -1,
    "member_id": "",
}


class Peer(asyncio.Transport):
    """A connection without a network. `answer`: what came back since a request was sent."""

    answer = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 80) if name.endswith("name") else None

    def write(self, data: Any) -> None:
        self.answer += bytes(data)

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Connection:
    """A connection of the server."""

    def __init__(self, runtime: Runtime, token: str) -> None:
        state = {DOOR: Door(runtime, BY_PATH)}
        self._peer, self._token = Peer(), token
        config = uvicorn.Config(application, lifespan="off", log_config=None, ws="none")
        peers = HttpPeers(PeerLimits.of(runtime.config))
        self._protocol = HttpProtocol(peers, config=config, server_state=ServerState(), app_state=state)
        self._protocol.connection_made(self._peer)

    async def steady(self, call: str, body: dict[str, Any]) -> Walk:
        """Of a heartbeat that is answered from memory."""
        return await _steady(lambda: self._ask(f"/v1/groups/g/{call}".encode(), body, 200))

    async def _ask(self, target: bytes, body: dict[str, Any], status: int) -> Walk:
        self._peer.answer = b""
        with walking() as walk:
            self._protocol._own = copy_context()
            self._protocol.data_received(post(target, json.dumps(body).encode(), token=self._token))
            await eventually(lambda: self._peer.answer, "it is answered")
        assert self._peer.answer.startswith(b"HTTP/1.1 %d " % status), self._peer.answer
        return walk

    async def walk_of(self, call: str, body: dict[str, Any], status: int) -> Walk:
        """Of a request to a new group. The first of a process also reads what is kept in memory from then on."""
        for number in range(2):
            walk = await self._ask(f"/v1/groups/{call.replace('/', '-')}-{number}/{call}".encode(), body, status)
        return walk


class KafkaConnection:
    """A connection of Kafka's door, logged in."""

    def __init__(self, gateway: Gateway, token: str) -> None:
        self._peer = Peer()
        self._connection = connections.Connection(gateway)
        self._connection.connection_made(self._peer)
        session = self._connection.session
        session.secret, session.token = token, digest(token)
        self._connection.peer.enter(Phase.IDLE)

    async def walk_of(self, name: str, version: int, **fields: Any) -> Walk:
        """As that of `Connection`. `fields` of the request, but its group."""
        for number in range(2):
            walk = await self._ask(name, version, fields | {"group_id": f"{name}-{number}"})
        return walk

    async def steady(self, name: str, version: int, **fields: Any) -> Walk:
        """As that of `Connection`."""
        return await _steady(lambda: self._ask(name, version, fields | {"group_id": "g"}))

    async def _ask(self, name: str, version: int, fields: dict[str, Any]) -> Walk:
        self._peer.answer = b""
        frame = request_frame(name, version, fields)
        with walking() as walk:
            self._connection.data_received(SIZE.pack(len(frame)) + frame)
            await eventually(lambda: self._peer.answer, "it is answered")
        return walk


async def _steady(ask: Callable[[], Awaitable[Walk]]) -> Walk:
    found: list[Walk] = []

    async def is_from_memory() -> bool:
        answered = from_memory()
        found.append(await ask())
        return from_memory() > answered

    await eventually(is_from_memory, "heartbeats are answered from memory")
    return await ask()


async def test_no_request_goes_through_more_files(runtime: Runtime, token: str) -> None:
    await told(runtime)
    await runtime.get(TopicService).create("orders", 3)
    connection = Connection(runtime, token)
    walks = {
        "join": await connection.walk_of("join", JOIN, 409),
        "consumer-heartbeat": await connection.walk_of("consumer-heartbeat", HEARTBEAT, 200),
        "offsets/commit": await connection.walk_of("offsets/commit", COMMIT, 200),
    }
    check(walks, MOST_FILES)


async def test_no_request_of_kafka_goes_through_more_files(runtime: Runtime, token: str) -> None:
    await told(runtime)
    await runtime.get(TopicService).create("orders", 3)
    connection = KafkaConnection(Gateway(runtime, (*GROUPS, *OFFSETS)), token)
    walks = {
        "join_group": await connection.walk_of("join_group", 9, **KAFKA_JOIN),
        "consumer_group_heartbeat": await connection.walk_of("consumer_group_heartbeat", 1, **KAFKA_HEARTBEAT),
        "offset_commit": await connection.walk_of("offset_commit", 9, **KAFKA_COMMIT),
    }
    check(walks, MOST_FILES_OF_KAFKA)


async def test_no_steady_heartbeat_goes_through_more_files(
    runtime: Runtime, token: str, database: str, clock: VirtualClock
) -> None:
    """Answered from memory."""
    process: Process = register(runtime, database, "one")
    await process.open()
    member = await stable_member(process.groups, clock)
    await process.notified()
    fields = {"member_id": member.member_id, "generation_id": member.generation_id}
    by_http = Connection(runtime, token).steady("heartbeat", fields)
    check({"heartbeat": await by_http}, MOST_FILES)
    by_kafka = KafkaConnection(Gateway(runtime, (*GROUPS, *OFFSETS)), token).steady("heartbeat", 4, **fields)
    check({"heartbeat": await by_kafka}, MOST_FILES_OF_KAFKA)


def check(walks: dict[str, Walk], most: dict[str, int]) -> None:
    """Print the counts, and compare them."""
    for call, walk in walks.items():
        print(f"{call}: {len(walk.files)} files, {walk.functions} functions")
    assert {call: len(walk.files) for call, walk in walks.items() if len(walk.files) > most[call]} == {}
