"""`GET /v1/audit` and `manage.py audit`: what they say, to whom, and what names nothing that is hidden."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.core.management import CommandError, call_command

from kcoord.access.audit.acts import ACTS
from kcoord.access.audit.chain import Audit
from kcoord.process.runtime import Runtime
from tests.support.fixtures import ClientWith


async def some_acts(api: httpx.AsyncClient) -> None:
    for name in ("orders", "secret-topic"):
        await api.post("/v1/topics", json={"name": name, "partitions": 1})
    for name in ("billing", "secret-group"):
        topics = [{"name": "secret-topic", "partitions": [{"partition": 0, "committed_offset": 5}]}]
        assert (await api.post("/v1/groups", json={"group_id": name, "topics": topics})).status_code == 201
    await api.post("/v1/topics", json={"name": "secret-topic", "partitions": 1})


async def listed(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/audit", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


async def test_who_may_do_everything_sees_everything(api: httpx.AsyncClient) -> None:
    await some_acts(api)
    found = await listed(api)
    acts = ["topic.create", "group.create", "group.create", "topic.create", "topic.create"]
    assert [one["act"] for one in found] == acts
    assert (found[0]["result"], found[0]["error"]) == ("refused", "TOPIC_ALREADY_EXISTS")
    assert found[1]["after"] == {"config": {}, "offsets": {"secret-topic-0": 5}}
    assert found[1]["at"] == "2023-11-14T22:13:20.000Z"
    assert found[0]["prev"] == found[1]["hash"]
    assert [one["seq"] for one in await listed(api, act=["topic.create", "topic.delete"], result="done")] == [2, 1]
    assert [one["name"] for one in await listed(api, resource="group", name="BILL")] == ["billing"]
    assert await listed(api, to="2020-01-01T00:00:00Z") == []


async def test_nothing_that_is_hidden_is_named(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    await some_acts(api)
    limited = await client_with("describe:group:billing", "describe:topic:orders", "describe:cluster:kafka-cluster")
    answer = await limited.get("/v1/audit")
    assert "secret" not in answer.text
    found = answer.json()["records"]
    assert [(one["act"], one["name"]) for one in found] == [("group.create", "billing"), ("topic.create", "orders")]
    assert {one["address"] for one in found} == {""}
    assert (found[0]["after"], found[1]["after"]["partitions"]) == (None, 1)
    assert await listed(await client_with("read:transactional-id:t")) == []
    denied = await client_with("describe:topic:*", "deny:describe:topic:secret-topic")
    assert [one["name"] for one in await listed(denied)] == ["orders"]


async def test_pages_have_every_record_once(api: httpx.AsyncClient) -> None:
    await some_acts(api)
    found, query = [], {"limit": 2}
    while True:
        page = (await api.get("/v1/audit", params=query)).json()
        found += [one["seq"] for one in page["records"]]
        if page["next_cursor"] is None:
            break
        query = {"limit": 2, "cursor": page["next_cursor"]}
    assert found == [5, 4, 3, 2, 1]


async def audit(*arguments: str) -> str:
    out = StringIO()
    await asyncio.to_thread(call_command, "audit", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


async def test_the_command_exports_and_checks(
    api: httpx.AsyncClient, runtime: Runtime, database: str, tmp_path: Path
) -> None:
    await some_acts(api)
    chain = await runtime.get(Audit).chain()
    head = f"{chain.seq}:{chain.hash.hex()}"
    assert await audit("verify", "--head", head) == f"intact: 5 records, head {head}\n"
    exported = await audit("export")
    lines = [json.loads(line) for line in exported.splitlines()]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert {line["act"] for line in lines} <= set(ACTS)
    assert await audit("export", "--until", "2020-01-01T00:00:00Z") == ""
    assert (await audit("export", "--since", "2020-01-01T00:00:00Z")) == exported
    path = tmp_path / "audit.jsonl"
    path.write_text(exported)
    assert await audit("verify", "--file", str(path), "--head", head) == f"intact: 5 records, head {head}\n"
    path.write_text(exported.replace("billing", "invoices"))
    with pytest.raises(SystemExit) as ended:
        await audit("verify", "--file", str(path))
    assert ended.value.code == 1
    with psycopg.connect(database) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("update kcoord_auditrecord set principal = 'nobody' where seq = 3")
    with pytest.raises(SystemExit):
        await audit("verify")
    for wrong in (("--head", "x"), ("--file", str(tmp_path / "missing"))):
        with pytest.raises(CommandError, match=wrong[0]):
            await audit("verify", *wrong)
    with pytest.raises(CommandError, match="RFC 3339"):
        await audit("export", "--since", "yesterday")
