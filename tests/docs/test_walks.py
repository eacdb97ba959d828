"""How many files one request of each kind goes through: a change that needs more has to say why.

The counts are printed (`pytest -s`), for section 9 of docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import json
from contextvars import copy_context
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from groups.catalogue.topics import TopicService
from kcoord.asgi import BY_PATH, application
from kcoord.http.door import DOOR, Door
from kcoord.http.peers import PeerLimits, Peers
from kcoord.process.runtime import Runtime
from kcoord.stack.protocol_httptools import HttpProtocol
from tests.docs.walks import Walk, walking
from tests.support.doors import post
from tests.support.members import eventually
from tests.support.told import told

MOST_FILES = {"join": 66, "consumer-heartbeat": 73, "offsets/commit": 60}
"""Three are of coordinator nodes: whether this node answers (`groups.nodes.hosting`), the partition of the group
(`groups.core.coordinator`), and whether its deadlines start over (`groups.core.rearming`). Five are of the lanes: what
may be answered or written without a transaction of the group (`groups.lane`, `offsets.lane`). One counts requests
without a lock (`kcoord.tallies`), and one says what rules mean, for tokens and people (`kcoord.access.rules`). Three
are of quotas: what a request counts as (`groups.api.metering`, `offsets.api.
metering`), its weight (`kcoord.quotas.budgets`), and who is limited (`kcoord.quotas.quotas`). """

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
COMMIT = {"topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 7}]}]}


class Peer(asyncio.Transport):
    """A connection without a network. `answer`: what came back since a request was sent."""

    answer = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 80) if name.endswith("name") else None

    def write(self, data: Any) -> None:
        self.answer += bytes(data)

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Connection:
    """A connection of the server."""

    def __init__(self, runtime: Runtime, token: str) -> None:
        state = {DOOR: Door(runtime, BY_PATH)}
        self._peer, self._token = Peer(), token
        config = uvicorn.Config(application, lifespan="off", log_config=None, ws="none")
        peers = Peers(PeerLimits.of(runtime.config))
        self._protocol = HttpProtocol(peers, config=config, server_state=ServerState(), app_state=state)
        self._protocol.connection_made(self._peer)

    async def walk_of(self, call: str, body: dict[str, Any], status: int) -> Walk:
        """Of a request to a new group. The first of a process also reads what is kept in memory from then on."""
        for number in range(2):
            target = f"/v1/groups/{call.replace('/', '-')}-{number}/{call}".encode()
            self._peer.answer = b""
            with walking() as walk:
                self._protocol._own = copy_context()
                self._protocol.data_received(post(target, json.dumps(body).encode(), token=self._token))
                await eventually(lambda: self._peer.answer, "it is answered")
            assert self._peer.answer.startswith(b"HTTP/1.1 %d " % status), self._peer.answer
        return walk


async def test_no_request_goes_through_more_files(runtime: Runtime, token: str) -> None:
    await told(runtime)
    await runtime.get(TopicService).create("orders", 3)
    connection = Connection(runtime, token)
    walks = {
        "join": await connection.walk_of("join", JOIN, 409),
        "consumer-heartbeat": await connection.walk_of("consumer-heartbeat", HEARTBEAT, 200),
        "offsets/commit": await connection.walk_of("offsets/commit", COMMIT, 200),
    }
    for call, walk in walks.items():
        print(f"{call}: {len(walk.files)} files, {walk.functions} functions")
    assert {call: len(walk.files) for call, walk in walks.items() if len(walk.files) > MOST_FILES[call]} == {}
