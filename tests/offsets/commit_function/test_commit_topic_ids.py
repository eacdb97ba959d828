"""`kcoord.commit_offsets` with ids of topics, and what it stores that is no use to readers."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psycopg

from groups.topics import TopicService
from kcoord.process.runtime import Runtime
from tests.offsets.commit_function.test_commit_function import BY_M1, member, put
from tests.support.commit_function import Refusal, commit

Connection = psycopg.Connection[tuple[Any, ...]]


def entries(*topic_ids: object) -> str:
    """Commits of the partitions of a topic, from 0 on."""
    return json.dumps(
        [
            {"topic": "orders", "partition": n, "committed_offset": 42, "topic_id": topic_id}
            for n, topic_id in enumerate(topic_ids)
        ]
    )


async def test_a_commit_of_a_topic_that_was_created_again_is_refused(connection: Connection, runtime: Runtime) -> None:
    topics = runtime.get(TopicService)
    old = str((await topics.get("orders")).topic_id)
    assert commit(connection, entries(old.upper(), None)) == 2
    connection.commit()
    await topics.delete("orders")
    gone = commit(connection, entries(old))
    connection.rollback()
    new = str((await topics.create("orders", 4)).topic_id)
    refused = commit(connection, entries(new, old))
    connection.rollback()
    assert isinstance(gone, Refusal)
    assert isinstance(refused, Refusal)
    assert (gone.sqlstate, refused.sqlstate, refused.name) == ("KC100", "KC100", "UNKNOWN_TOPIC_ID")
    assert refused.detail == "offsets[1].topic_id: topic 'orders' has no such id"
    assert commit(connection, entries(new)) == 1


async def test_what_is_no_id_is_named(connection: Connection) -> None:
    for given in ("orders", 7, str(uuid.uuid4())[:-1], {}):
        refused = commit(connection, entries(given))
        connection.rollback()
        assert isinstance(refused, Refusal)
        assert (refused.sqlstate, refused.detail) == ("KC042", "offsets[0].topic_id: not a valid UUID")


async def test_negative_offsets_and_partitions_of_others_are_stored(
    connection: Connection, runtime: Runtime, api: Any
) -> None:
    """As over HTTP, and as Kafka 4.3 does (docs/http-guide.md); lag treats them as if nothing was committed."""
    await put(runtime, member("m1"), member("m2"))
    text = json.dumps([{"topic": "orders", "partition": n, "committed_offset": -5 - n} for n in range(2)])
    assert commit(connection, text, **BY_M1) == 2
    connection.commit()
    over_http = {
        "member_id": "m2",
        "generation_id_or_member_epoch": BY_M1["generation_id"],
        "topics": [{"name": "orders", "partitions": [{"partition": 2, "committed_offset": -(2**63)}]}],
    }
    answer = await api.post("/v1/groups/g/offsets/commit", json=over_http)
    assert answer.json()["topics"][0]["partitions"][0]["error_code"] == 0
    fetched = (await api.post("/v1/groups/g/offsets/fetch", json={"topics": None})).json()["topics"][0]["partitions"]
    assert [p["committed_offset"] for p in fetched] == [-5, -6, -(2**63)]
    assert (await api.get("/v1/groups/g/lag")).status_code == 200


async def test_a_share_group_takes_no_commits(connection: Connection, api: Any) -> None:
    """With members and without; the function says of which type the group is."""
    beat = {"member_id": "worker", "member_epoch": 0, "subscribed_topic_names": ["orders"]}
    for epoch in (0, -1):
        answered = await api.post("/v1/groups/g/share-heartbeat", json={**beat, "member_epoch": epoch})
        assert answered.status_code == 200, answered.text
        refused = commit(connection, entries(None))
        connection.rollback()
        assert isinstance(refused, Refusal)
        assert (refused.sqlstate, refused.name) == ("KC069", "GROUP_ID_NOT_FOUND")
        assert "share group" in refused.detail
