"""Settings of one group: what they are, who may change them, and that every process follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest

from groups import configs as module
from groups.configs import (
    ASSIGNMENT_INTERVAL,
    ASSIGNOR,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    SHARE_ASSIGNMENT_INTERVAL,
    SHARE_HEARTBEAT_INTERVAL,
    SHARE_SESSION_TIMEOUT,
    GroupConfigs,
)
from groups.core.assignors import RangeAssignor
from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.server_assignors import AssignorLoadError, load_assignors
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Database
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.conftest import START_MS
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.members import eventually

PATH = "/v1/groups/g/config"
DEFAULTS = {
    HEARTBEAT_INTERVAL: 5_000,
    SESSION_TIMEOUT: 45_000,
    ASSIGNMENT_INTERVAL: 0,
    ASSIGNOR: "uniform",
    SHARE_HEARTBEAT_INTERVAL: 5_000,
    SHARE_SESSION_TIMEOUT: 45_000,
    SHARE_ASSIGNMENT_INTERVAL: 1_000,
    "share.record.lock.duration.ms": 30_000,
    "share.delivery.count.limit": 5,
    "share.partition.max.record.locks": 2_000,
    "share.release.backoff.ms": 0,
    "share.release.backoff.max.ms": 60_000,
    "share.release.backoff.multiplier": 2,
    "share.auto.offset.reset": "earliest",
}


@pytest.fixture
def configs(runtime: Runtime) -> GroupConfigs:
    """The settings of groups, of this process."""
    return runtime.get(GroupConfigs)


@pytest.fixture
async def other(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[GroupConfigs]:
    """The settings of groups, of another process on the same database."""
    running = Runtime(config, database, clock)
    await running.start()
    await running.notifications.wait_listening()
    yield running.get(GroupConfigs)
    await running.stop()


async def settings_of(api: httpx.AsyncClient, group_id: str = "g") -> dict[str, dict[str, Any]]:
    """The settings of a group by name, as the API shows them."""
    response = await api.get(f"/v1/groups/{group_id}/config")
    assert response.status_code == 200, response.text
    assert response.json()["group_id"] == group_id
    return {setting.pop("name"): setting for setting in response.json()["settings"]}


async def values_of(api: httpx.AsyncClient, group_id: str = "g") -> dict[str, tuple[Any, str]]:
    """Value and source of each setting."""
    return {name: (found["value"], found["source"]) for name, found in (await settings_of(api, group_id)).items()}


async def patch(api: httpx.AsyncClient, changes: object) -> httpx.Response:
    """Change settings of the group g."""
    return await api.patch(PATH, json=changes)


async def test_a_group_that_does_not_exist_has_the_defaults(api: httpx.AsyncClient) -> None:
    found = await settings_of(api)
    assert {name: setting["value"] for name, setting in found.items()} == DEFAULTS
    assert all(setting.pop("help") for setting in found.values())
    assert found[SESSION_TIMEOUT] == {
        "value": 45_000,
        "source": "default",
        "default": 45_000,
        "inherited": 45_000,
        "unit": "ms",
        "minimum": 45_000,
        "maximum": 60_000,
        "choices": [],
        "updated_at": None,
        "updated_by": None,
    }
    assert (found[ASSIGNOR]["minimum"], found[ASSIGNOR]["maximum"]) == (None, None)
    assert found[ASSIGNOR]["choices"] == ["uniform", "range"]


async def test_an_override_is_set_and_taken_back(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    clock.advance(1_000)
    changed = await patch(api, {SESSION_TIMEOUT: 50_000, ASSIGNOR: "range"})
    assert changed.status_code == 200
    assert changed.json() == (await api.get(PATH)).json()
    session = (await settings_of(api))[SESSION_TIMEOUT]
    assert (session["value"], session["source"], session["inherited"]) == (50_000, "group", 45_000)
    assert session["updated_at"] == rfc3339(START_MS + 1_000)
    assert session["updated_by"].startswith("test-")
    assert (await values_of(api))[ASSIGNOR] == ("range", "group")
    assert (await values_of(api, "other"))[SESSION_TIMEOUT] == (45_000, "default")
    assert (await patch(api, {SESSION_TIMEOUT: None, HEARTBEAT_INTERVAL: None})).status_code == 200
    assert await values_of(api) == {name: (value, "default") for name, value in DEFAULTS.items()} | {
        ASSIGNOR: ("range", "group")
    }


async def test_the_assignment_interval_may_be_nothing(api: httpx.AsyncClient) -> None:
    assert (await patch(api, {ASSIGNMENT_INTERVAL: 15_000})).status_code == 200
    assert (await values_of(api))[ASSIGNMENT_INTERVAL] == (15_000, "group")
    assert (await patch(api, {ASSIGNMENT_INTERVAL: 0})).status_code == 200
    assert (await values_of(api))[ASSIGNMENT_INTERVAL] == (0, "group")
    for value in (-1, 15_001):
        assert_problem(await patch(api, {ASSIGNMENT_INTERVAL: value}), Error.INVALID_CONFIG, field=ASSIGNMENT_INTERVAL)


@pytest.mark.parametrize("config", [Config({"group.consumer.session.timeout.ms": 55_000})])
async def test_a_value_of_the_whole_server_is_told_from_the_default(api: httpx.AsyncClient) -> None:
    session = (await settings_of(api))[SESSION_TIMEOUT]
    assert (session["value"], session["source"]) == (55_000, "global")
    assert (session["default"], session["inherited"]) == (45_000, 55_000)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"consumer.colour": 1}, "consumer.colour", "not a group setting"),
    ({"group.consumer.session.timeout.ms": 50_000}, "group.consumer.session.timeout.ms", "not a group setting"),
    ({SESSION_TIMEOUT: "50000"}, SESSION_TIMEOUT, "must be an integer"),
    ({SESSION_TIMEOUT: 50_000.0}, SESSION_TIMEOUT, "must be an integer"),
    ({SESSION_TIMEOUT: True}, SESSION_TIMEOUT, "must be an integer"),
    ({SESSION_TIMEOUT: 0}, SESSION_TIMEOUT, "from 1 to 2147483647"),
    ({SESSION_TIMEOUT: 2**80}, SESSION_TIMEOUT, "from 1 to 2147483647"),
    ({SESSION_TIMEOUT: 44_999}, SESSION_TIMEOUT, "less than 45000 (group.consumer.min.session.timeout.ms)"),
    ({SESSION_TIMEOUT: 60_001}, SESSION_TIMEOUT, "more than 60000 (group.consumer.max.session.timeout.ms)"),
    ({HEARTBEAT_INTERVAL: 4_999}, HEARTBEAT_INTERVAL, "less than 5000"),
    ({HEARTBEAT_INTERVAL: 15_001}, HEARTBEAT_INTERVAL, "more than 15000"),
    ({ASSIGNOR: "sticky"}, ASSIGNOR, "'sticky' is not one of uniform, range (group.consumer.assignors)"),
    ({ASSIGNOR: 1}, ASSIGNOR, "must be a string"),
    ({ASSIGNOR: ""}, ASSIGNOR, "is not one of"),
    ({ASSIGNOR: "x" * 10_000}, ASSIGNOR, "is not one of"),
    # The order of the checks: names, types and own bounds, then limits, the heartbeat's before the session's.
    ({SESSION_TIMEOUT: "x", "nope": 1}, "nope", "not a group setting"),
    ({HEARTBEAT_INTERVAL: 1, SESSION_TIMEOUT: 0}, SESSION_TIMEOUT, "from 1"),
    ({SESSION_TIMEOUT: 1, HEARTBEAT_INTERVAL: 1}, HEARTBEAT_INTERVAL, "less than 5000"),
    ({ASSIGNOR: "sticky", SESSION_TIMEOUT: 1}, SESSION_TIMEOUT, "less than 45000"),
]


async def test_what_cannot_be_is_refused_by_name(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for changes, field, reason in REFUSED:
        with subtests.test(f"{changes} {field} {reason}"):
            body = assert_problem(await patch(api, {ASSIGNOR: "range", **changes}), Error.INVALID_CONFIG, field=field)
            assert reason in body["detail"]
            assert len(body["detail"]) < 500
            assert {name: value for name, (value, _) in (await values_of(api)).items()} == DEFAULTS


@pytest.mark.parametrize("body", ["[]", "null", '"x"', "{", '{"consumer.assignor": "range", "consumer.assignor": "x"}'])
async def test_a_body_that_is_no_object_is_a_bad_request(api: httpx.AsyncClient, body: str) -> None:
    response = await api.patch(PATH, content=body, headers={"Content-Type": "application/json"})
    assert_problem(response, Error.INVALID_REQUEST)


async def test_nothing_to_change_changes_nothing(api: httpx.AsyncClient) -> None:
    assert (await patch(api, {})).json() == (await api.get(PATH)).json()


OVERLAP = Config(
    {
        "group.consumer.min.session.timeout.ms": 6_000,
        "group.consumer.max.heartbeat.interval.ms": 50_000,
        "group.consumer.session.timeout.ms": 20_000,
    }
)


@pytest.mark.parametrize("config", [OVERLAP])
async def test_the_session_outlasts_the_heartbeat_that_is_in_force(api: httpx.AsyncClient) -> None:
    both = "must be larger than the heartbeat interval"
    body = assert_problem(
        await patch(api, {HEARTBEAT_INTERVAL: 20_000}), Error.INVALID_CONFIG, field=HEARTBEAT_INTERVAL
    )
    assert f"session timeout (20000 ms) {both} (20000 ms)" in body["detail"]
    assert (await patch(api, {HEARTBEAT_INTERVAL: 30_000, SESSION_TIMEOUT: 30_001})).status_code == 200
    for change in (25_000, 30_000, None):
        refused = await patch(api, {SESSION_TIMEOUT: change})
        assert both in assert_problem(refused, Error.INVALID_CONFIG, field=SESSION_TIMEOUT)["detail"]
    assert (await patch(api, {SESSION_TIMEOUT: None, HEARTBEAT_INTERVAL: None})).status_code == 200
    assert (await values_of(api))[SESSION_TIMEOUT] == (20_000, "global")


@pytest.mark.parametrize("config", [OVERLAP])
async def test_two_changes_that_contradict_each_other_are_not_both_made(
    configs: GroupConfigs, other: GroupConfigs
) -> None:
    await configs.alter("g", {SESSION_TIMEOUT: 40_000, HEARTBEAT_INTERVAL: 8_000}, "test")
    results = await asyncio.gather(
        configs.alter("g", {SESSION_TIMEOUT: 10_000}, "one"),
        other.alter("g", {HEARTBEAT_INTERVAL: 30_000}, "two"),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(refused) == 1
    assert isinstance(refused[0], ProtocolError)
    assert refused[0].error is Error.INVALID_CONFIG


async def test_limits_hold_for_what_is_given_only(database: str, api: httpx.AsyncClient, configs: GroupConfigs) -> None:
    """Differs from Kafka: there an override that a later limit forbids refuses every change of the group."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into groups_groupconfigoverride (group_name, name, value, updated_at, updated_by)"
            " values ('g', %s, '90000', 0, 'earlier')",
            (SESSION_TIMEOUT,),
        )
    assert (await values_of(api))[SESSION_TIMEOUT] == (90_000, "group")
    assert (await patch(api, {HEARTBEAT_INTERVAL: 6_000})).status_code == 200
    assert dict(await configs.resolved("g")) == {**DEFAULTS, SESSION_TIMEOUT: 90_000, HEARTBEAT_INTERVAL: 6_000}


