"""The groups that populations are copied from, formed over HTTP as members do it."""

from __future__ import annotations

from typing import Any

import httpx

from tests.bench.populate import Template
from tests.bench.requests import TOPIC
from tests.bench.storm import Storm, join_all
from tests.support.http_members import make_token
from tests.support.processes import Running

CONSUMER_TOPIC = "shared"
WIDE_TOPIC = "wide"
ROUNDS = 30
SESSION_MS = 21_600_000


def form(conninfo: str, server: Running, members: int, wide: int) -> tuple[str, dict[str, Template]]:
    """An unrestricted token and a template for each protocol; the size is that of the consumer group."""
    token = make_token(conninfo)
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        for name, partitions in ((TOPIC, 50 * max(10, members)), (CONSUMER_TOPIC, members), (WIDE_TOPIC, wide)):
            client.post("/v1/topics", json={"name": name, "partitions": partitions}).raise_for_status()
        consumer = _consumer_group(client, members)
    storm = Storm(server.port or 0, token, 1, 1, "template-classic", session_timeout_ms=SESSION_MS, limit=60)
    ids, generation = join_all(storm).one
    return token, {"classic": Template("template-classic-0", ids, generation), "consumer": consumer}


def _consumer_group(client: httpx.Client, members: int) -> Template:
    """Everybody joins, and sends heartbeats with what it has until a whole round has changed nothing."""
    group_id = "template-consumer"
    epochs: dict[str, int] = {f"00000000-0000-0000-0000-{number:012}": 0 for number in range(members)}
    owned: dict[str, list[dict[str, Any]]] = {member: [] for member in epochs}
    for _ in range(ROUNDS):
        before = dict(epochs), {member: list(topics) for member, topics in owned.items()}
        for member, epoch in list(epochs.items()):
            body: dict[str, Any] = {"member_id": member, "member_epoch": epoch, "topic_partitions": owned[member]}
            if epoch == 0:
                body |= {"rebalance_timeout_ms": 300_000, "subscribed_topic_names": [CONSUMER_TOPIC]}
            answer = client.post(f"/v1/groups/{group_id}/consumer-heartbeat", json=body)
            answer.raise_for_status()
            epochs[member] = answer.json()["member_epoch"]
            if answer.json()["assignment"] is not None:
                given = answer.json()["assignment"]["topic_partitions"]
                owned[member] = [{"topic_id": one["topic_id"], "partitions": one["partitions"]} for one in given]
        if (epochs, owned) == before and len(set(epochs.values())) == 1 and all(owned.values()):
            return Template(group_id, list(epochs), epochs[member])
    raise AssertionError(f"the consumer group is not Stable after {ROUNDS} rounds: {epochs}, {owned}")
