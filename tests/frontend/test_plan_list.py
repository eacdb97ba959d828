"""The list of all plans: newest first, by filters, by pages, and what it reads beside very many."""

from __future__ import annotations

import csv
import io
import re

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.pages.offsets.plans import LAST_ID, PAGE_SIZE
from kcoord.database.paging import INT64_MAX
from kcoord.database.sql import queries
from tests.conftest import START_MS
from tests.frontend.conftest import PASSWORD
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.viewers import ALL, allow
from tests.support.database import cloned_database
from tests.support.plans import executed_plan


def shown(client: Client, address: str) -> list[str]:
    """The groups of the listed plans."""
    answer = client.get(address)
    assert answer.status_code == 200
    return re.findall(r'class="row-link" href="/groups/[^"]+">([^<]+)<', answer.content.decode())


@pytest.fixture
def some(seed: Seed) -> None:
    """Plans in every state."""
    now = now_ms()
    put_plan(seed.connection, "billing", made_at=now - 3_600_000, state="applied", removed=2, reason="bug 17")
    put_plan(seed.connection, "mailing", made_at=now - 1_800_000, state="undone", made_by="deploy-token")
    put_plan(seed.connection, "billing-eu", made_at=now - 60_000)


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("", ["billing-eu", "mailing", "billing"]),
        ("?state=planned", ["billing-eu"]),
        ("?q=BILLING", ["billing-eu", "billing"]),
        ("?who=deploy-token", ["mailing"]),
        ("?who=ops", ["mailing", "billing"]),
        ("?to=2001-01-01T00:00", []),
        ("?from=2001-01-01T00:00&state=undone", ["mailing"]),
    ],
)
def test_plans_are_found_by_group_state_person_and_time(
    operator: Client, some: None, query: str, groups: list[str]
) -> None:
    assert shown(operator, f"/plans{query}") == groups
    lines = b"".join(operator.get(f"/plans.csv{query}").streaming_content).decode()  # type: ignore[attr-defined]
    assert [row["group_id"] for row in csv.DictReader(io.StringIO(lines))] == groups


def test_a_line_says_what_a_plan_does(operator: Client, some: None) -> None:
    page = operator.get("/plans?state=applied").content.decode()
    row = " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<tbody") : page.index("</tbody")]).split())
    assert row == "billing Earliest Applied 3 of 3 change 2 +1,200 bug 17 1 h ago mara 59 min ago ops"


@pytest.mark.parametrize(
    ("strategy", "parameters", "words"),
    [
        ("shift-by", {"by": -100}, "Backwards 100 records"),
        ("shift-by", {"by": 1_200}, "Forwards 1,200 records"),
        ("to-offset", {"offset": 0}, "An offset 0"),
        ("to-committed-at", {"at": 1_700_000_000_000}, "Committed at a time 2023-11-14 22:13:20 UTC"),
        ("by-duration", {"duration": "PT1H30M"}, "Records written recently PT1H30M"),
        ("copy-from-group", {"from_group": "billing-v1"}, "Copy another group billing-v1"),
        ("to-latest", {"topics": ["orders"], "clamp": True}, "Latest"),
    ],
)
def test_a_line_says_by_how_much_and_since_when(
    operator: Client, seed: Seed, strategy: str, parameters: dict[str, object], words: str
) -> None:
    put_plan(seed.connection, "billing", made_at=now_ms(), strategy=strategy, parameters=parameters)
    page = operator.get("/plans").content.decode()
    row = " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<tbody") : page.index("</tbody")]).split())
    assert row.startswith(f"billing {words} Planned")


def test_a_group_that_may_not_be_seen_is_not_named_as_the_source(client: Client, seed: Seed) -> None:
    user = get_user_model().objects.create_user("mara", password=PASSWORD)
    allow(user, "describe:group:billing", "describe:topic:*")
    client.force_login(user)
    given = {"from_group": "unseen-source"}
    put_plan(seed.connection, "billing", made_at=now_ms(), strategy="copy-from-group", parameters=given)
    page = client.get("/plans").content.decode()
    assert "Copy another group" in page
    assert "unseen-source" not in page


def test_pages_show_every_plan_once(operator: Client, seed: Seed) -> None:
    now = now_ms()
    for number in range(2 * PAGE_SIZE + 3):
        put_plan(seed.connection, f"g{number:03}", made_at=now - number // 4, lines=0)
    found, address = [], "/plans"
    while address:
        found += shown(operator, address)
        older = re.search(r'rel="next" href="([^"]+)"', operator.get(address).content.decode())
        address = older[1].replace("&amp;", "&") if older else ""
    assert sorted(found) == [f"g{number:03}" for number in range(2 * PAGE_SIZE + 3)]


def test_an_empty_list_teaches_and_an_empty_search_leads_back(operator: Client, seed: Seed) -> None:
    assert "No plans yet" in operator.get("/plans").content.decode()
    assert "No plan matches" in operator.get("/plans?q=x").content.decode()
    assert operator.get("/plans?before=x").status_code == 400
    assert operator.get("/plans?state=x").status_code == 400


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_a_page_is_read_from_the_index_beside_a_hundred_thousand_plans(postgres: str, generic: bool) -> None:
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(
            "insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at,"
            " created_by) select gen_random_uuid(), 'g' || i %% 5000, 'to-latest', '{}', '{}', 'planned', '',"
            " %s - i, 'mara' from generate_series(1, 100000) i",
            [START_MS],
        )
        connection.execute(b"vacuum analyze offsets_offsetplan")
        nothing = {"since": 0, "state": None, "unapproved": False, "q": None, "who": None, "limit": PAGE_SIZE + 1}
        for before in ((INT64_MAX, LAST_ID), (START_MS - 70_000, LAST_ID)):
            parameters = {**nothing, "before_at": before[0], "before_id": before[1]}
            plan = executed_plan(
                connection, queries("frontend").all_plans, {**parameters, **ALL.with_groups()}, generic=generic
            )
            assert "offsets_plan_by_time" in plan, plan
            assert "Sort" not in plan, plan
            rows = re.findall(r" on offsets_offsetplan\b.*\(actual rows=([\d.]+)", plan)
            assert [float(number) for number in rows] == [PAGE_SIZE + 1], plan
