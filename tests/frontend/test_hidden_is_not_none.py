"""Pages of an account with few rights: what is hidden is not said to be none, empty, zero or unknown.

The walk is made from the table of URLs; what pages say is compared with what `/v1` says to the same rights.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from frontend.urls import urlpatterns
from kcoord.access.tokens import create_token, parse_rule
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.test_visibility import addresses
from tests.frontend.viewers import LOOK, allow
from tests.support.spark_runs import put_run

FEW = ("describe:group:seen-*", "describe:topic:seen-*")
ABOUT_NO_DATA = re.compile(
    r"No members\.|No member matches|There are no rules|Nothing chosen|Find anything|No saved views|Nothing logged"
    r"|No rebalance|not rebalanced|No report yet|No such|None yet|Groups have not been judged|further groups"
    r"|Nobody can be told|No message|No rules yet|No runs|No tokens|Nothing to show yet|Nobody\b|No rule of yours"
    r"|Nothing is due in this group|It has no labels|Not reconciled yet"
    r"|no further partitions|No longer kept|Nothing about this group"
)
"""Statements that are true whatever is hidden: of the viewer's own things, of the address, or of members' number."""
EMPTY = re.compile(r'<(p|div|span|h3)[^>]*class="(?:blank|empty|none)[^"]*"[^>]*>(.*?)</(?:p|div|span)>', re.S)
DENIES = re.compile(r"\b(?:No|no|none|Nothing|nothing|never|not been)\b")


@pytest.fixture
def dark(seed: Seed) -> Seed:
    """Groups that are seen and have everything on topics that are not: of both protocols."""
    for topic in ("dark-orders", "seen-idle"):
        seed.topic(topic, 4, [100] * 4)
    classic = seed.group("seen-dark", "Stable", generation=5)
    seed.members(classic, ["m"], client_id="c")
    seed.assign(classic, {("dark-orders", 0): "m"})
    seed.commit(classic, {("dark-orders", 0): 60})
    seed.journal("seen-dark", "commit", "dark-orders", 0, 60, member_id="m")
    seed.journal("seen-dark", "reset", "dark-orders", 0, 60, principal="mara")
    seed.lag_samples("seen-dark", {"dark-orders": [40, 40]})
    seed.group_lag(classic, 40, 5_000)
    empty = seed.group("seen-empty", "Empty")
    seed.commit(empty, {("dark-orders", 1): 60})
    consumers = seed.consumer_group("seen-consumers", "Stable", epoch=3, assignment_epoch=3)
    seed.consumer_member(consumers, "x", epoch=3)
    seed.connection.execute("update groups_consumermember set subscribed_topic_names = '{dark-orders}'")
    seed.assign(consumers, {("dark-orders", 2): "x"})
    seed.commit(consumers, {("dark-orders", 2): 60, ("seen-idle", 0): 90})
    seed.commit(seed.group("hidden-reader", "Empty"), {("seen-idle", 1): 1})
    put_run(seed.connection, "reconcile", findings=0)
    return seed


def sign_in(client: Client, *rules: str) -> None:
    user = get_user_model().objects.create_user("mara")
    allow(user, *rules)
    client.force_login(user)


def pages(seed: Seed) -> list[str]:
    ids = {"plan_id": put_plan(seed.connection, "seen-dark", made_at=now_ms()), "run_id": put_run(seed.connection),
           "rule_id": 1, "token_id": 1}  # fmt: skip
    found: list[str] = []
    for group_id in ("seen-dark", "seen-empty", "seen-consumers"):
        for name, some in addresses(group_id, "seen-idle", "m", ids, "seen").items():
            if not name.endswith("-csv"):
                found += some
    for group_id in ("seen-dark", "seen-consumers"):
        found += [f"/groups/{group_id}?tab=members", f"/groups/{group_id}?tab=offsets"]
    return list(dict.fromkeys(found))


def denials(page: str) -> list[str]:
    """Blocks that say that something is not there, without a word on what the viewer may see."""
    found = []
    for block in EMPTY.finditer(page):
        title = re.search(r'title="([^"]*)"', block[0][: block[0].index(">") + 1])
        said = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", block[2])).strip()
        limited = "may see" in said or "may not" in said or "your rules" in said or (title and "account" in title[1])
        true_anyway = ABOUT_NO_DATA.search(f"{said} {title[1] if title else ''}")
        if DENIES.search(said) and not limited and not true_anyway:
            found.append(said)
    return found


def test_no_page_says_none_of_what_is_hidden(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW)
    wrong, read = [], 0
    for address in pages(dark):
        answer = client.get(address)
        if answer.status_code == 200 and not answer.streaming and "html" in answer.headers["Content-Type"]:
            read += 1
            wrong += [(address, said) for said in denials(answer.content.decode())]
    assert read > 40
    assert wrong == [], "\n".join(map(str, wrong))


def test_who_sees_all_is_told_of_no_limits(client: Client, dark: Seed) -> None:
    sign_in(client, *LOOK)
    for address in pages(dark):
        answer = client.get(address)
        if answer.status_code == 200 and not answer.streaming:
            assert 'class="seen"' not in answer.content.decode(), address


def test_the_walk_has_all_pages() -> None:
    named = addresses("g", "t", "m", {"plan_id": _uuid(), "run_id": _uuid(), "rule_id": 1, "token_id": 1}, "q")
    assert set(named) >= {str(page.name) for page in urlpatterns if "{" not in str(page.name)} - {
        "live", "logout", "login", "identity", "identity-answer", "password", "password-changed"
    }  # fmt: skip


def _uuid() -> Any:
    import uuid

    return uuid.UUID(int=5)


@pytest.mark.parametrize("tab", ["", "?tab=members", "?tab=offsets"])
def test_a_consumer_group_with_hidden_topics_has_a_page_without_its_members(
    client: Client, dark: Seed, tab: str
) -> None:
    sign_in(client, *FEW)
    answer = client.get(f"/groups/seen-consumers{tab}")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "may not describe" in page
    assert "dark-orders" not in page
    assert 'href="/groups/seen-consumers/members/x"' not in page
    assert "No members." not in page
    if tab == "?tab=offsets":
        assert "seen-idle" in page
        assert ">hidden<" in page


@pytest.mark.parametrize("query", ["tab=offsets&only=unowned", "tab=offsets&member=x"])
def test_no_search_tells_who_owns_what_is_hidden(client: Client, dark: Seed, query: str) -> None:
    sign_in(client, *FEW)
    assert client.get(f"/groups/seen-consumers?{query}").status_code == 403


def test_lags_are_those_that_v1_says(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW)
    secret = create_token("few", [parse_rule(rule) for rule in FEW]).secret
    bearer: Any = {"headers": {"Authorization": f"Bearer {secret}"}}
    for group_id in ("seen-dark", "seen-consumers", "seen-empty"):
        said = client.get(f"/v1/groups/{group_id}/lag", **bearer).json()
        total = sum(one["lag"] or 0 for topic in said["topics"] for one in topic["partitions"])
        page = client.get(f"/groups/{group_id}").content.decode()
        fact = page[page.index("<dt>Lag</dt>") :][:300]
        shown = re.search(r'class="figure">([\d,<wbr>]+)</span>', fact)
        if said["topics"]:
            assert shown is not None
            assert int(re.sub(r"\D", "", shown[1])) == total == 10
        else:
            assert shown is None, "not 0, but not known"


def test_sums_of_what_is_hidden_are_hidden_in_the_list(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW)
    page = client.get("/groups?columns=lag.time_lag").content.decode()
    line = page[page.index("seen-dark") :][:1500]
    assert ">hidden<" in line[line.index('data-label="Time lag"') :]
    assert ">40<" not in line


def test_deleting_a_group_says_that_hidden_offsets_are_deleted(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW, "delete:group:seen-*")
    for address in ("/groups/seen-empty/delete", f"{reverse('frontend:group-actions')}?act=delete&group=seen-empty"):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "may not see" in answer.content.decode(), address
