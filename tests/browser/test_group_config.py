"""The settings and the states of a group in real Chromium: read, refused, changed; wide and narrow, light and dark."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import Wrongs
from tests.frontend.seed import Seed
from tests.support.accounts import USER

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


async def look(page: Page, name: str) -> None:
    """Nothing is wrong with a page."""
    assert await audit_in_every_look(page, name) == []


async def test_an_override_is_refused_mended_and_removed(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    wrongs.expected.append("400")  # the form that is refused
    seed.consumer_group("tuned", "Stable", epoch=4, assignment_epoch=4)
    await page.goto("/groups/tuned")
    await page.get_by_role("link", name="Configuration").click()
    session = page.get_by_label("consumer.session.timeout.ms")
    await expect(session).to_be_visible()
    await look(page, "config")
    await session.fill("50 s")
    await page.get_by_label("consumer.assignor").select_option("range")
    await page.keyboard.press("Tab")
    await page.get_by_role("button", name="Save overrides").click()
    await expect(page.get_by_role("alert")).to_contain_text("'50 s' is not a whole number of ms")
    await expect(session).to_have_value("50 s")
    await expect(session).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_label("consumer.assignor")).to_have_value("range")
    await look(page, "config-refused")
    await session.fill("50000")
    await session.press("Enter")
    await expect(page.get_by_text("Changed consumer.session.timeout.ms and consumer.assignor.")).to_be_visible()
    await expect(page.get_by_role("row", name="consumer.session.timeout.ms")).to_contain_text(f"by {USER}")
    await look(page, "config-changed")
    await session.fill("")
    await page.get_by_role("button", name="Save overrides").click()
    await expect(page.get_by_text("Changed consumer.session.timeout.ms.")).to_be_visible()
    await expect(page.get_by_role("row", name="consumer.session.timeout.ms")).to_contain_text("Default")
    await page.goto("/groups/tuned/events")
    await expect(page.get_by_text(USER).first).to_be_visible()


async def test_the_state_machine_of_both_kinds_of_groups(page: Page, seed: Seed) -> None:
    seed.group("classic-one", "PreparingRebalance", join_deadline_in=40_000)
    seed.consumer_group("consumer-one", "Empty", epoch=4, assignment_epoch=4)
    for group_id, label in (("classic-one", "Preparing rebalance"), ("consumer-one", "Empty")):
        await page.goto(f"/groups/{group_id}")
        await page.get_by_role("link", name=label, exact=True).first.click()
        await expect(page.get_by_role("img", name=f"Now: {label}")).to_be_visible()
        await look(page, f"states-{group_id}")
