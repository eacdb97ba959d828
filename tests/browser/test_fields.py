"""Help with fields: names that are completed, and the calendar beside an instant."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import Wrongs
from tests.frontend.item_seed import WORKERS, share_group
from tests.frontend.seed import Seed, working_group
from tests.frontend.test_group_labels import label

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

OFFERED = "#names-found option"


async def test_names_are_offered_while_somebody_types(page: Page, seed: Seed) -> None:
    """Of groups, and of topics when those are compared."""
    working_group(seed)
    seed.group("billing-old", "Empty")
    seed.topic("bills", 3)
    await page.goto("/compare")
    field = page.get_by_label("Name 1")
    await field.press_sequentially("bil")
    await expect(page.locator(OFFERED)).to_have_text(["billing", "billing-old"])
    assert await field.evaluate("field => field.list.id") == "names-found"
    await page.get_by_label("What").select_option("topics")
    await field.fill("bil")
    await expect(page.locator(OFFERED)).to_have_text(["bills"])
    await field.fill("")
    await expect(page.locator(OFFERED)).to_have_count(0)
    assert await audit_in_every_look(page, "compare-form") == []


async def test_labels_clients_and_people_are_offered_too(page: Page, seed: Seed) -> None:
    """Where names can be written with commas, beside those that are there."""
    working_group(seed)
    label(seed, "billing", owner="payments")
    await page.goto("/timeline")
    await page.get_by_label("With the label").press_sequentially("own")
    await expect(page.locator(OFFERED)).to_have_text(["owner", "owner=payments"])
    assert await audit_in_every_look(page, "timeline-label") == []
    await page.goto("/audit")
    await page.get_by_label("Who").press_sequentially("ma")
    await expect(page.locator(OFFERED)).to_have_text(["mara"])
    await page.goto("/access/grant")
    await page.get_by_label("To a", exact=True).select_option("Group")
    people = page.get_by_label("People to add to it")
    await people.fill("ben, ")
    await people.press_sequentially("ma")
    await expect(page.locator(OFFERED)).to_have_text(["mara"])
    assert await page.locator(OFFERED).get_attribute("value") == "ben, mara"
    await page.goto("/groups?client=x")
    await page.get_by_label("Client id").fill("bil")
    await expect(page.locator(OFFERED)).to_have_text(["billing"])
    assert await audit_in_every_look(page, "groups-client") == []


async def test_a_field_of_one_group_offers_its_members_alone(page: Page, seed: Seed) -> None:
    share_group(seed)
    other = f"{WORKERS[0]}-of-another"
    seed.members(seed.group("billing"), [other])
    await page.goto("/groups/mailing/items")
    await page.get_by_label("Member").fill(WORKERS[0])
    await expect(page.locator(OFFERED)).to_have_text([WORKERS[0]])
    await page.goto("/groups?client=x")
    await page.get_by_label("Member or client").fill(WORKERS[0])
    await expect(page.locator(OFFERED)).to_have_text([WORKERS[0], other])


async def test_without_an_answer_a_field_is_as_it_was(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    """It offers nothing, not what it offered for other letters, and can be sent."""
    working_group(seed)
    wrongs.expected += ["Failed to load resource", "ERR_FAILED"]
    await page.goto("/compare")
    field = page.get_by_label("Name 1")
    await field.press_sequentially("bil")
    await expect(page.locator(OFFERED)).to_have_count(1)
    await page.route("**/search?*", lambda route: route.abort())
    await field.press_sequentially("ling")
    await expect(page.locator(OFFERED)).to_have_count(0)
    await field.press("Enter")
    await expect(page).to_have_url(re.compile(r"name=billing"))


async def test_a_day_is_chosen_from_a_calendar(page: Page, seed: Seed) -> None:
    """The browser's own, which begins with what the field says; the field keeps its form."""
    await page.goto("/audit")
    field = page.get_by_label(re.compile("^From"))
    await field.fill("2025-11-21 04:30")
    opened = await page.evaluate("HTMLInputElement.prototype.showPicker = function () { window.opened = this.value; }")
    assert opened is None
    await page.get_by_role("button", name="Calendar: From").click()
    assert await page.evaluate("window.opened") == "2025-11-21T04:30"
    await page.locator(".calendar-of").fill("2025-11-22T05:45")
    await expect(field).to_have_value("2025-11-22 05:45")
    await page.get_by_role("button", name="Show").click()
    await expect(page).to_have_url(re.compile(r"from=2025-11-22(\+|%20)05%3A45"))
    assert await audit_in_every_look(page, "audit-form") == []


async def test_an_instant_of_a_reset_has_one_too(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups/billing/reset")
    await page.get_by_role("radio", name="Committed at a time").check()
    await page.get_by_role("button", name="Calendar: Committed at a time").click()
    await page.locator(".calendar-of").fill("2025-11-22T05:45")
    await expect(page.get_by_label("Committed at a time, UTC")).to_have_value("2025-11-22 05:45")
    assert await audit_in_every_look(page, "reset-instant") == []
