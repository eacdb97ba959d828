"""Share groups: how far they are, as kafka-share-groups prints it, and what does not apply to them."""

from __future__ import annotations

import re

import httpx
import pytest

from tests.kcoord.kgroups.conftest import Kgroups

pytestmark = pytest.mark.usefixtures("orders")


@pytest.fixture
async def mailing(api: httpx.AsyncClient) -> None:
    """A share group without members, which begins at 17 on partition 0."""
    body = {"partitions": [{"topic": "orders", "partition": 0, "start_offset": 17}]}
    answer = await api.post("/v1/groups/mailing/share-offsets", json=body)
    assert answer.status_code == 200, answer.text


@pytest.fixture
async def worker(api: httpx.AsyncClient, mailing: None) -> None:
    """A member of the group."""
    body = {"member_id": "w1", "member_epoch": 0, "subscribed_topic_names": ["orders"], "client_id": "mailer"}
    answer = await api.post("/v1/groups/mailing/share-heartbeat", json=body)
    assert answer.status_code == 200, answer.text


async def test_offsets(kgroups: Kgroups, mailing: None) -> None:
    run = await kgroups("--describe", "--group", "mailing")
    assert run.status == 0
    assert "Share group 'mailing' has no active members." in run.err
    lines = [line.split() for line in run.out.splitlines() if line]
    assert ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"] in lines
    assert ["mailing", "orders", "0", "17", "83"] in lines


async def test_verbose_offsets_count_items(kgroups: Kgroups, mailing: None) -> None:
    run = await kgroups("--describe", "--group", "mailing", "--verbose")
    lines = [line.split() for line in run.out.splitlines() if line]
    assert ["mailing", "orders", "0", "17", "83", "100", "0", "0", "0", "0"] in lines


async def test_members_and_state(kgroups: Kgroups, worker: None) -> None:
    run = await kgroups("--describe", "--group", "mailing", "--members")
    assert ["mailing", "w1", "127.0.0.1", "mailer", "4"] in [line.split() for line in run.out.splitlines()]
    run = await kgroups("--describe", "--group", "mailing", "--state")
    (row,) = [line for line in run.out.splitlines() if line.startswith("mailing")]
    assert "simple" in row
    assert "Stable" in row


async def test_its_starts_are_reset_with_plans(kgroups: Kgroups, mailing: None) -> None:
    reset = ("--reset-offsets", "--group", "mailing", "--topic", "orders:0", "--to-earliest", "--execute")
    run = await kgroups(*reset)
    assert run.status == 0, run.err
    assert ["mailing", "orders", "0", "10"] in [line.split() for line in run.out.splitlines()]
    undo = re.search(r"--undo ([0-9a-f-]{36})", run.err)
    assert undo is not None, run.err
    run = await kgroups("--reset-offsets", "--group", "mailing", "--undo", undo[1], "--execute")
    assert run.status == 0, run.err
    lines = [line.split() for line in (await kgroups("--describe", "--group", "mailing")).out.splitlines()]
    assert ["mailing", "orders", "0", "17", "83"] in lines


async def test_they_are_listed_when_asked_for(kgroups: Kgroups, mailing: None) -> None:
    assert "mailing" not in (await kgroups("--list")).out
    run = await kgroups("--list", "--type", "share")
    assert ["mailing", "Share"] in [line.split() for line in run.out.splitlines()]
