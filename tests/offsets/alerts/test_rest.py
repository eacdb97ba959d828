"""Rules, alerts, receivers and messages over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.alerts.checks import AlertChecks
from offsets.api.rest.alert_views import EXAMPLE
from tests.conftest import START_MS
from tests.offsets.alerts.world import World
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

RULES, ALERTS = "/v1/alerts/rules", "/v1/alerts"
RULE = {"name": "billing", "pattern": "prefix", "group_name": "bill", "verdicts": ["stuck"], "receivers": ["ops"]}


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    """Two receivers; nobody listens."""
    file = tmp_path / "receivers.toml"
    file.write_text(
        '[ops]\nwebhook = "http://127.0.0.1:9/x"\n[mail]\nurl = "mailto://u:secret@localhost?to=a@b.example"\n'
    )
    file.chmod(0o600)
    return config.override({"alerts.receivers.file": str(file), "alerts.settle.ms": 60_000})


async def test_the_example_works(api: httpx.AsyncClient) -> None:
    answer = await api.post(RULES, json={**EXAMPLE, "receivers": ["ops"]})
    assert answer.status_code == 201, answer.text


async def created(api: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await api.post(RULES, json={**RULE, **fields})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_rule_is_created_changed_and_deleted(api: httpx.AsyncClient) -> None:
    rule = await created(api, min_lag=10_000, for_ms=300_000)
    assert rule.pop("updated_by").startswith("test-")
    assert rule == {
        "id": rule["id"],
        "name": "billing",
        "enabled": True,
        "pattern": "prefix",
        "group_name": "bill",
        "verdicts": ["stuck"],
        "min_lag": 10_000,
        "min_time_lag_ms": None,
        "for_ms": 300_000,
        "remind_ms": 0,
        "send_resolved": True,
        "receivers": ["ops"],
        "label": "",
        "updated_at": rfc3339(START_MS),
    }
    path = f"{RULES}/{rule['id']}"
    changed = (await api.patch(path, json={"for_ms": 0, "min_lag": None})).json()
    assert (changed["for_ms"], changed["min_lag"], changed["verdicts"]) == (0, None, ["stuck"])
    assert (await api.get(path)).json() == changed
    assert (await api.get(RULES)).json() == {"rules": [changed]}
    assert (await api.delete(path)).status_code == 204
    assert_problem(await api.get(path), Error.INVALID_REQUEST, status=404)
    assert_problem(await api.delete(path), Error.INVALID_REQUEST, status=404)
    assert_problem(await api.patch(path, json={}), Error.INVALID_REQUEST, status=404)
    assert_problem(await api.get(f"{RULES}/x"), Error.INVALID_REQUEST, status=404)


NO_SENSE: list[tuple[dict[str, Any], str, str]] = [
    ({"name": " "}, "name", "1 to 100 printable"),
    ({"name": "a\nb"}, "name", "printable"),
    ({"pattern": "regex"}, "pattern", "not one of"),
    ({"pattern": "literal", "group_name": ""}, "", "group"),
    ({"label": "=x"}, "label", "a label name has 1 to 63 characters; write name=value"),
    ({"label": "n" * 64}, "label", "a label name has"),
    ({"label": "owner=" + "x" * 256}, "label", "a label value has"),
    ({"verdicts": ["sad"]}, "verdicts[0]", "not one of"),
    ({"verdicts": []}, "verdicts", "needs a condition"),
    ({"min_lag": 0}, "min_lag", ""),
    ({"min_time_lag_ms": 0}, "min_time_lag_ms", ""),
    ({"for_ms": -1}, "for_ms", ""),
    ({"for_ms": 10**12}, "for_ms", "must be from 0"),
    ({"remind_ms": 5}, "remind_ms", "must be 0 (never)"),
    ({"receivers": []}, "receivers", "name at least one"),
    ({"receivers": ["ops", "ops"]}, "receivers", "twice"),
    ({"receivers": ["nobody"]}, "receivers", "the receivers are mail, ops"),
    ({"color": "red"}, "color", ""),
]


async def test_what_makes_no_sense_is_refused_by_field(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for change, field, told in NO_SENSE:
        with subtests.test(f"{change} {field} {told}"):
            answer = await api.post(RULES, json={**RULE, **change})
            assert 400 <= answer.status_code < 500
            body = answer.json()
            assert told in body["detail"]
            assert body.get("field", "") == field
            assert (await api.get(RULES)).json() == {"rules": []}


async def test_two_rules_cannot_have_one_name(api: httpx.AsyncClient) -> None:
    await created(api)
    assert_problem(await api.post(RULES, json=RULE), Error.INVALID_REQUEST, field="name")
    other = await created(api, name="other")
    assert_problem(
        await api.patch(f"{RULES}/{other['id']}", json={"name": "billing"}), Error.INVALID_REQUEST, field="name"
    )
    assert (await api.patch(f"{RULES}/{other['id']}", json={"name": "other", "for_ms": 5})).json()["for_ms"] == 5


async def test_who_may(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    team = await client_with("admin:group:bill*", "describe:group:bill*")
    assert_problem(await team.post(RULES, json=RULE), Error.CLUSTER_AUTHORIZATION_FAILED)
    own = {**RULE, "pattern": "literal", "group_name": "billing"}
    rule = (await team.post(RULES, json=own)).json()
    assert rule["group_name"] == "billing"
    foreign = {**own, "name": "b", "group_name": "other"}
    assert (await team.post(RULES, json=foreign)).status_code == 403
    # What a rule is turned into counts as much as what it was.
    assert (await team.patch(f"{RULES}/{rule['id']}", json={"group_name": "other"})).status_code == 403
    wide = await created(api, name="all")
    assert (await team.patch(f"{RULES}/{wide['id']}", json=own)).status_code == 403
    assert (await team.delete(f"{RULES}/{wide['id']}")).status_code == 403
    assert (await team.delete(f"{RULES}/{rule['id']}")).status_code == 204
    for path in (RULES, f"{RULES}/{wide['id']}", "/v1/alerts/receivers", "/v1/alerts/messages"):
        assert_problem(await team.get(path), Error.CLUSTER_AUTHORIZATION_FAILED)
    assert_problem(await team.post("/v1/alerts/receivers/ops/test"), Error.CLUSTER_AUTHORIZATION_FAILED)


async def test_receivers_are_named_without_their_addresses(api: httpx.AsyncClient) -> None:
    answer = await api.get("/v1/alerts/receivers")
    assert answer.json() == {
        "receivers": [
            {"name": "mail", "kind": "mailto", "source": "file", "problem": ""},
            {"name": "ops", "kind": "webhook", "source": "file", "problem": ""},
        ]
    }
    assert_problem(await api.post("/v1/alerts/receivers/nobody/test"), Error.INVALID_REQUEST, status=404)
    answer = await api.post("/v1/alerts/receivers/ops/test")
    assert answer.json() == {"sent": False, "error": "ConnectError: the address could not be reached"}


async def test_alerts_are_listed_muted_and_resolved(
    api: httpx.AsyncClient, client_with: ClientWith, runtime: Runtime, world: World, clock: VirtualClock
) -> None:
    rule, checks = await created(api, remind_ms=60_000), runtime.get(AlertChecks)
    for name in ("bill", "billing", "other"):
        await world.group(name)
        await world.verdict(name, "stuck", START_MS - 90_000)
    await world.judged()
    assert await checks.check() == 2
    page = (await api.get(ALERTS)).json()
    assert [(alert["group_id"], alert["cause"]) for alert in page["alerts"]] == [
        ("billing", "stuck"),
        ("bill", "stuck"),
    ]
    alert = page["alerts"][0]
    assert (alert["since"], alert["opened_at"]) == (rfc3339(START_MS - 90_000), rfc3339(START_MS))
    assert (alert["rule_id"], alert["told_at"]) == (rule["id"], rfc3339(START_MS))
    first = (await api.get(ALERTS, params={"limit": 1})).json()
    second = (await api.get(ALERTS, params={"limit": 1, "cursor": first["next_cursor"]})).json()
    assert [first["alerts"][0], second["alerts"][0]] == page["alerts"]
    assert (await (await client_with("describe:group:other")).get(ALERTS)).json()["alerts"] == []

    blind = await client_with("admin:group:other")
    assert_problem(
        await blind.post(f"{ALERTS}/{alert['id']}/mute", json={"duration_ms": 5}), Error.INVALID_REQUEST, status=404
    )
    reader = await client_with("describe:group:*")
    assert (await reader.post(f"{ALERTS}/{alert['id']}/mute", json={"duration_ms": 5})).status_code == 403
    muted = (await api.post(f"{ALERTS}/{alert['id']}/mute", json={"duration_ms": 600_000})).json()
    assert muted["muted_until"] == rfc3339(START_MS + 600_000)
    assert muted["muted_by"].startswith("test-")
    clock.advance(60_000)
    assert await checks.check() == 1, "only the other one is repeated"

    await world.no_verdict("bill")
    await world.no_verdict("billing")
    await world.judged()
    assert await checks.check() == 0
    clock.advance(60_000)
    await world.judged()
    assert await checks.check() == 1, "of the muted one nobody is told"
    assert (await api.get(ALERTS)).json()["alerts"] == []
    ended = (await api.get(ALERTS, params={"state": "resolved", "group_id": "bill"})).json()["alerts"]
    assert [found["resolved_at"] for found in ended] == [rfc3339(START_MS + 120_000)]
    assert_problem(
        await api.post(f"{ALERTS}/{alert['id']}/mute", json={"duration_ms": 5}), Error.INVALID_REQUEST, status=404
    )
    messages = (await api.get("/v1/alerts/messages")).json()["messages"]
    assert sorted((found["notice"], found["alert_count"]) for found in messages) == [
        ("opened", 2), ("reminder", 1), ("resolved", 1),
    ]  # fmt: skip
    assert {found["state"] for found in messages} == {"waiting"}


async def test_a_deleted_rule_takes_its_alerts_along(api: httpx.AsyncClient, runtime: Runtime, world: World) -> None:
    rule = await created(api)
    await world.group("bill")
    await world.verdict("bill", "stuck", START_MS)
    assert await runtime.get(AlertChecks).check() == 1
    assert (await api.delete(f"{RULES}/{rule['id']}")).status_code == 204
    assert (await api.get(ALERTS)).json()["alerts"] == []
    assert await runtime.get(AlertChecks).check() == 0
