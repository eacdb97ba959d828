"""Acting on several groups of the list in real Chromium: with the mouse, the keyboard, and without scripts."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW, Wrongs, open_context, sign_in, watch
from tests.frontend.seed import Seed, working_group
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


def fleet(seed: Seed) -> None:
    """`billing` with three members and twelve empty groups."""
    working_group(seed)
    for number in range(12):
        seed.commit(seed.group(f"idle-{number:02}", "Empty", protocol=None), {("orders", 0): number})


async def look(page: Page, name: str) -> None:
    """Nothing is wrong with the page."""
    assert await audit_in_every_look(page, f"bulk-{name}") == []


async def test_groups_are_ticked_reviewed_and_deleted(page: Page, seed: Seed) -> None:
    await page.set_viewport_size(NARROW)
    fleet(seed)
    await page.goto("/groups?state=Empty&state=Stable")
    bar = page.get_by_role("form", name="Selected groups")
    await expect(bar).to_be_hidden()
    await page.get_by_label("Select billing", exact=True).focus()
    await page.keyboard.press("Space")
    await expect(bar).to_contain_text("1 group selected")
    everything = page.get_by_label("Select all")
    assert await everything.evaluate("box => box.indeterminate")
    await everything.check()
    await expect(bar).to_contain_text("13 groups selected")
    await expect(bar.get_by_role("button", name="Compare")).to_be_disabled()
    await page.get_by_label("Select idle-11").uncheck()
    await expect(everything).not_to_be_checked()
    # A refresh of the panel keeps the ticks, also of the box for all.
    seed.group("later", "Empty")
    await page.evaluate("htmx.trigger('#panel', 'refresh')")
    await expect(page.get_by_label("Select later")).not_to_be_checked()
    await expect(bar).to_contain_text("12 groups selected")
    await look(page, "list")
    # What a filter hides is no longer selected.
    await page.get_by_label("Search").fill("idle")
    await expect(bar).to_contain_text("11 groups selected")
    await bar.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Delete: 11 groups")
    await look(page, "review")
    # A member that joins between review and confirmation keeps its group.
    seed.members(seed_pk(seed, "idle-03"), ["idle-03-member"])
    await page.get_by_label("Delete these 11 groups with 11 committed offsets.").check()
    await page.get_by_role("button", name="Delete 11 groups").click()
    await expect(page.get_by_text("Done for 10 groups, not done for 1")).to_be_visible()
    await expect(page.get_by_role("row", name="idle-03")).to_contain_text("Not done. It has 1 member")
    await look(page, "results")
    await page.get_by_role("link", name="Back to the list").click()
    await expect(page).to_have_url("/groups?q=idle&state=Empty&state=Stable")
    await expect(page.locator("tbody tr")).to_have_count(2)


def seed_pk(seed: Seed, group_id: str) -> int:
    """The key of a group."""
    row = seed.connection.execute("select id from groups_group where group_id = %s", [group_id]).fetchone()
    assert row is not None
    return int(row[0])


async def test_it_works_without_scripts(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> None:
    fleet(seed)
    context = await open_context(browser, site, java_script_enabled=False)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/groups")
    await sign_in(page)
    await expect(page.get_by_label("Select all")).to_be_hidden()
    await page.get_by_label("Select billing", exact=True).check()
    await page.get_by_label("Select idle-04").check()
    await page.get_by_role("button", name="Hold", exact=True).click()
    await page.get_by_label("Reason").fill("bug 17")
    await page.get_by_role("button", name="Remove members and hold 2 groups").click()
    await expect(page.get_by_text("Done for 2 groups")).to_be_visible()
    await page.goto("/groups")
    await page.get_by_label("Select billing", exact=True).check()
    await page.get_by_label("Select idle-04").check()
    await page.get_by_role("button", name="Compare").click()
    await expect(page).to_have_url(f"{site.url}/compare?name=billing&name=idle-04")
    await context.close()
    held = seed.connection.execute("select group_id from groups_group where hold_reason = 'bug 17' order by 1")
    assert held.fetchall() == [("billing",), ("idle-04",)]
