"""One token that opens many connections, to both ports of two servers: no more than its quota at each of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field

import httpx
import psycopg
import pytest

from tests.support.http_members import make_token
from tests.support.processes import Running, free_port, start_server
from tests.wire.client import WireClient

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("quotas at servers; the default has them in process, one port at a time"),
]

PER_SECOND = 5
AT_ONCE = 10 * PER_SECOND
CONNECTIONS = 16
"""To each port."""
SECONDS = 4.0
PATIENCE_S = 60.0


@dataclass
class Turn:
    """How long the connections to one server go on: for SECONDS, and until it has used up what it may take at once."""

    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    answers: Counter[int] = field(default_factory=Counter)
    """By status of HTTP or error code of Kafka, of which neither means what the other does; accepted are 200 and 0."""

    @property
    def accepted(self) -> int:
        return self.answers[200] + self.answers[0]

    @property
    def counted(self) -> int:
        """Commits that were admitted: also those that a loaded machine was then too slow for (error code 15).

        They are at least what may be used at once. More are likely and not certain: refused commits over HTTP are
        counted as well, so connections that do not wait stay refused.
        """
        return self.accepted + self.answers[15]

    def goes_on(self) -> bool:
        now = time.monotonic()
        return now < self.until or (self.counted < AT_ONCE and now < self.until + PATIENCE_S)


async def over_http(client: httpx.AsyncClient, server: Running, partition: int, turn: Turn) -> None:
    """Count commits that are accepted on one connection, which asks again at once when it is refused.

    Each connection has its own partition: a commit that a later one of its partition overtook is refused, and the quota
    has counted it.
    """
    body = {"topics": [{"name": "t", "partitions": [{"partition": partition, "committed_offset": 5}]}]}
    while turn.goes_on():
        answer = await client.post(f"{server.url}/v1/groups/http/offsets/commit", json=body)
        assert answer.status_code in (200, 429), answer.text
        turn.answers[answer.status_code] += 1


async def over_the_wire(client: WireClient, number: int, turn: Turn) -> None:
    """The same, as a Kafka client that ignores how long it is told to wait."""
    partition = {
        "partition_index": number,
        "committed_offset": 5,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    topics = [{"name": "t", "partitions": [partition]}]
    while turn.goes_on():
        answer = await client.ask("offset_commit", 8, group_id="wire", topics=topics)
        code = answer.topics[0].partitions[0].error_code
        assert code in (0, 14, 15), code
        turn.answers[code] += 1


async def test_connections_share_the_quota_of_their_token_at_each_server(database: str) -> None:
    token = make_token(database)
    with psycopg.connect(database) as connection:
        connection.execute("insert into kcoord_quota values (default, 'default', '', 'commits', %s)", [PER_SECOND])
    ports = [free_port(), free_port()]
    with ExitStack() as running:
        servers = [running.enter_context(start_server(database, env={"KCOORD_KAFKA_PORT": port})) for port in ports]
        for server in servers:
            await asyncio.to_thread(server.wait_ready)
        async with AsyncExitStack() as clients:
            headers = {"Authorization": f"Bearer {token}"}
            made = [
                await clients.enter_async_context(httpx.AsyncClient(headers=headers, timeout=60))
                for _ in range(CONNECTIONS * len(servers))
            ]
            (
                await made[0].post(f"{servers[0].url}/v1/topics", json={"name": "t", "partitions": len(made)})
            ).raise_for_status()
            wires = [
                await (await clients.enter_async_context(WireClient(port))).log_in(token)
                for _ in range(CONNECTIONS)
                for port in ports
            ]
            began = time.monotonic()
            turns = [Turn(), Turn()]
            await asyncio.gather(
                *(
                    over_http(client, servers[number % 2], number, turns[number % 2])
                    for number, client in enumerate(made)
                ),
                *(over_the_wire(client, number, turns[number % 2]) for number, client in enumerate(wires)),
            )
            lasted = time.monotonic() - began
    for turn in turns:
        assert turn.counted >= AT_ONCE, turn
        assert turn.accepted <= AT_ONCE + PER_SECOND * (lasted + 1) + 1, f"with a debt of 1 s: {turn}"
