"""What Kafka clients change, and what they are refused, in the audit. An outage is no refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.access.audit.refusals import Refusals
from kcoord.access.quotas.budgets import Budget
from kcoord.access.rights import Access
from kcoord.access.tokens import create_token, parse_rule
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Action, Error, ProtocolError
from tests.support.rest_groups import group
from tests.support.told import told
from tests.support.wire import BY_NAME
from tests.wire.client import WireClient
from tests.wire.conftest import Connect

GROUP = 32
SESSION = [{"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "50000"}]
OFFSETS = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]

REQUESTS: dict[str, tuple[int, dict[str, Any], str]] = {
    "create_topics": (7, {"topics": [{"name": "new", "num_partitions": 3, "replication_factor": 1}]}, "new"),
    "delete_topics": (5, {"topic_names": ["orders"]}, "orders"),
    "create_partitions": (3, {"topics": [{"name": "orders", "count": 5, "assignments": None}]}, "orders"),
    "incremental_alter_configs": (
        1,
        {"resources": [{"resource_type": GROUP, "resource_name": "g", "configs": SESSION}]},
        "g",
    ),
    "delete_groups": (2, {"groups_names": ["g"]}, "g"),
    "offset_delete": (
        0,
        {"group_id": "g", "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]},
        "g",
    ),
    "alter_share_group_offsets": (
        0,
        {
            "group_id": "s",
            "topics": [{"topic_name": "orders", "partitions": [{"partition_index": 0, "start_offset": 4}]}],
        },
        "s",
    ),
    "delete_share_group_offsets": (0, {"group_id": "s", "topics": [{"topic_name": "orders"}]}, "s"),
}
"""A request of each API that changes something: its version, its body and the name that it is about."""


@pytest.fixture
async def world(runtime: Runtime, topic: str, wire: WireClient) -> None:
    """The topic orders, the group g with an offset, and the share group s with one."""
    await runtime.get(GroupService).put(group("g", GroupState.EMPTY))
    answer = await wire.ask("offset_commit", 8, group_id="g", topics=[{"name": topic, "partitions": OFFSETS}])
    assert answer.topics[0].partitions[0].error_code == 0
    version, body, _ = REQUESTS["alter_share_group_offsets"]
    assert (await wire.ask("alter_share_group_offsets", version, **body)).error_code == 0


@pytest.fixture
async def viewer(connect: Connect, runtime: Runtime) -> WireClient:
    """A connection whose token may describe everything and change nothing."""
    rules = [parse_rule("describe:group:*"), parse_rule("describe:topic:*")]
    secret = (await asyncio.to_thread(create_token, "viewer", rules)).secret
    await told(runtime)
    return await connect(secret)


@pytest.fixture
def records(database: str, runtime: Runtime) -> Callable[[], Any]:
    """Those that came in over the wire, oldest first, once all refusals are written."""

    async def read() -> list[Any]:
        await runtime.get(Refusals).close()
        with psycopg.connect(database, row_factory=namedtuple_row) as connection:
            return connection.execute("select * from kcoord_auditrecord where door = 'wire' order by seq").fetchall()

    return read


@pytest.mark.parametrize("api", REQUESTS)
async def test_a_change_leaves_one_record(api: str, wire: WireClient, world: None, records: Callable[[], Any]) -> None:
    version, body, name = REQUESTS[api]
    before = len(await records())
    await wire.ask(api, version, **body)
    (found,) = (await records())[before:]
    assert (found.result, found.act, found.name, found.kind) == ("done", BY_NAME[api].audit, name, "token")
    assert (found.address, found.principal[:5]) == ("127.0.0.1", "test-")


@pytest.mark.parametrize("api", REQUESTS)
async def test_a_refused_change_leaves_one_record(
    api: str, viewer: WireClient, world: None, records: Callable[[], Any]
) -> None:
    version, body, name = REQUESTS[api]
    before = len(await records())
    await viewer.ask(api, version, **body)
    (found,) = (await records())[before:]
    assert (found.result, found.act, found.principal, found.count) == ("refused", BY_NAME[api].audit, "viewer", 1)
    assert found.error in ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")
    assert found.name in (name, api)


def test_every_api_that_changes_something_is_asked() -> None:
    assert set(REQUESTS) == {api.name for api in BY_NAME.values() if api.audit}
    writing = {api.name for api in BY_NAME.values() if api.budget is Budget.WRITES}
    assert writing - {"produce"} == set(REQUESTS), "produce is always refused: there is no log"


async def test_offsets_that_cannot_be_deleted_are_recorded_by_partition(
    wire: WireClient, world: None, records: Callable[[], Any]
) -> None:
    await wire.ask("offset_delete", 0, group_id="g", topics=[{"name": "nope", "partitions": [{"partition_index": 7}]}])
    found = (await records())[-1]
    assert (found.act, found.resource, found.name) == ("offsets.delete", "group", "g")
    assert (found.error, found.reason) == ("UNKNOWN_TOPIC_OR_PARTITION", "topic 'nope', partition 7")


async def test_share_offsets_that_cannot_be_deleted_are_recorded_for_the_group(
    wire: WireClient, world: None, records: Callable[[], Any]
) -> None:
    await wire.ask("delete_share_group_offsets", 0, group_id="s", topics=[{"topic_name": "nope"}])
    found = (await records())[-1]
    assert (found.act, found.resource, found.name) == ("share-offsets.delete", "group", "s")
    assert (found.result, found.error) == ("refused", "UNKNOWN_TOPIC_OR_PARTITION")


async def test_a_wrong_token_is_recorded_without_it(connect: Connect, records: Callable[[], Any]) -> None:
    client = await connect(None)
    await client.ask("sasl_handshake", 1, mechanism="PLAIN")
    await client.ask("sasl_authenticate", 2, auth_bytes=b"\0mara\0kc_guess")
    bare = await connect(None)
    await bare.ask("sasl_handshake", 0, mechanism="PLAIN")
    bare.send_raw(b"\0mara\0kc_guess")
    assert await bare.is_closed()
    first, rest = await records()
    assert (first.act, first.name, first.error) == ("request", "sasl_authenticate", "SASL_AUTHENTICATION_FAILED")
    assert (first.kind, first.principal, first.address) == ("unknown", "", "127.0.0.1")
    assert (first.count, rest.count) == (1, 1)
    assert "kc_guess" not in f"{first}{rest}"


TEMPORARY = [error for error in Error if error.value.action in (Action.RETRY, Action.REDISCOVER) and error.code]


@pytest.mark.parametrize("error", TEMPORARY, ids=lambda error: error.name)
async def test_an_outage_of_one_item_is_no_refusal(
    wire: WireClient, world: None, records: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, error: Error
) -> None:
    async def away(*_: object) -> None:
        raise ProtocolError(error, "away")

    before = len(await records())
    monkeypatch.setattr(TopicService, "create", away)
    answer = await wire.ask("create_topics", 7, **REQUESTS["create_topics"][1])
    assert answer.topics[0].error_code == error.code
    assert len(await records()) == before


async def test_an_outage_of_the_whole_request_is_no_refusal(
    wire: WireClient, runtime: Runtime, world: None, records: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "away")

    before = len(await records())
    monkeypatch.setattr(Access, "authenticate", away)
    answer = await wire.ask("delete_groups", 2, groups_names=["g"])
    assert [entry.error_code for entry in answer.results] == [Error.COORDINATOR_NOT_AVAILABLE.code]
    assert len(await records()) == before


async def test_what_will_not_change_by_itself_is_one(wire: WireClient, world: None, records: Callable[[], Any]) -> None:
    await wire.ask("delete_groups", 2, groups_names=["missing"])
    found = (await records())[-1]
    assert (found.result, found.name, found.error) == ("refused", "missing", "GROUP_ID_NOT_FOUND")
