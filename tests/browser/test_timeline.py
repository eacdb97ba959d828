"""The timeline of all groups in Chromium: presets, kinds, the brush by mouse, keyboard and finger, no scripts."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.audit import audit, audit_in_every_look
from tests.browser.conftest import NARROW, Wrongs, open_context, sign_in, watch
from tests.browser.test_history import bounds
from tests.frontend.alert_seed import put_alert, put_rule
from tests.frontend.node_seed import change
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.verdict_seed import verdict
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the timeline; this is the rest of it")]

MINUTE, HOUR = 60_000, 3_600_000
LINES = ".happened tbody tr"


def bad_night(seed: Seed) -> None:
    """Five hours ago a node was lost, and what followed; before that, a group was restless. Events in their order."""
    ago, now = 5 * HOUR, now_ms()
    for number in range(40):
        seed.event("billing", "rebalance_started", number, ms_ago=20 * HOUR - number * 20 * MINUTE, cause="member_left")
    shipping = seed.group("shipping-indexer")
    for group in ("billing", "mailing", "search.production.eu-central-1"):
        seed.group(group)
        seed.event(group, "rebalance_started", 3, ms_ago=ago - 90_000, cause="session_expired")
    for number in range(40):
        seed.event("shipping-indexer", "rebalance_started", number, ms_ago=ago - number * 6_000, cause="member_joined")
    change(seed, range(25), "node-2", "node-0", "lapsed", ms_ago=ago + 2_000, gap_ms=4_100)
    verdict(seed, shipping, "flapping", ms_ago=ago - 2 * MINUTE)
    put_alert(seed.connection, put_rule(seed.connection), "billing", at=now - ago + 5 * MINUTE, resolved_at=now - HOUR)
    put_plan(seed.connection, "billing", made_at=now - 3 * HOUR, state="applied", reason="after the loss of node-2")


async def test_the_brush_narrows_the_time_and_goes_along_to_a_group(page: Page, seed: Seed) -> None:
    bad_night(seed)
    await page.goto("/")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Timeline").click()
    await expect(page.get_by_role("row").filter(has_text="40 rebalances within 3 min 54 s")).to_have_count(1)
    assert await audit(page) == []
    frame = page.locator(".chart-frame")
    box = await frame.bounding_box()
    assert box is not None
    whole = await page.locator(LINES).count()
    # Five of 24 hours ago is at 19/24.
    await page.mouse.move(box["x"] + box["width"] * 0.76, box["y"] + 40)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.82, box["y"] + 40, steps=4)
    await page.mouse.up()
    await expect(page).to_have_url(re.compile("from=.*to="))
    await expect(page.locator(LINES).filter(has_text="node-2 → node-0")).to_have_count(1)
    assert await page.locator(LINES).count() < whole
    chosen = bounds(page)
    await page.locator(LINES).filter(has_text="40 rebalances").get_by_role("link", name="shipping-indexer").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("History")
    assert bounds(page) == chosen
    await page.get_by_role("link", name="all groups in this time").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")
    assert bounds(page) == chosen
    assert await audit(page) == []


async def test_the_brush_works_by_keyboard_and_the_axis_says_what_happened(page: Page, seed: Seed) -> None:
    bad_night(seed)
    await page.goto("/timeline?kind=hand-over&kind=alert")
    await expect(page.locator(LINES)).to_have_count(3)
    slider = page.get_by_label("Instant in What happened")
    await slider.focus()
    await page.keyboard.press("Home")
    while "Alert opened" not in (await slider.get_attribute("aria-valuetext") or ""):
        assert await slider.input_value() != await slider.get_attribute("max")
        await page.keyboard.press("ArrowRight")
    await page.get_by_label("Part from").focus()
    for _ in range(7):
        await page.keyboard.press("PageUp")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("kind=hand-over.*from=.*to="))
    await page.go_back()
    await page.get_by_role("link", name="1 h", exact=True).click()
    await expect(page).to_have_url(re.compile("kind=hand-over.*span=1h"))


async def test_a_finger_and_no_scripts_do_the_same(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> None:
    bad_night(seed)
    context = await open_context(browser, site, viewport=NARROW, has_touch=True)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/timeline")
    await sign_in(page)
    slider = page.get_by_label("Part from")
    box = await slider.bounding_box()
    assert box is not None
    await page.touchscreen.tap(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2)
    await page.get_by_role("button", name="Zoom in").tap()
    await expect(page).to_have_url(re.compile("from=.*to="))
    await context.close()
    context = await open_context(browser, site, java_script_enabled=False)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/timeline")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Zoom in")).to_be_hidden()
    await page.get_by_label("Groups beginning with").fill("ship")
    await page.get_by_text("Verdict", exact=False).first.click()
    await page.get_by_role("button", name="Show").click()
    await expect(page).to_have_url(re.compile("q=ship.*kind=verdict"))
    await expect(page.locator(LINES)).to_have_count(1)
    await page.get_by_role("link", name="Show all").first.click()
    await expect(page).not_to_have_url(re.compile("kind="))
    await context.close()


async def test_nothing_is_wrong_with_the_page(page: Page, seed: Seed) -> None:
    await page.goto("/timeline")
    assert await audit_in_every_look(page, "empty") == []
    bad_night(seed)
    for name, address in (("night", "/timeline"), ("week", "/timeline?span=7d"), ("filtered", "/timeline?q=none")):
        await page.goto(address)
        assert await audit_in_every_look(page, f"timeline-{name}") == [], name
