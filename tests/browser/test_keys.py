"""Keys and menus: the way to the search, and out of a menu."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit
from tests.browser.conftest import Wrongs
from tests.frontend.seed import Seed, working_group

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


@pytest.mark.parametrize(("address", "key"), [("/groups", "/"), ("/nodes", "Control+k"), ("/archive", "Meta+k")])
async def test_a_key_opens_the_box_on_every_page(page: Page, seed: Seed, address: str, key: str) -> None:
    working_group(seed)
    await page.goto(address)
    await page.keyboard.press(key)
    field = page.get_by_role("combobox", name="Find anything")
    await expect(field).to_be_focused()
    await page.keyboard.type("bill")
    first = page.get_by_role("option", name="billing").first
    await expect(first).to_have_attribute("aria-selected", "true")
    await expect(field).to_have_attribute("aria-activedescendant", "find-groups-1")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/groups/billing$"))


async def test_the_box_is_moved_through_by_keys_and_closed(page: Page, seed: Seed) -> None:
    working_group(seed)
    seed.group("billing-old", "Empty")
    await page.goto("/nodes")
    await page.get_by_role("button", name="Find").click()
    field = page.get_by_role("combobox", name="Find anything")
    await field.fill("hold billing")
    options = page.get_by_role("option")
    await expect(options).to_have_count(4)
    for key, at in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("ArrowUp", 0), ("ArrowUp", 3)):
        await page.keyboard.press(key)
        await expect(options.nth(at)).to_have_attribute("aria-selected", "true")
        assert await field.get_attribute("aria-activedescendant") == await options.nth(at).get_attribute("id")
    await expect(page.locator("#find-status")).to_have_text("4 results.")
    assert await audit(page) == []
    await page.keyboard.press("Escape")
    await expect(field).to_be_hidden()
    await expect(page.get_by_role("button", name="Find")).to_be_focused()


async def test_a_verb_without_a_group_asks_for_one(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("reset off")
    await expect(page.get_by_role("option").first).to_contain_text("Reset offsets of …")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("combobox", name="Find anything")).to_have_value("Reset offsets of ")
    await page.keyboard.type("bil")
    await expect(page.get_by_role("option").first).to_contain_text("Reset offsets of billing")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/groups/billing/reset$"))


async def test_a_verb_may_be_a_control_of_the_header(page: Page, seed: Seed) -> None:
    await page.keyboard.press("Control+k")
    await page.keyboard.type("dark")
    await expect(page.get_by_role("option").first).to_contain_text("Colours")
    await page.keyboard.press("Enter")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")


async def test_a_search_without_an_answer_says_so_and_is_made_again(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    working_group(seed)
    wrongs.expected += ["Failed to load resource", "ERR_FAILED"]
    await page.goto("/nodes")
    await page.route("**/search?*", lambda route: route.abort())
    await page.keyboard.press("Control+k")
    await page.keyboard.type("billing")
    await expect(page.locator("#find-status")).to_have_text("The server does not answer. Enter searches again.")
    await page.unroute("**/search?*")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("option", name="billing").first).to_be_visible()


async def test_rows_are_moved_through_by_keys_and_opened(page: Page, seed: Seed) -> None:
    working_group(seed)
    seed.group("billing-old", "Empty")
    await page.goto("/groups")
    first, second = (page.get_by_role("link", name=name, exact=True) for name in ("billing", "billing-old"))
    for key, focused in (("j", first), ("j", second), ("j", second), ("k", first), ("k", first)):
        await page.keyboard.press(key)
        await expect(focused).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/groups/billing$"))


async def test_keys_are_listed_and_can_be_turned_off(page: Page, seed: Seed) -> None:
    """Who dictates says single letters all the time (WCAG 2.2, 2.1.4). Ctrl-K stays."""
    working_group(seed)
    await page.goto("/groups")
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(keys).to_be_visible()
    assert await audit(page) == []
    await keys.get_by_role("checkbox").uncheck()
    await page.keyboard.press("Escape")
    await expect(keys).to_be_hidden()
    await page.reload()
    for key in ("?", "/", "j"):
        await page.keyboard.press(key)
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(page.get_by_role("link", name="billing", exact=True)).not_to_be_focused()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Find anything")).to_be_focused()
    await page.keyboard.press("Escape")
    await page.locator("#account summary").click()
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    await keys.get_by_role("checkbox").check()
    await keys.get_by_role("button", name="Close").click()
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name="billing", exact=True)).to_be_focused()


async def test_a_slash_can_be_written(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.reload()
    search = page.get_by_label("Search")
    await search.fill("a")
    await page.keyboard.press("End")
    await page.keyboard.type("/b")
    await expect(search).to_have_value("a/b")


async def test_a_menu_is_closed_by_escape_a_click_elsewhere_and_by_moving_on(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups/billing")
    summary, menu = page.locator("#actions summary"), page.locator("#actions ul")
    await summary.click()
    await expect(menu).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(menu.get_by_role("link").first).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(summary).to_be_focused()
    await summary.click()
    await expect(menu).to_be_visible()
    await page.get_by_role("heading", level=1).click()
    await expect(menu).to_be_hidden()
    await summary.click()
    for _ in range(await menu.get_by_role("link").count() + 1):
        await expect(menu).to_be_visible()
        await page.keyboard.press("Tab")
    await expect(menu).to_be_hidden()
