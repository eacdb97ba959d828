"""What happens to items is in the journal, in the transaction in which it happens. Source: share.md 8."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import psycopg

from kcoord.database.clock import VirtualClock
from tests.offsets.share.test_racing import acquired, prepared
from tests.support.items import GROUP, held, joined, settle
from tests.support.placed import lines, misplaced


def told(database: str) -> list[tuple[str, dict[str, Any]]]:
    """The lines of partition 0, of which all have to agree with the rows."""
    with psycopg.connect(database) as connection:
        assert misplaced(connection) == {}
        return [(kind, said) for kind, _, partition, said in lines(connection) if partition == 0]


async def test_each_end_of_an_item_has_its_line(
    api: httpx.AsyncClient, job: str, clock: VirtualClock, database: str
) -> None:
    await joined(api, "w")
    ((lock, _, _),) = await held(api, "w", 8, end=8)
    half = {"lock": lock, "accept": [[0, 1]], "gap": [[2, 2]], "release": [[6, 6]]}
    for _ in range(2):  # told twice, done once
        await settle(api, "w", half, {"lock": lock, "accept": [[3, 3]], "reject": [[4, 5]], "error": "no such address"})
    assert await asyncio.to_thread(told, database) == [
        ("items_begin", {"begin": 0}),
        ("items_dead", {"rejected": [[4, 5]]}),
        ("items_done", {"accept": [[0, 1], [3, 3]], "gap": [[2, 2]]}),
    ]
    response = await api.patch(f"{GROUP}/config", json={"share.delivery.count.limit": 2})
    assert response.status_code == 200, response.text
    clock.advance(60_000)
    await held(api, "w", 2)
    clock.advance(60_000)
    assert await held(api, "w", 2) == []
    dead = (await api.get(f"{GROUP}/dead-letters")).json()["dead_letters"]
    ids = {letter["offset"]: letter["id"] for letter in dead}
    for act, named in ("discard", [ids[4]]), ("replay", [ids[5]]):
        response = await api.post(f"{GROUP}/dead-letters/{act}", json={"ids": named})
        assert response.status_code == 200, response.text
    assert (await asyncio.to_thread(told, database))[3:] == [
        ("items_dead", {"limit": [[6, 7]]}),
        ("items_done", {"discard": [[4, 4]]}),
    ]
    page = (await api.get(f"{GROUP}/commits", params={"kind": "items_done", "limit": 1})).json()["commits"]
    assert [(line["committed_offset"], line["member_id"], line["metadata"]) for line in page] == [
        (None, "", '{"discard":[[4,4]]}')
    ]


def test_a_transaction_that_is_undone_leaves_no_line(database: str) -> None:
    prepared(database)
    with psycopg.connect(database) as connection:
        found = acquired(connection, "w", 300)
        locks = {partition: lock for lock, partition, _ in found}
        items = json.dumps([{"lock": lock, "accept": [[0, 9]]} for lock in locks.values()])
        call = "select kcoord.settle('mailing', 'w', %s::text::jsonb)"
        connection.execute(call, [items])
        connection.rollback()
        assert [kind for kind, *_ in lines(connection)] == ["items_begin"] * 2
        connection.execute(call, [items])
        connection.commit()
        assert sorted(lines(connection)[2:]) == [
            ("items_done", "job", partition, {"accept": [[0, 9]]}) for partition in sorted(locks)
        ]
        assert misplaced(connection) == {}


def test_a_partition_that_begins_again_counts_anew(database: str) -> None:
    prepared(database)
    with psycopg.connect(database) as connection:
        ((lock, partition, offset),) = acquired(connection, "w", 1)
        item = json.dumps([{"lock": lock, "accept": [[offset, offset]]}])
        connection.execute("select kcoord.settle('mailing', 'w', %s::text::jsonb)", [item])
        connection.execute(
            "select kcoord.share_alter(g.id, t.topic_id, %s, 0) from groups_group g, groups_topic t", [partition]
        )
        assert lines(connection)[-1] == ("items_begin", "job", partition, {"begin": 0})
        assert misplaced(connection) == {}
        connection.execute("update offsets_sharepartition set next_offset = 1 where partition = %s", [partition])
        assert misplaced(connection) == {("job", partition, 0): 0}, "what was accepted before is due again"
