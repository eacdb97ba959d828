"""Saved views of the list of groups in real Chromium."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW, Wrongs
from tests.frontend.seed import Seed, working_group

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


async def save(page: Page, name: str) -> None:
    """Save the view that the list shows."""
    await page.get_by_text("Save view", exact=True).click()
    await page.get_by_label("Name of the view").fill(name)
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text(f"Saved the view {name}.")).to_be_visible()


async def test_a_view_is_saved_found_again_and_deleted(page: Page, seed: Seed) -> None:
    working_group(seed)
    seed.group("idle", "Empty")
    await page.goto("/groups")
    await page.locator(".chip", has_text="Empty").click()
    await expect(page.get_by_role("link", name="billing")).to_have_count(0)
    await save(page, "Idle groups")
    views = page.get_by_role("navigation", name="Saved views")
    view = views.get_by_role("link", name="Idle groups")
    await expect(view).to_have_attribute("aria-current", "true")
    await page.goto("/groups")
    await expect(page.get_by_role("link", name="billing")).to_be_visible()
    await expect(view).not_to_have_attribute("aria-current", "true")
    await view.click()
    await expect(page.get_by_role("link", name="billing")).to_have_count(0)
    await page.get_by_role("link", name="Manage views").click()
    await page.get_by_role("button", name="Delete Idle groups").click()
    await expect(page.get_by_text("Deleted the view Idle groups.")).to_be_visible()
    await expect(page.get_by_role("heading", name="No saved views yet")).to_be_visible()


async def test_nothing_is_wrong_with_the_pages(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    await page.set_viewport_size(NARROW)
    wrongs.expected.append("409")  # the name that is taken
    await page.goto("/views")
    complaints = {}

    async def look(name: str) -> None:
        complaints[name] = await audit_in_every_look(page, f"views-{name}")

    await look("empty")
    working_group(seed)
    for number, query in enumerate(["", "state=Stable&sort=-lag", "q=bill&columns=state.lag", "verdict=stuck"]):
        await page.goto(f"/groups?{query}")
        await save(
            page, ["Everything", "Furthest behind", "Billing", "Stuck, of all teams in all regions we have"][number]
        )
    await page.goto("/groups?q=bill&columns=state.lag")
    await page.get_by_text("Save view", exact=True).click()
    await look("list")
    await page.get_by_label("Name of the view").fill("Billing")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("you have a view Billing already")
    await look("refused")
    await page.goto("/views")
    await look("all")
    assert {name: found for name, found in complaints.items() if found} == {}
