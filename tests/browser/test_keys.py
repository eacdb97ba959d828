"""Keys and menus: the way to the search, and out of a menu."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.frontend.seed import Seed, working_group

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("key", ["/", "Control+k", "Meta+k"])
async def test_a_key_leads_to_the_search_of_the_page(page: Page, seed: Seed, key: str) -> None:
    seed.many_groups(3)
    await page.goto("/groups?q=service")
    await page.keyboard.press(key)
    search = page.get_by_label("Search")
    await expect(search).to_be_focused()
    await expect(search).to_have_value("service")
    assert await page.evaluate("getSelection().toString()") == "service", "what is typed replaces it"


async def test_a_page_without_a_search_leads_to_that_of_the_groups(page: Page, seed: Seed) -> None:
    await page.goto("/nodes")
    await page.keyboard.press("Control+k")
    await expect(page).to_have_url(re.compile(r"/groups$"))
    await expect(page.get_by_label("Search")).to_be_focused()


async def test_a_slash_can_be_written(page: Page) -> None:
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
