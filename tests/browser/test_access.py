"""The page of who may what in real Chromium: found from the menu, filtered, and without complaints at any size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from playwright.async_api import Page, expect

from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.tokens import Rule, parse_rule
from tests.browser.audit import audit_in_every_look, picture
from tests.browser.conftest import NARROW, choose_page
from tests.frontend.seed import Seed
from tests.support.accounts import USER

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

LONG = "a-name-that-is-much-longer-than-names-should-be-" * 3


def put(
    seed: Seed, kind: str, name: str, rules: Iterable[Rule], *, active: bool = True, groups: Sequence[int] = ()
) -> int:
    """A user, group or token with rules; returns its key."""
    statement = {
        "user": "insert into auth_user (username, password, is_superuser, is_staff, is_active, first_name, last_name,"
        " email, date_joined) values (%s, '', false, false, %s, '', '', '', now()) returning id",
        "group": "insert into auth_group (name) select %s where %s returning id",
        "token": "insert into kcoord_apitoken (name, digest, prefix, created_at, expires_at)"
        " select name, md5(name), 'kc_12345', 1, case when not live then 1 end from (values (%s, %s)) v (name, live)"
        " returning id",
    }[kind]
    row = seed.connection.execute(statement.encode(), [name, active]).fetchone()
    assert row is not None
    seed.connection.cursor().executemany(
        f"insert into kcoord_accessrule ({kind}_id, effect, operation, resource, pattern, name)"
        " values (%s, %s, %s, %s, %s, %s)".encode(),
        [(row[0], one.effect, one.operation, one.resource, one.pattern, one.name) for one in rules],
    )
    for group in groups:
        seed.connection.execute("insert into auth_user_groups (user_id, group_id) values (%s, %s)", [row[0], group])
    return int(row[0])


@pytest.fixture
def seed(seed: Seed) -> Seed:
    """Writes into a database with one account and no groups of people."""
    seed.connection.execute("truncate auth_group cascade")
    seed.connection.execute("delete from auth_user where username <> %s", [USER])
    return seed


def few(seed: Seed) -> None:
    """A team, a person in it, and some services."""
    team = put(
        seed, "group", "billing-team", [*OPERATOR.rules("billing-"), parse_rule("deny:delete:group:billing-eu*")]
    )
    put(seed, "user", "ada", [*VIEWER.rules(), parse_rule("read:group:ada")], groups=[team])
    put(seed, "user", "zoe", [])
    put(seed, "user", "gone", [], active=False)
    put(seed, "token", "billing-service", [parse_rule("read:group:billing-eu"), parse_rule("read:topic:orders")])
    put(seed, "token", "deploy", ADMINISTRATOR.rules())
    put(seed, "token", "old", [parse_rule("read:group:*")], active=False)


def many(seed: Seed) -> None:
    """Long names, many rules, many groups of one person, and more tokens than a page has."""
    teams = [put(seed, "group", f"{LONG[:100]}{number:02}", VIEWER.rules(f"{LONG}{number}-")) for number in range(25)]
    put(seed, "user", f"b{LONG[:140]}", [], groups=teams)
    rules = [Rule("read", "topic", "literal", f"{LONG}{number:03}") for number in range(60)]
    put(seed, "token", LONG, [*rules, *(parse_rule(f"deny:admin:group:{LONG}{number}*") for number in range(9))])
    for number in range(60):
        put(seed, "token", f"service-{number:02}", [parse_rule(f"read:group:service-{number}")])


async def test_who_may_delete_a_group_is_found_in_a_minute(page: Page, seed: Seed) -> None:
    few(seed)
    await page.goto("/")
    await choose_page(page, "Access")
    await expect(page.get_by_role("heading", name="Access")).to_be_visible()
    await page.get_by_label("Called").fill("billing-eu")
    await page.keyboard.press("Enter")
    ada = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="ada person"))
    await expect(ada).to_contain_text("not delete group billing-eu")
    await expect(ada).to_contain_text("deny:delete:group:billing-eu* of billing-team")
    await expect(page.get_by_role("row").filter(has_text="zoe")).to_have_count(0)
    await page.get_by_role("link", name="Show all").click()
    await page.get_by_role("link", name="billing-service").click()
    await expect(page.get_by_role("heading", name="billing-service")).to_be_visible()


async def test_a_team_gets_a_role_in_the_admin(page: Page, seed: Seed) -> None:
    few(seed)
    await page.goto("/access?kind=Group")
    await page.get_by_role("link", name="billing-team").click()
    await page.get_by_label("Give a role").select_option("viewer")
    await page.get_by_label("On names that begin with").fill("orders-")
    await picture(page, "access-admin")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.goto("/access?kind=Group")
    await expect(page.get_by_role("table")).to_contain_text(
        "Viewer of all groups, topics and transactional ids that begin"
    )


async def test_a_colleague_gets_read_access(page: Page, seed: Seed) -> None:
    """From the landing page in three clicks, besides the name and the prefix."""
    few(seed)
    seed.group("billing-eu")
    await page.goto("/")
    await choose_page(page, "Access")
    await page.get_by_role("link", name="Grant").click()
    await page.get_by_label("Name", exact=True).fill("zoe")
    await page.get_by_label("Prefix").fill("billing-")
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("Of what exists now, they see 1 group (billing-eu) and 0 topics.")).to_be_visible()
    assert await audit_in_every_look(page, "grant") == []
    await page.get_by_role("button", name="Grant", exact=True).click()
    await expect(page.get_by_text("zoe has 3 new rules.")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="zoe")).to_contain_text("Viewer of all groups")


async def test_a_new_group_of_people_gets_a_role(page: Page, seed: Seed) -> None:
    few(seed)
    await page.set_viewport_size(NARROW)
    await page.goto("/access/grant")
    await expect(page.get_by_label("People to add to it")).to_be_hidden()
    await page.get_by_label("To a", exact=True).select_option("Group")
    await page.get_by_label("Name", exact=True).fill("readers")
    await page.get_by_label("Create this group of people").check()
    await page.get_by_label("People to add to it").fill("zoe, ada")
    await page.get_by_label("Prefix").fill("*")
    await page.keyboard.press("Tab")
    await expect(page.get_by_text("With the rules that readers has already, they may then")).to_be_visible()
    await picture(page, "grant-group")
    await page.get_by_role("button", name="Grant", exact=True).click()
    await expect(page.get_by_role("row").filter(has_text="readers").first).to_contain_text("ada and zoe")


async def test_nothing_is_wrong_with_the_page(page: Page, seed: Seed) -> None:
    await page.set_viewport_size(NARROW)
    await page.goto("/access")
    complaints = {}

    async def look(name: str, address: str) -> None:
        await page.goto(address)
        complaints[name] = await audit_in_every_look(page, f"access-{name}")

    await look("empty", "/access")
    few(seed)
    await look("normal", "/access")
    await look("one", "/access?name=billing-eu")
    await look("nobody", "/access?q=nobody")
    many(seed)
    await look("huge", "/access")
    await look("huge-one", f"/access?resource=topic&name={LONG}007")
    assert {name: found for name, found in complaints.items() if found} == {}
