"""The page of the audit in Chromium: filters by keyboard, pages, what it says of no record, and axe on all of it."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit, audit_in_every_look
from tests.frontend.seed import Seed, now_ms

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

LONG = "team-warehouse.loader." + "x" * 227
"""As long as the name of a topic may be."""
RECORDS = """
    select kcoord_audit_append(%(now)s::bigint - n * 60000, 'person', 'sam', '7', '10.0.0.7', 'request', 'dashboard',
                               case when n %% 3 = 0 then 'topic.delete' else 'topic.update' end, 'topic',
                               %(name)s::text, '{"partitions":3}',
                               case when n %% 3 = 0 then null else '{"partitions":6}' end,
                               'more consumers', 'done', '', 1)
    from generate_series(%(count)s::int, 1, -1) n
"""
"""Records cannot be removed, so each test has a name of its own."""
PAGE_ROWS = 50


def put_records(seed: Seed, name: str, count: int) -> None:
    """Changes of a topic, a minute apart; each third one deletes it."""
    seed.connection.execute(RECORDS, {"now": now_ms(), "name": name, "count": count})


async def press(page: Page, *keys: str) -> None:
    """Keys, one after the other."""
    for key in keys:
        await page.keyboard.press(key)


async def test_filters_and_pages_by_keyboard(page: Page, seed: Seed) -> None:
    put_records(seed, "keyed", 120)
    await page.goto("/audit")
    await page.get_by_label("On", exact=True).focus()
    await page.keyboard.type("keyed")
    await press(page, "Enter")
    rows, older = page.locator("tbody tr"), page.get_by_role("link", name="Older")
    await expect(rows).to_have_count(PAGE_ROWS)
    assert await audit(page) == []
    await older.focus()
    await press(page, "Enter")
    await expect(page).to_have_url(re.compile("before="))
    await page.get_by_role("link", name="Older").focus()
    await press(page, "Enter")
    await expect(rows).to_have_count(20)
    await expect(older).to_have_count(0)
    await page.get_by_role("link", name="Newest").focus()
    await press(page, "Enter")
    await expect(rows).to_have_count(PAGE_ROWS)

    await page.get_by_label("On", exact=True).focus()
    await press(page, "Tab")
    await page.keyboard.type("Topics")
    await press(page, "Tab", "Tab")
    await page.keyboard.type("sam")
    await press(page, "Enter")
    await expect(page).to_have_url(re.compile("what=topics.*who=sam"))
    await expect(rows.first).to_contain_text("Topic changed")
    await expect(rows.first).to_contain_text(re.compile("partitions.*3.*6"))


async def test_no_record_and_what_is_not_recorded(page: Page, seed: Seed) -> None:
    await page.goto("/audit?name=never-heard-of")
    await expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    assert await audit(page) == []
    await page.get_by_text("What is not recorded").focus()
    await press(page, "Enter")
    await expect(page.get_by_text("Watermarks that producers and probes report.")).to_be_visible()
    await page.get_by_role("main").get_by_role("link", name="Show all").first.focus()
    await press(page, "Enter")
    await expect(page.locator("tbody tr").first).to_be_visible()


async def test_long_names_fit(page: Page, seed: Seed) -> None:
    put_records(seed, LONG, 2)
    await page.goto(f"/audit?name={LONG}")
    await expect(page.locator("tbody tr")).to_have_count(2)
    assert await audit_in_every_look(page, "audit-long") == []
