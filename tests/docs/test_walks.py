"""How many files one request of each kind goes through: a change that needs more has to say why.

The counts are printed (`pytest -s`), for section 9 of docs/architecture.md.
"""

from __future__ import annotations

from typing import Any

import httpx

from groups.catalogue.topics import TopicService
from kcoord.process.runtime import Runtime
from tests.docs.walks import Walk, walking

MOST_FILES = {"join": 66, "consumer-heartbeat": 74, "offsets/commit": 61}
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


async def walk_of(api: httpx.AsyncClient, call: str, body: dict[str, Any], status: int) -> Walk:
    """Of a request to a new group. The first of a process also reads what is kept in memory from then on."""
    for number in range(2):
        with walking() as walk:
            answer = await api.post(f"/v1/groups/{call.replace('/', '-')}-{number}/{call}", json=body)
        assert answer.status_code == status, answer.text
    return walk


async def test_no_request_goes_through_more_files(api: httpx.AsyncClient, runtime: Runtime) -> None:
    await runtime.get(TopicService).create("orders", 3)
    walks = {
        "join": await walk_of(api, "join", JOIN, 409),
        "consumer-heartbeat": await walk_of(api, "consumer-heartbeat", HEARTBEAT, 200),
        "offsets/commit": await walk_of(api, "offsets/commit", COMMIT, 200),
    }
    for call, walk in walks.items():
        print(f"{call}: {len(walk.files)} files, {walk.functions} functions")
    assert {call: len(walk.files) for call, walk in walks.items() if len(walk.files) > MOST_FILES[call]} == {}
