"""Every operation of the API that changes something leaves one record when it succeeds, and one when it is refused.

The operations are those of the OpenAPI document: a new one has to be added here, or the test fails.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import namedtuple_row

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.access.audit.acts import ACTS, resource_of
from kcoord.access.audit.chain import Audit
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from offsets.alerts.checks import AlertChecks
from offsets.alerts.service import AlertService
from offsets.alerts.stored import ReceiverService
from offsets.runs import service as runs
from tests.support.fixtures import ClientWith
from tests.support.operations import operations
from tests.support.rest_groups import group, member
from tests.support.selection import sample

MEMBERS = frozenset(
    {
        "joinGroup", "syncGroup", "heartbeat", "heartbeats", "leaveGroup", "consumerGroupHeartbeat", "commitOffsets",
        "fetchOffsets", "fetchOffsetsOfManyGroups", "initProducerId", "txnCommitOffsets", "endTransaction",
        "shareGroupHeartbeat", "acquireItems", "settleItems",
    }
)  # fmt: skip
"""What members do: the data plane."""
NO_ACT = {
    "assign": "computes, and changes nothing",
    "simulateAssignment": "computes, and changes nothing",
    "reportWatermarks": "what producers and probes report all the time",
}


@dataclass
class Story:
    """How an operation is done once: what has to be there, and the request."""

    prepare: Callable[[World], Awaitable[Any]] | None = None
    path: dict[str, str] = field(default_factory=dict)
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    act: str = ""
    name: str = "g"
    has: str = "both"
    """Whether the record has what was `before`, what is `after`, or both."""


@dataclass
class World:
    """What stories use."""

    api: httpx.AsyncClient
    runtime: Runtime

    async def post(self, path: str, body: Any = None) -> Any:
        answer = await self.api.post(path, json={} if body is None else body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


async def empty(world: World) -> None:
    await world.runtime.get(GroupService).put(group("g", GroupState.EMPTY))


async def held(world: World) -> None:
    await empty(world)
    await world.post("/v1/groups/g/hold", {"duration_ms": 60_000})


async def stable(world: World) -> None:
    await world.runtime.get(GroupService).put(group("g", GroupState.STABLE, member("m", 0)))


async def committed(world: World) -> None:
    await world.runtime.get(TopicService).create("orders", 3)
    await world.runtime.get(TopicService).set_watermarks("orders", [Watermark(0, 0, 100)])
    body = {"group_id": "g", "topics": [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 5}]}]}
    await world.post("/v1/groups", body)


async def planned(world: World) -> dict[str, str]:
    await committed(world)
    made = await world.post("/v1/groups/g/offsets/plan", PLAN)
    return {"plan_id": made["id"]}


async def planned_by_another(world: World) -> dict[str, str]:
    path = await planned(world)
    async with world.runtime.db.connection() as connection:
        await connection.execute("update offsets_offsetplan set maker = 'user:1'")
    return path


async def applied(world: World) -> dict[str, str]:
    path = await planned(world)
    await world.post(f"/v1/groups/g/offsets/plans/{path['plan_id']}/apply")
    return path


async def working(world: World) -> None:
    """A worker of the share group g has item 0 of `orders`, and has rejected item 1."""
    await topic(world)
    await world.runtime.get(TopicService).set_watermarks("orders", [Watermark(0, 0, 2)])
    joining = {"member_id": "w", "member_epoch": 0, "subscribed_topic_names": ["orders"]}
    epoch = (await world.post("/v1/groups/g/share-heartbeat", joining))["member_epoch"]
    asked = {"member_id": "w", "member_epoch": epoch}
    (lock,) = (await world.post("/v1/groups/g/acquire", asked))["locks"]
    rejected = {"lock": lock["lock"], "reject": [[1, 1]]}
    await world.post("/v1/groups/g/settle", {"member_id": "w", "items": [rejected]})


async def left(world: World) -> None:
    await working(world)
    await world.post("/v1/groups/g/share-heartbeat", {"member_id": "w", "member_epoch": -1})


async def pinned(world: World) -> None:
    await world.post("/v1/groups/g/pins", {"topic": "orders"})


async def topic(world: World) -> None:
    await world.runtime.get(TopicService).create("orders", 3)


async def token(world: World) -> dict[str, str]:
    return {"id": str((await world.post("/v1/tokens", TOKEN))["id"])}


async def rules_of(world: World) -> None:
    await token(world)


async def running(world: World) -> dict[str, str]:
    found = await world.post("/v1/archive/runs", {"kind": "archive"})
    return {"run_id": found["id"], "name": found["id"]}


async def ruled(world: World) -> dict[str, str]:
    return {"rule_id": str((await world.post("/v1/alerts/rules", RULE))["id"])}


async def alerted(world: World) -> dict[str, str]:
    await stable(world)
    async with world.runtime.db.connection() as connection:
        await connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
            " select id, 'stuck', '', 1, 1, '{}' from groups_group"
        )
    await ruled(world)
    assert await world.runtime.get(AlertChecks).check() == 1
    (alert,) = (await world.runtime.get(AlertService).alerts()).items
    return {"alert_id": str(alert.id)}


HOOK = {"webhook": "http://127.0.0.1:9/", "secret": "kc_hidden"}


async def received(world: World) -> None:
    await world.runtime.get(ReceiverService).put("old", HOOK, Principal(0, "x", ALL_ALLOWED))


RULE = {"name": "bad", "pattern": "literal", "group_name": "g", "verdicts": ["stuck"], "receivers": ["ops"]}
TOKEN = {"name": "deploy", "rules": [{"operation": "read", "resource": "group", "name": "g"}]}
PLAN = {"strategy": "to-offset", "offset": 3, "topics": [{"name": "orders", "partitions": [0]}], "reason": "bug 17"}
RULES = [{"operation": "read", "resource": "group", "name": "h"}]
START = {"group_id": "g", "config": {"consumer.session.timeout.ms": 50_000}}
G = {"group_id": "g"}

ITEMS = {"items": [{"topic": "orders", "partition": 0, "offsets": [[0, 0]]}]}
STORIES = {
    "createGroup": Story(None, {}, START, has="after"),
    "deleteGroup": Story(empty, G, has="before"),
    "deleteGroups": Story(empty, query=G, has="before"),
    "holdGroup": Story(stable, G, {"duration_ms": 60_000, "reason": "bug 17"}),
    "releaseHold": Story(held, G),
    "updateGroupConfig": Story(None, G, {"consumer.session.timeout.ms": 50_000}),
    "updateGroupLabels": Story(None, G, {"labels": {"owner": "billing"}}),
    "kickMember": Story(stable, {**G, "member_id": "m"}, {"reason": "it hangs"}, has="before"),
    "planOffsets": Story(committed, G, PLAN, has="after"),
    "approveOffsetPlan": Story(planned_by_another, G),
    "applyOffsetPlan": Story(planned, G),
    "undoOffsetPlan": Story(applied, G),
    "deleteOffsets": Story(committed, G, {"topics": [{"name": "orders", "partitions": [0]}]}),
    "createPin": Story(None, G, {"topic": "orders"}, has="after"),
    "deletePin": Story(pinned, G, query={"topic": "orders"}, has="before"),
    "releaseItems": Story(working, G, ITEMS),
    "rejectItems": Story(working, G, ITEMS),
    "replayDeadLetters": Story(working, G, {"ids": [1]}),
    "discardDeadLetters": Story(working, G, {"ids": [1]}),
    "alterShareOffsets": Story(left, G, {"partitions": [{"topic": "orders", "partition": 0, "start_offset": 1}]}),
    "deleteShareOffsets": Story(left, G, query={"topic": "orders"}, has="before"),
    "createTopic": Story(None, {}, {"name": "orders", "partitions": 3}, name="orders", has="after"),
    "updateTopic": Story(topic, {"name": "orders"}, {"partitions": 4}, name="orders"),
    "deleteTopic": Story(topic, {"name": "orders"}, name="orders", has="before"),
    "createToken": Story(None, {}, TOKEN, name="deploy", has="after"),
    "rotateToken": Story(token, {}, {}, name="deploy"),
    "deleteToken": Story(token, {}, name="deploy", has="before"),
    "createAcls": Story(rules_of, {}, {"principal": "Token:deploy", "rules": RULES}, name="Token:deploy", has="after"),
    "deleteAcls": Story(rules_of, query={"principal": "Token:deploy"}, name="Token:deploy", has="before"),
    "alterQuotas": Story(None, {}, {"kind": "default", "set": {"cpu": 1000}}, name="default"),
    "createAlertRule": Story(None, {}, RULE, name="bad", has="after"),
    "updateAlertRule": Story(ruled, {}, {"for_ms": 5}, name="bad"),
    "deleteAlertRule": Story(ruled, {}, name="bad", has="before"),
    "muteAlert": Story(alerted, {}, {"duration_ms": 5}),
    "putReceiver": Story(None, {"name": "new"}, HOOK, name="new", has="after"),
    "deleteReceiver": Story(received, {"name": "old"}, name="old", has="before"),
    "testReceiver": Story(None, {"name": "ops"}, name="ops", has="after"),
    "startRun": Story(None, {}, {"kind": "archive"}, name="", has="after"),
    "cancelRun": Story(running, {}, name="", has="before"),
}


OPERATIONS = {name: one.audit for name, one in operations().items() if one.audit != "request"}


def changing() -> dict[str, tuple[str, str]]:
    """Operation -> method and path, of all that may change something."""
    from kcoord.control.openapi.page import document

    found = {}
    for path, methods in json.loads(document())["paths"].items():
        for method, operation in methods.items():
            if method != "get" and path.startswith("/v1/"):
                found[operation["operationId"]] = method, path
    return found


@pytest.fixture
def config(config: Config, tmp_path: Any) -> Config:
    """With an archive and a receiver of alerts, where nobody listens."""
    file = tmp_path / "receivers.toml"
    file.write_text('[ops]\nwebhook = "http://127.0.0.1:9/"\n')
    file.chmod(0o600)
    return config.override({"archive.path": str(tmp_path / "archive"), "alerts.receivers.file": str(file)})


@pytest.fixture
async def world(
    api: httpx.AsyncClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> AsyncIterator[World]:
    """The service, whose runs start no process."""
    monkeypatch.setattr(runs, "start_process", lambda *_: 1)
    monkeypatch.setattr("offsets.runs.run_process.RunLogs.create", lambda self, run_id: tmp_path / run_id)
    return World(api, runtime)


def records(database: str, after: int) -> list[Any]:
    """The records after one."""
    with psycopg.connect(database, row_factory=namedtuple_row) as connection:
        return connection.execute("select * from kcoord_auditrecord where seq > %s order by seq", [after]).fetchall()


def only_record(database: str, after: int) -> Any:
    """The only record after one."""
    found = records(database, after)
    assert len(found) == 1, found
    return found[0]


async def send(client: httpx.AsyncClient, operation: str, story: Story, given: dict[str, str]) -> httpx.Response:
    method, path = changing()[operation]
    content = {} if story.body is None else {"json": story.body}
    return await client.request(method.upper(), path.format(**story.path, **given), params=story.query, **content)


@pytest.mark.parametrize("operation", STORIES)
async def test_an_act_leaves_one_record_with_before_and_after(operation: str, world: World, database: str) -> None:
    story = STORIES[operation]
    given = await story.prepare(world) if story.prepare is not None else None
    name = (given or {}).pop("name", story.name)
    before = await world.runtime.get(Audit).chain()
    answer = await send(world.api, operation, story, given or {})
    assert answer.is_success, answer.text
    found = only_record(database, before.seq)
    assert (found.result, found.act) == ("done", OPERATIONS[operation])
    # An alert that was muted is in the records of its group; a refusal has only its number.
    assert operation == "muteAlert" or found.resource == resource_of(found.act)
    assert found.name == name or not name
    assert (found.kind, found.door) == ("token", "http")
    assert found.principal.startswith("test-")
    assert found.principal_id.isdigit()
    assert found.address == "127.0.0.1"
    assert found.request_id == answer.headers["x-request-id"]
    assert (found.before is not None, found.after is not None) == (story.has != "after", story.has != "before")
    assert "kc_" not in f"{found.before}{found.after}".replace('"prefix":"kc_', "")
    assert (await world.runtime.get(Audit).verify()).problems == []


@pytest.mark.parametrize("operation", STORIES)
async def test_a_refused_act_leaves_one_record(
    operation: str, world: World, client_with: ClientWith, database: str
) -> None:
    story = STORIES[operation]
    given = await story.prepare(world) if story.prepare is not None else None
    (given or {}).pop("name", None)
    nobody = await client_with("describe:group:another")
    before = await world.runtime.get(Audit).chain()
    answer = await send(nobody, operation, story, given or {})
    assert operation == "deleteGroups" or 400 <= answer.status_code < 500
    found = only_record(database, before.seq)
    assert (found.result, found.act, found.count) == ("refused", OPERATIONS[operation], 1)
    assert found.resource == resource_of(found.act)
    assert found.error
    assert found.principal.startswith("limited-")
    assert found.request_id == answer.headers["x-request-id"]
    assert found.name or not (story.path or story.name)


@pytest.mark.parametrize("operation", sample(STORIES, "every act again, rolled back"))
async def test_an_act_that_is_rolled_back_leaves_no_record(operation: str, world: World, database: str) -> None:
    """The commit fails: for want of the row that every commit of an act locks."""
    story = STORIES[operation]
    given = await story.prepare(world) if story.prepare is not None else None
    (given or {}).pop("name", None)
    before = await world.runtime.get(Audit).chain()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table kcoord_auditchain rename to not_there")
        try:
            answer = await send(world.api, operation, story, given or {})
        finally:
            connection.execute("alter table not_there rename to kcoord_auditchain")
    assert answer.status_code >= 500 or operation == "deleteGroups", answer.text
    assert records(database, before.seq) == []


async def test_every_operation_is_walked() -> None:
    found = set(changing())
    assert found - MEMBERS - set(NO_ACT) == set(STORIES)
    assert set(OPERATIONS) == set(STORIES)
    assert set(OPERATIONS.values()) <= set(ACTS)
    assert (MEMBERS | set(NO_ACT)) <= found
