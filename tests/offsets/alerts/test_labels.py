"""Rules for groups with a label."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from groups.labels import GroupLabels
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from offsets.alerts.checks import AlertChecks
from offsets.alerts.service import AlertService
from tests.conftest import START_MS
from tests.offsets.alerts.world import ADMIN, World, rule

RUNBOOK = "https://wiki.example.com/?a=b"


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    """One receiver; nobody listens."""
    file = tmp_path / "receivers.toml"
    file.write_text('[ops]\nwebhook = "http://127.0.0.1:9/x"\n')
    file.chmod(0o600)
    return config.override({"alerts.receivers.file": str(file), "alerts.settle.ms": 0})


async def open_groups(runtime: Runtime) -> set[str]:
    """The groups with an open alert."""
    return {alert.group_id for alert in (await runtime.get(AlertService).alerts()).items}


@pytest.mark.parametrize(
    ("label", "found"),
    [
        ("", {"a-stuck", "b-lag", "c-other", "d-none"}),
        ("owner=payments", {"a-stuck", "b-lag"}),
        ("owner", {"a-stuck", "b-lag", "c-other"}),
        (f"runbook={RUNBOOK}", {"a-stuck"}),
        ("runbook=https://wiki.example.com/?a", set()),
        ("payments", set()),
    ],
)
async def test_a_rule_is_for_the_groups_with_its_label(
    runtime: Runtime, world: World, label: str, found: set[str]
) -> None:
    for group_id in ("a-stuck", "b-lag", "c-other", "d-none"):
        await world.group(group_id)
        if group_id == "b-lag":
            await world.lag(group_id, 100)
        else:
            await world.verdict(group_id, "stuck", START_MS - 5_000)
    labels = runtime.get(GroupLabels)
    await labels.alter("a-stuck", {"owner": "payments", "runbook": RUNBOOK}, "ann")
    await labels.alter("b-lag", {"owner": "payments"}, "ann")
    await labels.alter("c-other", {"owner": "other"}, "ann")
    await runtime.get(AlertService).store(rule(label=label), ADMIN)
    await world.judged()
    await runtime.get(AlertChecks).check()
    assert await open_groups(runtime) == found


@pytest.mark.parametrize(
    ("label", "is_found"),
    [("", True), ("owner", True), ("owner=payments", True), ("owner=other", False), ("team", False)],
)
async def test_a_rule_for_one_group_looks_at_its_label(
    runtime: Runtime, world: World, label: str, is_found: bool
) -> None:
    await world.group("billing")
    await world.lag("billing", 100)
    await runtime.get(GroupLabels).alter("billing", {"owner": "payments"}, "ann")
    await runtime.get(AlertService).store(rule(label=label, pattern="literal", group_name="billing"), ADMIN)
    await world.judged()
    await runtime.get(AlertChecks).check()
    assert (await open_groups(runtime) == {"billing"}) is is_found


@pytest.mark.parametrize("named", [{"pattern": "literal", "group_name": "billing"}, {}], ids=["one group", "all"])
async def test_a_time_lag_beyond_the_samples_is_one_that_is_at_least(
    runtime: Runtime, world: World, named: dict[str, str]
) -> None:
    """Else the alert on a group would end when its next record is older than all that is kept."""
    for group_id in ("billing", "shipping"):
        await world.group(group_id)
    await world.lag("billing", 5, at_least_ms=60_000)
    await world.lag("shipping", 5, at_least_ms=59_999)
    await runtime.get(AlertService).store(rule(verdicts=[], min_lag=None, min_time_lag_ms=60_000, **named), ADMIN)
    await world.judged()
    await runtime.get(AlertChecks).check()
    assert await open_groups(runtime) == {"billing"}


@pytest.mark.parametrize(("label", "is_found"), [("a=b", False), ("a=b=c", False), ("a", False), ("b=c=d", True)])
async def test_the_first_equals_sign_ends_the_name(runtime: Runtime, world: World, label: str, is_found: bool) -> None:
    await world.group("billing")
    await world.verdict("billing", "stuck", START_MS - 5_000)
    await runtime.get(GroupLabels).alter("billing", {"a=b": "c", "b": "c=d"}, "ann")
    await runtime.get(AlertService).store(rule(label=label), ADMIN)
    await world.judged()
    await runtime.get(AlertChecks).check()
    assert (await open_groups(runtime) == {"billing"}) is is_found


async def test_a_rule_keeps_and_changes_its_label(api: httpx.AsyncClient) -> None:
    body = {"name": "payments", "pattern": "prefix", "group_name": "", "verdicts": ["stuck"], "receivers": ["ops"]}
    rule = (await api.post("/v1/alerts/rules", json={**body, "label": "owner=payments"})).json()
    path = f"/v1/alerts/rules/{rule['id']}"
    assert (await api.patch(path, json={"for_ms": 5})).json()["label"] == "owner=payments"
    assert (await api.patch(path, json={"label": ""})).json()["label"] == ""
