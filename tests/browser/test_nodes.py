"""The page of nodes in real Chromium: with the server's own node, and with nodes that only their rows know."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW, VIOLATIONS, Wrongs, open_context, sign_in, watch
from tests.frontend import node_seed
from tests.frontend.seed import Seed, working_group
from tests.support.accounts import make_user
from tests.support.database import cloned_database
from tests.support.processes import Running, start_server

pytestmark = [pytest.mark.browser, pytest.mark.whole("needs servers of its own")]

CLIPPED = """
[...document.querySelectorAll('.shard')].filter((shard) =>
  [...shard.children].some((line) => line.scrollWidth > line.clientWidth)).map((shard) => `wide: ${shard.innerText}`)
"""


@pytest.fixture(scope="module")
def apart(postgres: str) -> Iterator[tuple[Running, str]]:
    """A server that cannot register, and its database: the rows of nodes are those that a test wrote."""
    with cloned_database(postgres) as conninfo:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            node_seed.keep_servers_out(Seed(connection))
        with start_server(conninfo, env={"KCOORD_NODE_ID": "node-1"}) as server:
            make_user(conninfo)
            server.wait_for_output("not_a_node")
            yield server, conninfo


@pytest.fixture
def rows(apart: tuple[Running, str]) -> Iterator[Seed]:
    """Writes rows; the tables of nodes and groups are empty."""
    with psycopg.connect(apart[1], autocommit=True) as connection:
        seed = Seed(connection)
        node_seed.empty(seed)
        connection.execute("truncate groups_group, groups_event restart identity cascade")
        yield seed


async def test_the_own_node_of_a_server_is_live(page: Page) -> None:
    await page.get_by_role("link", name="Nodes", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Nodes")
    row = page.get_by_role("group", name="Registered nodes").locator("tbody tr")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("this server")
    await expect(row).to_contain_text("Live")
    await expect(page.locator(".shard[data-tone=good]")).to_have_count(50)
    await expect(page.locator("#live-status")).to_have_text("Live")


async def test_a_hand_over_shows_without_a_reload(
    browser: Browser, apart: tuple[Running, str], rows: Seed, wrongs: Wrongs
) -> None:
    live, *_ = node_seed.outage(rows)
    context = await open_context(browser, apart[0])
    page = await context.new_page()
    watch(page, apart[0].url, wrongs)
    await page.goto("/nodes")
    await sign_in(page)
    await expect(page.locator(".outage")).to_contain_text("18 of 50 partitions have no live owner")
    await expect(page.locator("#live-status")).to_have_text("Live")
    await page.get_by_role("heading", name="Registered").evaluate("element => { element.kept = true }")
    # Not 1: a registration that is refused meanwhile takes an id too.
    rows.connection.execute("update groups_coordinatorpartition set owner_id = %s, state = 'ACTIVE'", [live])
    rows.connection.execute("select pg_notify('kcoord_nodes', '')")
    await expect(page.locator(".outage")).to_have_count(0)
    await expect(page.locator(".shard[data-tone=good]")).to_have_count(50)
    assert await page.get_by_role("heading", name="Registered").evaluate("element => element.kept"), "no reload"
    await context.close()


async def test_the_pages_are_readable_and_sound(
    browser: Browser, apart: tuple[Running, str], rows: Seed, wrongs: Wrongs
) -> None:
    site = apart[0]
    context = await open_context(browser, site, viewport=NARROW)
    await context.add_init_script(VIOLATIONS)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/nodes")
    await sign_in(page)
    complaints = {"none": await audit_in_every_look(page, "nodes-none")}
    await expect(page.get_by_role("heading", name="No node has registered yet")).to_be_visible()
    working_group(rows)
    for name, write in (("four", node_seed.four_nodes), ("outage", node_seed.outage)):
        node_seed.empty(rows)
        write(rows)
        await page.goto("/nodes")
        for summary in await page.locator("#ended summary").all():
            await summary.click()
        complaints[name] = await audit_in_every_look(page, f"nodes-{name}", CLIPPED)
        await page.goto("/groups/billing")
        complaints[f"group, {name}"] = await audit_in_every_look(page, f"nodes-group-{name}")
    assert {name: found for name, found in complaints.items() if found} == {}
    await context.close()