async def test_an_override_that_this_server_cannot_use_is_not_in_force(
    database: str, api: httpx.AsyncClient, configs: GroupConfigs
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for name, value in ((ASSIGNOR, "gone"), ("consumer.later", "1"), (HEARTBEAT_INTERVAL, "often")):
            connection.execute(
                "insert into groups_groupconfigoverride (group_name, name, value, updated_at, updated_by)"
                " values ('g', %s, %s, 0, 'later')",
                (name, value),
            )
    assert dict(await configs.resolved("g")) == DEFAULTS
    found = await settings_of(api)
    assert (found[ASSIGNOR]["value"], found[ASSIGNOR]["source"]) == ("uniform", "default")
    assert found[ASSIGNOR]["updated_by"] is None


async def test_reading_takes_describe_and_changing_admin(client_with: ClientWith) -> None:
    reader = await client_with("read:group:g", "admin:group:other", "admin:topic:*")
    assert (await reader.get(PATH)).status_code == 200
    assert_problem(await patch(reader, {SESSION_TIMEOUT: 50_000}), Error.GROUP_AUTHORIZATION_FAILED)
    stranger = await client_with("admin:group:other")
    assert_problem(await stranger.get(PATH), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await patch(stranger, {SESSION_TIMEOUT: 50_000}), Error.GROUP_ID_NOT_FOUND)
    owner = await client_with("admin:group:g")
    assert (await patch(owner, {SESSION_TIMEOUT: 50_000})).status_code == 200
    assert (await values_of(owner))[SESSION_TIMEOUT] == (50_000, "group")


async def test_settings_outlive_their_group(api: httpx.AsyncClient, runtime: Runtime) -> None:
    await runtime.get(GroupService).put(ClassicGroup("g"))
    await patch(api, {SESSION_TIMEOUT: 50_000})
    assert (await api.delete("/v1/groups/g")).status_code == 204
    assert (await values_of(api))[SESSION_TIMEOUT] == (50_000, "group")


async def test_a_group_id_is_percent_encoded(api: httpx.AsyncClient, configs: GroupConfigs) -> None:
    response = await api.patch("/v1/groups/a%20b%25/config", json={SESSION_TIMEOUT: 50_000})
    assert response.json()["group_id"] == "a b%"
    assert (await configs.resolved("a b%"))[SESSION_TIMEOUT] == 50_000


async def test_a_change_is_in_force_here_at_once_and_there_when_told(
    api: httpx.AsyncClient, configs: GroupConfigs, other: GroupConfigs
) -> None:
    assert dict(await configs.resolved("g")) == dict(await other.resolved("g")) == DEFAULTS
    for value, expected in ((50_000, 50_000), (52_000, 52_000), (None, 45_000)):
        assert (await patch(api, {SESSION_TIMEOUT: value})).status_code == 200
        assert (await configs.resolved("g"))[SESSION_TIMEOUT] == expected

        async def seen(expected: int = expected) -> bool:
            return (await other.resolved("g"))[SESSION_TIMEOUT] == expected

        await eventually(seen, "the other process follows")
        assert dict(await other.resolved("another")) == DEFAULTS


@pytest.mark.parametrize("config", [Config({"notifications.repair.interval.ms": 100})])
async def test_a_lost_hint_is_made_good(
    configs: GroupConfigs, other: GroupConfigs, monkeypatch: pytest.MonkeyPatch
) -> None:
    await other.resolved("g")

    async def silence(*args: object) -> None:
        return None

    monkeypatch.setattr(module.revisions, "tell", silence)
    await configs.alter("g", {ASSIGNOR: "range"}, "test")

    async def seen() -> bool:
        return (await other.resolved("g"))[ASSIGNOR] == "range"

    await eventually(seen, "the other process has looked by itself")


@pytest.mark.parametrize("config", [Config({"notifications.repair.interval.ms": 60_000})])
async def test_what_is_in_force_costs_no_query(configs: GroupConfigs, monkeypatch: pytest.MonkeyPatch) -> None:
    await configs.alter("g", {SESSION_TIMEOUT: 50_000}, "test")
    assert (await configs.resolved("g"))[SESSION_TIMEOUT] == 50_000

    async def settled() -> bool:
        return configs._overrides._reading is None

    await eventually(settled, "the hint of the change is worked off")

    def no_query(self: Database) -> object:
        raise AssertionError("a query")

    monkeypatch.setattr(Database, "connection", no_query)
    for group_id in ("g", "another", "a third"):
        assert (await configs.resolved(group_id))[HEARTBEAT_INTERVAL] == 5_000


class BalancedAssignor(RangeAssignor):
    """A custom assignor."""

    name = "balanced"


CUSTOM = f"{BalancedAssignor.__module__}.{BalancedAssignor.__qualname__}"


@pytest.mark.parametrize("config", [Config({"group.consumer.assignors": f"{CUSTOM},range"})])
async def test_assignors_of_ones_own_are_chosen_by_their_name(api: httpx.AsyncClient, runtime: Runtime) -> None:
    assert (await values_of(api))[ASSIGNOR] == ("balanced", "global")
    assert (await settings_of(api))[ASSIGNOR]["choices"] == ["balanced", "range"]
    assert_problem(await patch(api, {ASSIGNOR: "uniform"}), Error.INVALID_CONFIG, field=ASSIGNOR)
    assert list(load_assignors(runtime.config)) == ["balanced", "range"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("sticky", "no such assignor; use uniform, range or the dotted path"),
        ("groups.nowhere.Assignor", "cannot be imported: "),
        ("groups.configs.GroupConfigs", "cannot be imported: "),
        ("builtins.dict", "not an assignor"),
        ("range,groups.core.assignors.RangeAssignor", "two assignors are named 'range'"),
    ],
)
def test_an_assignor_that_is_none_is_refused_before_the_start(value: str, reason: str) -> None:
    from django.core.checks import run_checks
    from django.test import override_settings

    from kcoord.checks import TAG

    config = Config({"group.consumer.assignors": value})
    with pytest.raises(AssignorLoadError, match=reason):
        load_assignors(config)
    with override_settings(KCOORD=config):
        (message,) = run_checks(tags=[TAG])
    assert message.id == "kcoord.E004"
    assert message.msg.startswith("KCOORD_GROUP_CONSUMER_ASSIGNORS")


async def test_changes_are_told_by_the_timeline(api: httpx.AsyncClient) -> None:
    await patch(api, {SESSION_TIMEOUT: 50_000, ASSIGNOR: "range"})
    await patch(api, {SESSION_TIMEOUT: 50_000})
    await patch(api, {SESSION_TIMEOUT: None})
    events = (await api.get(PATH.replace("/config", "/events"))).json()["events"]
    assert {event["kind"] for event in events} == {"config_changed"}
    newest, oldest = (event["detail"] for event in events)
    assert newest["settings"] == {SESSION_TIMEOUT: [50_000, 45_000]}
    assert oldest["settings"] == {SESSION_TIMEOUT: [45_000, 50_000], ASSIGNOR: ["uniform", "range"]}
    assert oldest["principal"].startswith("test-")
