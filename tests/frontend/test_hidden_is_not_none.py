"""Pages of an account with few rights: what is hidden is not said to be none, empty, zero or unknown.

The walk is made from the table of URLs; what pages say is compared with what `/v1` says to the same rights.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from frontend.urls import urlpatterns
from kcoord.access.tokens import create_token, parse_rule
from kcoord.process import bridge
from offsets.lag.samples import SampleService
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.test_visibility import addresses
from tests.frontend.viewers import LOOK, allow
from tests.support.spark_runs import put_run

FEW = ("describe:group:seen-*", "describe:topic:seen-*")
ABOUT_NO_DATA = re.compile(
    r"No members\.|No member matches|There are no rules|Nothing chosen|Find anything|No saved views|Nothing logged"
    r"|No rebalance|not rebalanced|No report yet|No such|None yet|Groups have not been judged|further groups"
    r"|No receivers yet|No message|No rules yet|No runs|No tokens|Nothing to show yet|Nobody\b|No rule of yours"
    r"|Nothing is due in this group|No node has registered yet|^never $|It has no labels|Not reconciled yet"
    r"|no further partitions|No longer kept|Nothing about this group"
)
"""Statements that are true whatever is hidden: of the viewer's own things, of the address, or of members' number."""
EMPTY = re.compile(r'<(p|div|span|h3)[^>]*class="(?:blank|empty|none)[^"]*"[^>]*>(.*?)</(?:p|div|span)>', re.S)
DENIES = re.compile(r"\b(?:No|no|none|Nothing|nothing|never|not been)\b")


@pytest.fixture
def dark(seed: Seed) -> Seed:
    """Groups that are seen and have everything on topics that are not: of both protocols."""
    seed.topic("seen-none", 1)
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


DASH = re.compile(r'<span class="none"(?: title="([^"]*)")?>–</span>')
OF_SUMS = re.compile(
    r'(?:<dt[^>]*>(?:Lag|Change of lag|Records in its logs)</dt><dd>|data-label="(?:Lag|Time lag)"[^>]*>)\s*$'
)
ABOUT_ONE_TOPIC = re.compile(
    r"^(?:Nothing is committed|No watermark|Not known from the samples|Its lag was not sampled)"
)


def dashes(page: str) -> list[str]:
    """Dashes without a word on why, and those in the place of a sum over what is hidden too."""
    found = []
    for dash in DASH.finditer(page):
        why, before = dash[1] or "", page[max(dash.start() - 160, 0) : dash.start()]
        if not why:
            found.append(f"{before[-60:]}–")
        if OF_SUMS.search(before) and "may see" not in why and not ABOUT_ONE_TOPIC.match(why):
            found.append(f"{before[-60:]}–: {why}")
    return found


def denials(page: str) -> list[str]:
    """Blocks that say that something is not there, without a word on what the viewer may see."""
    found = dashes(page)
    for block in EMPTY.finditer(page):
        title = re.search(r'title="([^"]*)"', block[0][: block[0].index(">") + 1])
        said = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", block[2])).strip()
        limited = "may see" in said or "may not" in said or "your rules" in said or (title and "account" in title[1])
        true_anyway = ABOUT_NO_DATA.search(f"{said} {title[1] if title else ''}")
        if DENIES.search(said) and not limited and not true_anyway:
            found.append(said)
    return found


def test_no_page_says_none_of_what_is_hidden(client: Client, dark: Seed) -> None:
    sign_in(client, *FEW, "describe:cluster:*")
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
        shown = re.search(r'class="figure"[^>]*>([\d,<wbr>]+)</span>', fact)
        if said["topics"]:
            assert shown is not None
            assert int(re.sub(r"\D", "", shown[1])) == total == 10
        else:
            assert shown is None, "not 0, but not known"


def cell(page: str, row: str, label: str) -> str:
    """The cell of a table with this label, in the row that begins with a name."""
    line = page[page.index(row) :].partition("</tr>")[0]
    found = re.search(rf'data-label="{label}"[^>]*>(.*?)</td>', line, re.S)
    assert found is not None, (row, label)
    return found[1]


def number_in(html: str) -> int | None:
    """The first number that it shows, outside titles."""
    found = re.search(r"[+−-]?[\d,]+", re.sub(r"<[^>]*>", "", html))
    return int(re.sub(r"[^\d-]", "", found[0].replace("−", "-"))) if found else None


def test_pages_show_the_sums_of_v1_and_say_what_they_are_of(client: Client, dark: Seed) -> None:
    """Lists, and the pages of a topic, a plan and a member."""
    dark.connection.execute("delete from offsets_lagsample")
    bridge.call(lambda runtime: runtime.get(SampleService).sample())
    plan_id = put_plan(dark.connection, "seen-dark", made_at=now_ms())
    sign_in(client, *FEW)
    secret = create_token("few", [parse_rule(rule) for rule in FEW]).secret

    def v1(path: str) -> Any:
        return client.get(f"/v1/{path}", headers={"Authorization": f"Bearer {secret}"}).json()

    def page(path: str) -> str:
        return client.get(path).content.decode()

    groups = [one["group_id"] for one in v1("groups")["groups"]]
    of_topic = {name: v1(f"groups/{name}/lag?topic=seen-idle")["lag"] for name in groups}
    assert "hidden-reader" not in of_topic
    topics, topic = page("/topics"), page("/topics/seen-idle")
    line = cell(topics, 'href="/topics/seen-idle"', "Lag")
    assert number_in(line) == sum(filter(None, of_topic.values())) == 10
    assert "of the groups that you may see" in line
    assert "of the groups that you may see" in cell(topics, 'href="/topics/seen-none"', "Lag"), "not known, of these"
    assert number_in(topic[topic.index("seen-consumers") :].partition("</th>")[2].partition("</td>")[0]) == 10

    totals = v1(f"groups/seen-dark/offsets/plans/{plan_id}")["totals"]
    plans, plan = page("/plans"), page(f"/groups/seen-dark/plans/{plan_id}")
    for label, name in (("Partitions", "changed"), ("At risk", "removed"), ("Lag", "lag_change")):
        found = cell(plans, f'id="p{plan_id}"', label)
        assert number_in(found) == totals[name], label
        assert "on the topics that you may see" in found, label
    fact = re.search(r"<dt>Partitions</dt><dd>(.*?)</dd>", plan, re.S)
    assert fact is not None
    assert number_in(fact[1]) == totals["partitions"] == 0
    assert "on the topics that you may see" in fact[1]

    lag = re.search(r"<dt>Lag</dt><dd>(.*?)</dd>", page("/groups/seen-dark/members/m"), re.S)
    assert lag is not None
    assert number_in(lag[1]) is None
    assert v1("groups/seen-dark/lag")["lag"] is None
    assert "on the topics that you may see" in lag[1]


def test_files_tell_hidden_from_unknown(client: Client, dark: Seed) -> None:
    def time_lag(of: Client) -> str:
        rows = list(csv.DictReader(io.StringIO(b"".join(of.get("/groups.csv")).decode())))  # type: ignore[call-overload]
        return next(row["time_lag_ms"] for row in rows if row["group_id"] == "seen-dark")

    sign_in(client, *FEW)
    assert time_lag(client) == "hidden"
    get_user_model().objects.all().delete()
    sign_in(client, *LOOK)
    assert time_lag(client) == "5000"


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
