"""The items of a share group: ticked in the list, reviewed, and changed."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit
from tests.frontend.item_seed import queue
from tests.frontend.seed import Seed

pytestmark = [pytest.mark.browser, pytest.mark.whole("in process in tests/frontend/test_items.py")]


async def test_dead_letters_are_replayed_after_a_review(page: Page, seed: Seed) -> None:
    queue(seed, 60)
    await page.goto("/groups/mailing")
    assert await audit(page) == []
    await page.get_by_role("navigation", name="Parts of the group").get_by_role("link", name="Dead letters").click()
    await expect(page.locator("#bulk")).to_be_hidden()
    await page.locator("#select-all").check()
    await expect(page.locator(".bulk-count")).to_have_text("50 dead letters selected")
    await page.get_by_label("Select entries 0, 1", exact=True).uncheck()
    await expect(page.locator(".bulk-count")).to_have_text("49 dead letters selected")
    assert await audit(page) == []
    await page.get_by_role("button", name="Replay…").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Replay 49 dead letters?")
    assert await audit(page) == []
    await page.get_by_role("button", name="Replay 49 dead letters").click()
    await expect(page.get_by_role("status").filter(has_text="49 dead letters replayed.")).to_be_visible()
    await page.get_by_role("link", name="Items", exact=True).first.click()
    await expect(page.locator("tbody tr")).to_have_count(5)
