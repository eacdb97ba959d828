"""A hold is seen wherever the state of its group is, and no page says that it has ended while it goes on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from frontend.ui.states import is_held, state
from frontend.ui.verdicts import lines
from groups.core.model.types import VerdictKind
from offsets.verdicts.reads import Summary
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms

HOUR = 3_600_000
HELD = "Empty, held"


@pytest.fixture
def held(person: Client, seed: Seed) -> Client:
    """The group billing, held for an hour, with an offset on orders, and a verdict."""
    seed.topic("orders", 2, [100, 100])
    group = seed.group("billing", "Empty")
    seed.commit(group, {("orders", 0): 10})
    seed.connection.execute(
        "update groups_group set held_until = %s, held_by = 'mara', hold_reason = 'repair' where id = %s",
        [now_ms() + HOUR, group],
    )
    seed.connection.execute(
        "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
        " log_end_offsets, partitions, unknown_partitions) values (%s, 'orders', 1, 1, 1, null, 0, 0, 1, 0)",
        [group],
    )
    return person


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code in (200, 404), path
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


@pytest.mark.parametrize(
    "path",
    [
        "/groups/billing",
        "/groups/billing/states",
        "/groups/billing/config",
        "/groups",
        "/groups?q=bill",
        "/topics/orders",
        "/search?q=bill",
        "/groups/billing/hold",
        "/groups/billing/delete",
        "/groups/billing/reset",
    ],
)
def test_the_state_of_a_held_group_says_so(held: Client, seed: Seed, path: str) -> None:
    held.force_login(_operator())
    assert HELD in text(held, path), path


def _operator() -> Any:
    from django.contrib.auth import get_user_model

    return get_user_model().objects.create_superuser("ops")


def test_the_end_of_a_hold_is_the_next_timer(held: Client) -> None:
    page = text(held, "/groups/billing")
    timer = page[page.index("Next timer") :][:120]
    assert "none" not in timer
    assert "the hold ends" in timer
    assert "for the next member" not in page


def test_a_member_that_a_hold_removed_says_that_the_group_is_held(held: Client, seed: Seed) -> None:
    seed.event("billing", "member_removed", 1, "m-1")
    page = text(held, "/groups/billing/members/m-1")
    assert "Held" in page
    assert "repair" in page


@pytest.mark.parametrize("plan", ["planned", "applied", "undone"])
@pytest.mark.parametrize("is_on", [True, False])
def test_the_last_step_is_done_only_once_the_hold_has_ended(held: Client, seed: Seed, plan: str, is_on: bool) -> None:
    if not is_on:
        seed.connection.execute("update groups_group set held_until = null")
    plan_id = put_plan(seed.connection, "billing", made_at=now_ms(), state=plan)
    page = held.get(f"/groups/billing/plans/{plan_id}").content.decode()
    marks = {name: mark for mark, name in re.findall(r'<li data-mark="(\w+)"[^>]*><span>([^<]*)</span>', page)}
    assert (marks["End the hold"] == "done") is (plan != "planned" and not is_on)
    assert (marks["Hold"] == "done") is (is_on or plan != "planned")
    assert ("No member can join" in page) is is_on


@pytest.mark.parametrize("kind", VerdictKind)
def test_the_advice_on_a_held_group_says_that_it_is_held(kind: VerdictKind) -> None:
    summary = Summary(kind, 1, 2, 3, 4, ["orders"], 1, ["0"])
    (line,) = lines([summary], "Empty", window_ms=60_000, held=True)
    assert "held" in line.advice
    if kind is VerdictKind.EXPIRING:
        assert line.next is None, "offsets of a held group do not expire"


def test_offsets_of_a_held_group_are_not_said_to_expire(held: Client, seed: Seed) -> None:
    page = held.get("/groups/billing?tab=offsets").content.decode()
    assert "while the group is held" in page


def test_a_hold_that_is_past_is_none() -> None:
    assert not is_held(1, 1)
    assert not is_held(None, 1)
    assert is_held(2, 1)
    assert state("Empty").label == "Empty"
    assert state("Empty", held=True).tone == "warn"
