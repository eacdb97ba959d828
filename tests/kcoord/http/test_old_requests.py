"""No write of a request whose client was told to give up takes effect, whichever operation of the API it is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from groups.topics import TopicService
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.requests.current import Receipt
from tests.kcoord.openapi.test_openapi import document, operations  # noqa: F401 - a fixture
from tests.support.api import Members, identity, join_body, sync_body
from tests.support.api_consumers import joining

READS = {"assign", "fetchOffsets", "fetchOffsetsOfManyGroups", "simulateAssignment"}
"""Sent with POST, but they change nothing."""
NEED_AN_ARCHIVE = {"startRun", "cancelRun"}
"""They run in `Database.transaction`, as most of the others do."""

SHOWN = (
    "undoOffsetPlan", "createPin", "deletePin", "createAcls", "deleteAcls", "alterQuotas", "createToken", "deleteToken",
    "releaseHold", "kickMember",
)  # fmt: skip
"""Of these a look shows that the requests are such that would change something."""

E = "/v1/groups/e"
OFFSETS = {"topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 7}]}]}
PRODUCER = {"producer_id": 5, "producer_epoch": 0}
STRANGER = {"producer_id": 6, "producer_epoch": 0}
SHIFT = {"strategy": "shift-by", "by": 1}
RULES = [{"operation": "read", "resource": "group", "pattern": "prefix", "name": ""}]

RULE = {"name": "old", "pattern": "literal", "group_name": "e", "verdicts": ["stuck"], "receivers": ["ops"]}

Request = tuple[str, str, Any]


ITEM = {"topic": "orders", "partition": 0}
ITEMS = {"items": [{**ITEM, "offsets": [[0, 0]]}]}
WORKER = {"member_id": "m1", "member_epoch": 1, "max_records": 1}
SHARING = {"member_id": "m1", "member_epoch": 0, "subscribed_topic_names": ["orders"]}


def of_members(leader: dict[str, Any], follower: dict[str, Any], lock: int) -> dict[str, Request]:
    """Writes of and about members; `leader` of group g, `follower` of the consumer group c, `lock` in the group s."""
    member_id = leader["member_id"]
    beat = {"member_id": "m1", "member_epoch": follower["member_epoch"]}
    return {
        "joinGroup": ("post", "/v1/groups/new/join", join_body()),
        "syncGroup": ("post", "/v1/groups/g/sync", sync_body(leader)),
        "heartbeat": ("post", "/v1/groups/g/heartbeat", identity(leader)),
        "heartbeats": ("post", "/v1/heartbeats", {"heartbeats": [{"group_id": "g", **identity(leader)}]}),
        "leaveGroup": ("post", "/v1/groups/g/leave", {"members": [{"member_id": member_id}]}),
        "kickMember": ("post", f"/v1/groups/g/members/{member_id}/kick", {}),
        "holdGroup": ("post", "/v1/groups/g/hold", {"duration_ms": 60_000}),
        "releaseHold": ("delete", "/v1/groups/held/hold", None),
        "consumerGroupHeartbeat": ("post", "/v1/groups/c/consumer-heartbeat", beat),
        "shareGroupHeartbeat": ("post", "/v1/groups/new/share-heartbeat", SHARING),
        "acquireItems": ("post", "/v1/groups/s/acquire", WORKER),
        "settleItems": (
            "post",
            "/v1/groups/s/settle",
            {"member_id": "m1", "items": [{"lock": lock, "accept": [[0, 0]]}]},
        ),
    }


def of_offsets(others: str, new: str, applied: str) -> dict[str, Request]:
    """Writes of offsets, with plans to approve, to apply and to undo."""
    return {
        "commitOffsets": ("post", f"{E}/offsets/commit", OFFSETS),
        "deleteOffsets": ("post", f"{E}/offsets/delete", {"topics": [{"name": "orders", "partitions": [1]}]}),
        "planOffsets": ("post", f"{E}/offsets/plan", SHIFT),
        "approveOffsetPlan": ("post", f"{E}/offsets/plans/{others}/approve", None),
        "applyOffsetPlan": ("post", f"{E}/offsets/plans/{new}/apply", None),
        "undoOffsetPlan": ("post", f"{E}/offsets/plans/{applied}/undo", None),
        "txnCommitOffsets": ("post", f"{E}/offsets/txn-commit", {"transactional_id": "new", **STRANGER, **OFFSETS}),
        "endTransaction": ("post", "/v1/transactions/t/end", {"committed": True, **PRODUCER}),
        "initProducerId": ("post", "/v1/transactions/t/init", {}),
        "releaseItems": ("post", "/v1/groups/s/items/release", ITEMS),
        "rejectItems": ("post", "/v1/groups/s/items/reject", ITEMS),
        "replayDeadLetters": ("post", "/v1/groups/s/dead-letters/replay", {"ids": [1]}),
        "discardDeadLetters": ("post", "/v1/groups/s/dead-letters/discard", {"ids": [1]}),
        "alterShareOffsets": ("post", "/v1/groups/new/share-offsets", {"partitions": [{**ITEM, "start_offset": 1}]}),
        "deleteShareOffsets": ("delete", "/v1/groups/left/share-offsets?topic=orders", None),
        "createPin": ("post", f"{E}/pins", {"topic": "bills"}),
        "deletePin": ("delete", f"{E}/pins?topic=orders", None),
    }


def of_the_rest(token_id: int, rule_id: int, alert_id: int) -> dict[str, Request]:
    """Writes of groups, topics, tokens and alerts."""
    return {
        "createGroup": ("post", "/v1/groups", {"group_id": "new"}),
        "deleteGroup": ("delete", E, None),
        "deleteGroups": ("delete", "/v1/groups?group_id=e", None),
        "updateGroupConfig": ("patch", f"{E}/config", {"consumer.session.timeout.ms": 50_000}),
        "updateGroupLabels": ("patch", f"{E}/labels", {"labels": {"owner": "billing"}}),
        "createAlertRule": ("post", "/v1/alerts/rules", {**RULE, "name": "new"}),
        "updateAlertRule": ("patch", f"/v1/alerts/rules/{rule_id}", {"for_ms": 5}),
        "deleteAlertRule": ("delete", f"/v1/alerts/rules/{rule_id}", None),
        "putReceiver": ("put", "/v1/alerts/receivers/new", {"webhook": "http://127.0.0.1:9/"}),
        "deleteReceiver": ("delete", "/v1/alerts/receivers/old", None),
        "testReceiver": ("post", "/v1/alerts/receivers/ops/test", None),
        "muteAlert": ("post", f"/v1/alerts/{alert_id}/mute", {"duration_ms": 5}),
        "createTopic": ("post", "/v1/topics", {"name": "new", "partitions": 1}),
        "updateTopic": ("patch", "/v1/topics/orders", {"partitions": 9}),
        "deleteTopic": ("delete", "/v1/topics/orders", None),
        "reportWatermarks": ("post", "/v1/topics/orders/watermarks", {"partitions": [watermark(0, 9)]}),
        "createToken": ("post", "/v1/tokens", {"name": "new", "rules": RULES}),
        "rotateToken": ("post", f"/v1/tokens/{token_id}/rotate", {"overlap_ms": 0}),
        "deleteToken": ("delete", f"/v1/tokens/{token_id}", None),
        "createAcls": ("post", "/v1/acls", {"principal": "Token:old", "role": "operator"}),
        "deleteAcls": ("delete", "/v1/acls?principal=Token:old", None),
        "alterQuotas": ("post", "/v1/quotas", {"kind": "default", "set": {"reads": 100}}),
    }


def watermark(partition: int, end: int) -> dict[str, int]:
    return {"partition": partition, "log_start_offset": 0, "log_end_offset": end}


async def ask(api: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await api.request(method, path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    """With a receiver of alerts, where nobody listens."""
    file = tmp_path / "receivers.toml"
    file.write_text('[ops]\nwebhook = "http://127.0.0.1:9/"\n')
    file.chmod(0o600)
    return config.override({"alerts.receivers.file": str(file)})


@pytest.fixture
async def requests(
    api: httpx.AsyncClient, topics: TopicService, members: Members, runtime: Runtime
) -> dict[str, Request]:
    """A valid request of every write, which would change something."""
    for name in ("orders", "bills"):
        await topics.create(name, 2)
    leader = await members.stable()
    follower = await ask(api, "post", "/v1/groups/c/consumer-heartbeat", joining())
    for partition in (0, 1):
        line = {"partition": partition, "committed_offset": 3}
        await ask(api, "post", f"{E}/offsets/commit", {"topics": [{"name": "orders", "partitions": [line]}]})
    await ask(api, "post", "/v1/topics/orders/watermarks", {"partitions": [watermark(0, 8), watermark(1, 8)]})
    await ask(api, "post", "/v1/groups/s/share-heartbeat", SHARING)
    lock = (await ask(api, "post", "/v1/groups/s/acquire", WORKER))["locks"][0]["lock"]
    rejected = (await ask(api, "post", "/v1/groups/s/acquire", WORKER))["locks"][0]
    entry = {"lock": rejected["lock"], "reject": rejected["offsets"]}
    await ask(api, "post", "/v1/groups/s/settle", {"member_id": "m1", "items": [entry]})
    start = {"partitions": [{**ITEM, "start_offset": 1}]}
    await ask(api, "post", "/v1/groups/left/share-offsets", start)
    await ask(api, "post", f"{E}/pins", {"topic": "orders"})
    await ask(api, "post", "/v1/groups", {"group_id": "held"})
    await ask(api, "post", "/v1/groups/held/hold", {"duration_ms": 60_000})
    await ask(api, "post", "/v1/groups/x/offsets/txn-commit", {"transactional_id": "t", **PRODUCER, **OFFSETS})
    applied = (await ask(api, "post", f"{E}/offsets/plan", SHIFT))["id"]
    await ask(api, "post", f"{E}/offsets/plans/{applied}/apply")
    others = (await ask(api, "post", f"{E}/offsets/plan", SHIFT))["id"]
    async with runtime.db.connection() as connection:
        await connection.execute("update offsets_offsetplan set maker = 'user:1' where state = 'planned'")
    new = (await ask(api, "post", f"{E}/offsets/plan", SHIFT))["id"]
    token = await ask(api, "post", "/v1/tokens", {"name": "old", "rules": RULES})
    rule = (await ask(api, "post", "/v1/alerts/rules", RULE))["id"]
    await ask(api, "put", "/v1/alerts/receivers/old", {"webhook": "http://127.0.0.1:9/"})
    async with runtime.db.connection() as connection:
        made = await connection.execute(
            "insert into offsets_alert (rule_id, group_name, cause, since, opened_at) values (%s, 'e', 'stuck', 1, 1)"
            " returning id",
            [rule],
        )
        (alert,) = await made.fetchone() or (0,)
    return of_members(leader, follower, lock) | of_offsets(others, new, applied) | of_the_rest(token["id"], rule, alert)


def contents(database: str) -> dict[str, str]:
    """A digest of the rows of each table of the service."""
    tables = "select tablename from pg_tables where schemaname = 'public' and tablename ~ '^(groups|offsets?|kcoord)_'"
    digest = sql.SQL("select coalesce(md5(string_agg(t::text, '|' order by t::text)), '') from {} t")
    with psycopg.connect(database) as connection:
        found = {}
        for (name,) in connection.execute(tables).fetchall():
            row = connection.execute(digest.format(sql.Identifier(name))).fetchone()
            assert row is not None
            found[name] = row[0]
    return found


async def test_every_write_is_refused(
    requests: dict[str, Request],
    document: dict[str, Any],  # noqa: F811 - the fixture
    api: httpx.AsyncClient,
    runtime: Runtime,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writes = {operation["operationId"] for _, method, operation in operations(document) if method != "get"}
    assert requests.keys() == writes - READS - NEED_AN_ARCHIVE
    before = contents(database)
    carried_out = []
    with monkeypatch.context() as late:
        late.setattr(runtime.db.request_age, "receive", lambda patience_ms=0: Receipt(time.monotonic() - 60))
        for name, (method, path, body) in requests.items():
            answer = await api.request(method, path, json=body)
            if not refused(answer):
                carried_out.append(f"{name}: {answer.status_code} {answer.text[:200]}")
    assert carried_out == []
    assert contents(database) == before
    for name in SHOWN:
        await ask(api, *requests[name])
        after = contents(database)
        assert after != before, f"in time, {name} changes something"
        before = after


def refused(answer: httpx.Response) -> bool:
    """As a whole, or with a result for each of its groups."""
    if answer.status_code == 200:
        body = answer.json()
        results = body.get("heartbeats") or body.get("groups") or [{}]
        return all(result.get("error") == Error.COORDINATOR_NOT_AVAILABLE.name for result in results)
    return answer.status_code == 503 and "request.max.age.ms" in answer.json()["detail"]
