"""Plans that a second person has to approve, on pages."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from tests.frontend.seed import Seed
from tests.frontend.viewers import allow

RESET = "/groups/idle/reset"


@pytest.fixture
def second_person(settings: SettingsWrapper) -> None:
    """Plans take one."""
    settings.KCOORD = settings.KCOORD.override({"plans.second.person": True})


@pytest.fixture
def plan(operator: Client, seed: Seed) -> str:
    """The address of a plan that the operator made for an empty group."""
    seed.topic("orders", 2, [100, 200])
    seed.commit(seed.group("idle", "Empty"), {("orders", 0): 10, ("orders", 1): 20})
    return operator.post(RESET, {"strategy": "to-earliest", "reason": "bug 17"}).headers["Location"]


@pytest.fixture
def colleague(plan: str) -> Client:
    """Someone who may do the same."""
    return signed_in("colleague", "alter-offsets")


def signed_in(name: str, operation: str) -> Client:
    """An account that may read, and has one operation on groups besides."""
    user = get_user_model().objects.create_user(name, password="not a secret")
    allow(user, "read:group:*", "read:topic:*", f"{operation}:group:*")
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html[html.index("<main") :]).split())


def button(html: str, act: str) -> str:
    """The button of an act, "" if the page has none."""
    found = re.search(rf'<button[^>]*name="act" value="{act}"[^>]*>', html)
    return found[0] if found else ""


@pytest.mark.usefixtures("second_person")
def test_the_maker_is_told_to_ask_someone_else(operator: Client, plan: str) -> None:
    html = page(operator, plan)
    assert "Waits for approval" in plain(html)
    assert "You made this plan, so someone else has to approve it" in plain(html)
    assert "disabled" in button(html, "approve")
    assert button(html, "apply") == ""
    assert "Nobody has approved the plan yet." in plain(html)
    refused = operator.post(plan, {"act": "approve"})
    assert refused.status_code == 409
    assert "someone else has to approve it" in plain(refused.content.decode())


@pytest.mark.usefixtures("second_person")
def test_someone_else_approves_it_and_then_it_is_applied(operator: Client, colleague: Client, plan: str) -> None:
    html = page(colleague, plan)
    assert "Waits for approval" in plain(html)
    assert "root made this plan" in plain(html)
    assert "disabled" not in button(html, "approve")
    assert f"--approve={plan.rsplit('/', 1)[1]}" in html
    told = colleague.post(plan, {"act": "approve"}, follow=True).content.decode()
    assert "Approved: the plan can be applied." in plain(told)
    html = page(operator, plan)
    assert "by colleague" in plain(html)
    assert "waits for approval" not in plain(html).lower()
    assert button(html, "approve") == ""
    assert "Applied: the offsets of 2 partitions are set." in plain(
        operator.post(plan, {"act": "apply"}, follow=True).content.decode()
    )


@pytest.mark.usefixtures("second_person")
def test_applying_it_before_is_refused(colleague: Client, plan: str) -> None:
    refused = colleague.post(plan, {"act": "apply"})
    assert refused.status_code == 409
    assert "Waits for approval" in plain(refused.content.decode())


@pytest.mark.usefixtures("second_person")
def test_approving_takes_the_right_to_apply(plan: str) -> None:
    reader = signed_in("reader", "describe")
    html = page(reader, plan)
    assert "disabled" in button(html, "approve")
    assert "your account needs alter-offsets on group idle" in plain(html)
    assert reader.post(plan, {"act": "approve"}).status_code == 403


@pytest.mark.usefixtures("second_person")
def test_the_list_tells_and_filters_what_waits(operator: Client, colleague: Client, plan: str) -> None:
    approved = operator.post(RESET, {"strategy": "to-latest"}).headers["Location"]
    colleague.post(approved, {"act": "approve"})
    both = page(operator, "/plans")
    assert "Waits for approval" in plain(both)
    assert "approved" in plain(both)
    waiting = page(operator, "/plans?state=unapproved")
    assert plan in waiting
    assert approved not in waiting
    assert "colleague" in operator.get("/plans.csv").getvalue().decode()
    assert plan.rsplit("/", 1)[1] in operator.get("/plans.csv?state=unapproved").getvalue().decode()


def test_without_the_setting_a_plan_is_applied_at_once(operator: Client, plan: str) -> None:
    html = page(operator, plan)
    assert "waits for approval" not in html.lower()
    assert button(html, "approve") == ""
    assert button(html, "apply")
    assert "waits for approval" not in page(operator, "/plans").lower()
