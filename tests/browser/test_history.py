"""The past of a group in real Chromium: presets, the brush by mouse and by keyboard, comparison, time zones."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.audit import audit, audit_in_every_look, picture
from tests.browser.conftest import NARROW, Wrongs, open_context, sign_in, watch
from tests.frontend.seed import Seed, now_ms, working_group
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

HOUR, MINUTE = 3_600_000, 60_000


def busy(seed: Seed, hours: int = 30) -> None:
    """A group with a night behind it."""
    working_group(seed)
    lags = [round(40_000 * max(0, 20 - abs(n - 60)) / 20) + 300 + n % 7 * 40 for n in range(hours * 6)]
    seed.lag_samples("billing", {"orders": lags, "payments": [n // 3 for n in lags]}, every_ms=10 * MINUTE)
    for number in range(6):
        ago = (4 + number) * HOUR + number * 7 * MINUTE
        seed.event("billing", "member_expired", 7, "worker-1", ms_ago=ago + 400, session_timeout_ms=45_000)
        seed.event("billing", "rebalance_started", 7, "worker-1", ms_ago=ago, cause="session_expired")
        seed.event("billing", "rebalance_completed", 8, ms_ago=ago - 3_000, members=3, leader="m1")
        seed.event("billing", "assignment_stored", 8, ms_ago=ago - 4_000, members=3)
    for number in range(400):
        seed.journal("billing", "commit", "orders", 0, number, ms_ago=number * 4 * MINUTE, member_id="worker-1")
    seed.journal("billing", "reset", "orders", 0, 10, ms_ago=5 * HOUR, principal="mara")


def bounds(page: Page) -> tuple[str, str]:
    """The span in the address."""
    query = parse_qs(urlsplit(page.url).query)
    return query["from"][0], query["to"][0]


async def test_presets_choose_the_span_of_everything(page: Page, seed: Seed) -> None:
    busy(seed)
    await page.goto("/groups/billing")
    await picture(page, "group")
    await page.get_by_role("link", name="History", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("History")
    await expect(page.locator(".chart")).to_have_count(3)
    await expect(page.locator("table.rebalances tbody tr")).to_have_count(8)
    assert await audit(page) == []
    await picture(page, "history")
    await page.get_by_role("link", name="1 h", exact=True).click()
    await expect(page).to_have_url(re.compile("span=1h"))
    await expect(page.locator("table.rebalances tbody tr")).to_have_count(2)
    await page.get_by_role("link", name="‹ Earlier").click()
    await page.get_by_role("link", name="Longer").click()
    await expect(page.locator(".chart").first).to_be_visible()
    await page.go_back()
    await page.go_back()
    await expect(page.get_by_role("link", name="1 h", exact=True)).to_have_attribute("aria-current", "true")


async def test_the_brush_works_by_keyboard(page: Page, seed: Seed) -> None:
    busy(seed)
    await page.goto("/groups/billing/history")
    zoom = page.get_by_role("button", name="Zoom in")
    await expect(zoom).to_be_disabled()
    await page.get_by_label("Part from").focus()
    await page.keyboard.press("PageUp")
    for _ in range(10):
        await page.keyboard.press("ArrowRight")
    await expect(zoom).to_be_enabled()
    marked = page.locator(".chart-brush").first
    assert float(await marked.get_attribute("x") or 0) > 50
    value = await page.get_by_label("Part from").get_attribute("aria-valuetext")
    await expect(page.locator(".brush-text")).to_contain_text(f"{value} to")
    await page.get_by_label("to", exact=True).focus()
    await page.keyboard.press("PageDown")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("from=.*to="))
    first, last = bounds(page)
    assert first < last
    await expect(page.locator(".span-text")).to_contain_text("to")
    assert await audit(page) == []


async def test_a_plot_is_brushed_by_dragging(page: Page, seed: Seed) -> None:
    busy(seed)
    await page.goto("/groups/billing/history")
    frame = page.locator(".chart-frame").first
    box = await frame.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=5)
    for mark in await page.locator(".chart-brush").all():
        assert 200 < float(await mark.get_attribute("width") or 0) < 300
    await picture(page, "brushing")
    await page.mouse.up()
    await expect(page).to_have_url(re.compile("from=.*to="))
    await page.go_back()
    await expect(page).not_to_have_url(re.compile("from="))
    await expect(page.locator(".brush-text")).to_have_text("")


async def test_all_plots_say_their_values_at_one_instant(page: Page, seed: Seed) -> None:
    busy(seed)
    await page.goto("/groups/billing/history")
    reads, crosses = page.locator(".chart-read"), page.locator(".chart-cross")
    box = await page.locator(".chart-frame").nth(1).bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    await expect(reads.nth(0)).to_have_text(re.compile(r"^\d+ \w+, [\d:]+ to [\d:]+: at most [\d,]+$"))
    await expect(reads.nth(2)).to_have_text(re.compile(": [0-9]+$"))
    said = await reads.all_text_contents()
    assert len({one.partition(": ")[0] for one in said}) == 1, "the same step"
    assert len({await cross.get_attribute("x1") for cross in await crosses.all()}) == 1
    await picture(page, "crosshair")
    mark = float(await page.locator(".chart .chart-mark").first.get_attribute("x1") or 0)
    await page.mouse.move(box["x"] + box["width"] * mark / 1_000, box["y"] + 40)
    await expect(reads.nth(2)).to_contain_text("sent no heartbeat in time")
    await page.mouse.move(5, 5)
    await expect(reads).to_have_text(["", "", ""])

    slider = page.get_by_label("Instant in Lag in time")
    await slider.focus()
    newest = await slider.get_attribute("aria-valuetext")
    await page.keyboard.press("ArrowLeft")
    await expect(slider).not_to_have_attribute("aria-valuetext", newest or "")
    await expect(slider).to_have_attribute("aria-valuetext", re.compile("at most [0-9]+"))
    await expect(reads.nth(0)).to_contain_text("at most")
    assert await audit(page) == []
    await page.keyboard.press("Escape")
    await expect(reads).to_have_text(["", "", ""])


async def test_a_finger_chooses_the_instant(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> None:
    busy(seed)
    context = await open_context(browser, site, viewport=NARROW, has_touch=True)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/groups/billing/history")
    await sign_in(page)
    frame = page.locator(".chart-frame").first
    await frame.scroll_into_view_if_needed()
    box = await frame.bounding_box()
    assert box is not None
    await page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 40)
    await expect(page.locator(".chart-read").nth(1)).to_contain_text("at most")
    await page.touchscreen.tap(box["x"] + 5, box["y"] - 40)
    await expect(page.locator(".chart-read").nth(1)).to_have_text("")


async def test_the_instant_stays_when_the_page_is_refreshed(page: Page, seed: Seed) -> None:
    busy(seed)
    await page.goto("/groups/billing")
    slider = page.get_by_label("Instant in Lag of the group")
    await slider.focus()
    await page.keyboard.press("Home")
    panel, said = page.locator("#panel > [data-now]"), page.locator("#lag-chart .chart-read")
    await expect(said).not_to_have_text("")
    now = await panel.get_attribute("data-now")
    seed.event("billing", "member_left", 8, "worker-1")
    seed.changed("billing")
    await expect(panel).not_to_have_attribute("data-now", now or "")
    await expect(slider).to_be_focused()
    await expect(slider).to_have_attribute("aria-valuetext", re.compile(": "))
    await expect(said).not_to_have_text("")


async def test_where_samples_end_the_plot_says_so(page: Page, seed: Seed) -> None:
    seed.group("billing")
    seed.lag_samples("billing", {"orders": [500] * 40}, every_ms=MINUTE, now=now_ms() - 25 * MINUTE)
    await page.goto("/groups/billing/history?span=1h")
    await expect(page.locator("#lag-chart .chart-note")).to_have_text(re.compile(r"^unknown since \d\d:\d\d$"))
    await page.get_by_label("Instant in Lag in records").focus()
    await expect(page.locator("#lag-chart .chart-read")).to_contain_text(": unknown")
    assert await audit(page) == []


async def test_groups_are_compared(page: Page, seed: Seed) -> None:
    busy(seed)
    seed.group("audit")
    seed.lag_samples("audit", {"orders": [9_000 + 100 * n for n in range(90)]}, every_ms=15 * MINUTE)
    await page.goto("/groups/billing/history")
    await page.locator("#panel").get_by_role("link", name="Compare").click()
    await page.get_by_label("Name 2").fill("audit")
    await page.get_by_role("button", name="Compare").click()
    await expect(page.locator(".row-link")).to_have_text(["billing", "audit"])
    await expect(page.locator(".chart")).to_have_count(2)
    assert await audit(page) == []
    await picture(page, "compare")
    await page.get_by_text("Values of Lag in records as a table").click()
    await expect(page.get_by_role("columnheader", name="audit").first).to_be_visible()


async def test_times_are_in_the_zone_that_was_chosen(
    browser: Browser, site: Running, seed: Seed, wrongs: Wrongs
) -> None:
    busy(seed)
    context = await open_context(browser, site, timezone_id="Asia/Kathmandu")
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/groups/billing/history")
    await sign_in(page)
    await expect(page.locator(".span-text")).to_contain_text("UTC")
    await page.get_by_role("button", name="UTC").click()
    await expect(page.locator(".span-text")).to_contain_text("UTC+0545")
    await expect(page.get_by_label("From (UTC+0545)")).to_be_visible()
    shown = await page.get_by_label("From (UTC+0545)").input_value()
    await page.get_by_role("button", name="Show").click()
    await expect(page).to_have_url(re.compile(r"from=[^&]*Z&to=[^&]*Z"))
    await expect(page.get_by_label("From (UTC+0545)")).to_have_value(shown)
    await page.goto("/groups/billing/rebalances")
    await expect(page.locator(".at").first).to_contain_text("UTC+0545")
    assert await audit(page) == []
    await page.get_by_role("button", name="Local time").click()
    await expect(page.locator(".at").first).to_have_text(re.compile(r" UTC$"))
    await context.close()


async def test_without_scripts_there_is_the_form(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> None:
    busy(seed)
    context = await open_context(browser, site, java_script_enabled=False)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/groups/billing/history?span=6h")
    await sign_in(page)
    await expect(page.get_by_role("button", name="Zoom in")).to_be_hidden()
    await expect(page.locator("table.rebalances tbody tr")).to_have_count(4)
    await page.get_by_label("Rebalances because").select_option("joined")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("table.rebalances tbody tr")).to_have_count(1)
    await context.close()


async def test_nothing_is_wrong_with_the_pages(page: Page, seed: Seed) -> None:
    await page.set_viewport_size(NARROW)
    busy(seed)
    seed.group("empty")
    for name, address in [
        ("history", "/groups/billing/history"),
        ("week", "/groups/billing/history?span=7d"),
        ("empty", "/groups/empty/history"),
        (
            "compare",
            "/compare?name=billing&name=empty&name=none&name=a-rather-long-name.production.eu-central-1",
        ),
    ]:
        await page.goto(address)
        assert await audit_in_every_look(page, name) == [], name
