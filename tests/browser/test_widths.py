"""Every page of `frontend.urls`, loaded once, at every width and in both colours: nothing scrolls sideways, the audit
finds nothing, tables have CSV files. New pages are in it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from django.urls import reverse
from playwright.async_api import Browser, Page, expect

from frontend.urls import urlpatterns
from tests.browser.audit import audit, audit_in_every_look
from tests.browser.conftest import Wrongs, choose_page, open_context, sign_in, watch
from tests.frontend.alert_seed import put_alert, put_rule
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, member_id, now_ms, working_group
from tests.support.http_members import make_token
from tests.support.processes import Running
from tests.support.spark_runs import put_run

pytestmark = [pytest.mark.browser, pytest.mark.whole("all pages at all widths; a story ends with the audit of one")]

WIDTHS = (390, 768, 1440, 2560)
AUDITED = (390, 1440)
BATCHES = 4
"""Starting a browser takes longer than looking at a page."""
NO_PAGES = {"login", "logout", "live", "snapshot", "timeline-json", "timeline-md"}
QUERIES = {
    "kick-member": f"?member={member_id('billing', 0)}",
    "start-run": "?kind=reconcile",
    "group-actions": "?act=hold&group=billing&group=nobody",
}
"""What a page has to be told in its query."""
NAMES = [
    page.name for page in urlpatterns if page.name and page.name not in NO_PAGES and not page.name.endswith("-csv")
]
WIDER = """
[...document.querySelectorAll("main *")].filter((element) => {
  if (element.closest(".table-wrap, pre, svg, .sr")) return false;
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.right > document.documentElement.clientWidth + 1;
}).slice(0, 3).map((element) => element.outerHTML.slice(0, 160))
"""
"""What stands out of the window, where the page scrolls sideways because of it."""

WITHOUT_CSV = """
[...document.querySelectorAll("main table")].filter((table) => !table.parentElement.querySelector("[data-csv]")
  && !table.closest("section, main").querySelector("a.csv") && !document.querySelector(".page-head a.csv")
).map((table) => table.rows[0].textContent.replace(/\\s+/g, " ").slice(0, 160))
"""
"""Tables that cannot be saved as CSV, neither from the page nor as a file of the server."""

SCROLLING = """
[...document.querySelectorAll("details.chart-values")].forEach((values) => { values.open = true; }),
[...document.querySelectorAll("main .table-wrap")].filter(
  (wrap) => wrap.scrollWidth > wrap.clientWidth + 1 && !wrap.querySelector(".heat-map"),
).map((wrap) => wrap.textContent.replace(/\\s+/g, " ").slice(0, 160))
"""
"""Tables that a narrow window has to scroll sideways; maps have a column for each partition and may."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A page of the browser and what stands for the parameters of addresses."""

    page: Page
    samples: dict[str, str]


@pytest_asyncio.fixture(loop_scope="session")
async def walk(browser: Browser, site: Running, site_database: str, seed: Seed, wrongs: Wrongs) -> AsyncIterator[Walk]:
    """Somebody who has signed in, and something to see on every page."""
    members = working_group(seed)
    seed.topic("orders", 12, [12_000] * 12)
    seed.topic("payments", 6, [99_000] * 6)
    plan_id = put_plan(seed.connection, "billing", made_at=now_ms() - 60_000, lines=12)
    run_id = put_run(seed.connection, "reconcile", findings=2, rows=10)
    rule_id = put_rule(seed.connection)
    put_alert(seed.connection, rule_id, "billing", at=now_ms())
    make_token(site_database)
    token = seed.connection.execute("select id from kcoord_apitoken").fetchone()
    assert token is not None
    samples = {
        "token_id": str(token[0]),
        "rule_id": str(rule_id),
        "group_id": "billing",
        "member_id": members[0],
        "name": "orders",
        "topic": "orders",
        "plan_id": str(plan_id),
        "run_id": str(run_id),
        "kind": "json",
    }
    wrongs.expected = ["the server responded with a status of 40"]
    context = await open_context(browser, site)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/password")
    await sign_in(page)
    yield Walk(page, samples)
    await context.close()


async def test_all_tabs_of_a_group_are_in_a_narrow_window(walk: Walk) -> None:
    """Whatever their counts are; none has to be scrolled to."""
    await walk.page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/groups/billing", "/groups/billing?tab=offsets"):
        await walk.page.goto(address)
        tabs = walk.page.get_by_role("navigation", name="Parts of the group").get_by_role("link")
        for counted in await tabs.locator(".count").all():
            await counted.evaluate("element => { element.textContent = '100,000'; }")
        boxes = [await tab.bounding_box() for tab in await tabs.all()]
        assert len(boxes) >= 5
        assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 390 and box["height"] >= 24 for box in boxes)


@pytest.mark.parametrize("batch", range(BATCHES))
async def test_pages_fit_every_width_and_are_accessible(walk: Walk, batch: int) -> None:
    complaints: dict[str, list[str]] = {}
    for name in NAMES[batch::BATCHES]:
        found = [text async for text in looked_at(walk, name)]
        if found:
            complaints[name] = found
    assert complaints == {}


COVERED = """
(() => {
  const focused = document.activeElement, box = focused.getBoundingClientRect();
  const seen = document.elementFromPoint(box.left + Math.min(box.width / 2, 20), box.top + box.height / 2);
  return !seen || !(focused.contains(seen) || seen.contains(focused));
})()
"""


@pytest.mark.parametrize("width", AUDITED)
async def test_what_has_the_focus_is_not_below_the_bars(walk: Walk, seed: Seed, width: int) -> None:
    """WCAG 2.2, 2.4.11: the table takes the focus first, and its rows must not stay behind the bars at the top."""
    page = walk.page
    many = [member_id("many", number) for number in range(40)]
    seed.members(seed.group("many", leader=many[0]), many)
    await page.set_viewport_size({"width": width, "height": 844})
    await page.goto("/groups/many?tab=members")
    await page.get_by_role("combobox", name="Sorted by").focus()
    for step in range(12):
        await page.keyboard.press("Tab")
        name = await page.evaluate("document.activeElement.outerHTML.slice(0, 80)")
        assert "table-wrap" in name or not await page.evaluate(COVERED), f"step {step}: {name}"


async def test_long_names_fit_every_page(walk: Walk, seed: Seed) -> None:
    """Names as long as they may be, without a place to break: on the pages of a group, a member, a plan and a topic."""
    name, topic, member = "g" * 240, "t" * 240, "m" * 250
    put_alert(seed.connection, put_rule(seed.connection, "n" * 100), name, at=now_ms())
    pk = seed.group(name, leader=member)
    seed.members(pk, [member], client_id="c" * 200)
    seed.topic(topic, 4, [123_456_789_012_345] * 4)
    seed.assign(pk, {(topic, partition): member for partition in range(4)}, generation=1)
    seed.commit(pk, {(topic, partition): 1 for partition in range(4)}, metadata="d" * 300)
    seed.event(name, "member_joined", 1, member, ms_ago=1_000, client_id="c" * 200, client_host="10.0.0.1")
    seed.connection.execute(
        "insert into groups_clientsoftware (client_id, client_host, name, version, seen_at)"
        " select client_id, client_host, repeat('n', 128), repeat('9', 128), 1 from groups_member where group_id = %s",
        [pk],
    )
    plan_id = put_plan(seed.connection, name, made_at=now_ms() - 60_000, lines=2, reason="r" * 400)
    long = {"group_id": name, "member_id": member, "name": topic, "plan_id": str(plan_id), "kind": "json"}
    patterns = {page.name: page.pattern.converters for page in urlpatterns if page.name in NAMES}
    wide: list[str] = []
    for page, converters in patterns.items():
        if converters and not converters.keys() <= long.keys():
            continue
        query = f"?member={member}" if page == "kick-member" else QUERIES.get(page, "")
        await walk.page.goto(reverse(f"frontend:{page}", kwargs={one: long[one] for one in converters}) + query)
        for width in WIDTHS[:3]:
            await walk.page.set_viewport_size({"width": width, "height": 900})
            if await walk.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(f"{page} at {width}: {await walk.page.evaluate(WIDER)}")
    assert wide == []


LABEL = """
list => {
  const label = getComputedStyle(list.querySelector(".field-group_id"), "::before");
  const lines = Math.round(parseFloat(label.height) / parseFloat(label.lineHeight));
  return [label.content.slice(1, -1), label.textTransform, lines];
}
"""
"""How the name of a long value is written before it, and in how many lines."""


async def test_long_names_fit_the_admin(walk: Walk, seed: Seed) -> None:
    """In a list all columns stay in a wide window; neither a list nor a row makes a narrow one scroll."""
    name, member = "g" * 240, "m" * 250
    pk = seed.group(name, leader=member)
    seed.members(pk, [member], client_id="c" * 200)
    seed.assign(pk, {("orders", partition): member for partition in range(4)}, generation=1)
    for address in ("/admin/groups/group/", "/admin/groups/member/", f"/admin/groups/group/{pk}/change/"):
        await walk.page.goto(address)
        for width in AUDITED:
            await walk.page.set_viewport_size({"width": width, "height": 900})
            assert not await walk.page.evaluate("document.documentElement.scrollWidth > innerWidth"), (address, width)
    await walk.page.goto("/admin/groups/group/")
    await walk.page.set_viewport_size({"width": min(WIDTHS), "height": 900})
    assert await walk.page.locator("#result_list").evaluate(LABEL) == ["Group id", "none", 1]
    await walk.page.set_viewport_size({"width": max(AUDITED), "height": 900})
    last = await walk.page.locator("#result_list tbody td").last.bounding_box()
    assert last is not None
    assert last["x"] + last["width"] <= 1440


WORDS_BROKEN = """
name => {
  const range = document.createRange(), texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT), broken = [];
  while (texts.nextNode()) {
    range.selectNodeContents(texts.currentNode);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
    if (lines.size > 1) broken.push(texts.currentNode.data);
  }
  return broken;
}
"""


async def test_names_break_at_their_separators(walk: Walk, seed: Seed) -> None:
    """And a table that is wider than the window is reached with the keyboard and does not widen the page."""
    name = "clickstream.sessions_of_customers.eu-central-1.production.hourly_aggregates.v2"
    seed.topic(name, 1, [10**14])
    seed.commit(seed.group(name), {(name, 0): 1})
    for address in ("/groups", "/topics", f"/groups/{name}?tab=offsets"):
        await walk.page.goto(address)
        for width in WIDTHS[:3]:
            await walk.page.set_viewport_size({"width": width, "height": 900})
            shown = walk.page.locator("main tbody th", has_text="clickstream.").locator("a, span").first
            assert await shown.evaluate(WORDS_BROKEN) == [], (address, width)
            assert not await walk.page.evaluate("document.documentElement.scrollWidth > innerWidth"), (address, width)
        for box in await walk.page.locator("main .table-wrap").all():
            await expect(box).to_have_attribute("tabindex", "0")


async def test_labels_of_a_plot_are_not_cut_off(walk: Walk, seed: Seed) -> None:
    """Not even those of a group that is ages behind."""
    seed.group_lag(seed.group("ages"), 10**14, 90_000 * 86_400_000)
    seed.lag_samples("ages", {"orders": [10**14] * 40}, every_ms=60_000)
    seed.connection.execute("update offsets_lagsample set time_lag_ms = 90000::bigint * 86400000")
    for width in AUDITED:
        await walk.page.set_viewport_size({"width": width, "height": 900})
        await walk.page.goto("/groups/ages/history?span=1h")
        chart = walk.page.locator(".chart.long-labels")
        await expect(chart.locator(".chart-y").last).to_have_text("100 k days")
        frame = await chart.bounding_box()
        assert frame is not None
        for label in await chart.locator(".chart-y").all():
            box = await label.bounding_box()
            assert box is not None
            assert box["x"] >= frame["x"], (width, await label.text_content())


async def test_compact_rows_do_not_break_numbers(walk: Walk, seed: Seed) -> None:
    """In a narrow window a value follows its label in the same line, or goes to the next as a whole."""
    page, member = walk.page, member_id("huge", 0)
    pk = seed.group("huge", leader=member)
    seed.members(pk, [member], client_id="huge")
    seed.topic("telemetry", 2, [9_000_000_000_000] * 2)
    seed.assign(pk, {("telemetry", partition): member for partition in range(2)})
    seed.commit(pk, {("telemetry", partition): 8_999_997_000_000 for partition in range(2)})
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"/groups/huge/members/{member}")
    committed = page.locator("td[data-label=Committed]").first
    await expect(committed).to_have_text("8,999,997,000,000")
    lines = """cell => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
    }"""
    assert await committed.evaluate(lines) == 1


async def looked_at(walk: Walk, name: str) -> AsyncIterator[str]:
    """What is wrong with a page, at each width."""
    (pattern,) = [page.pattern for page in urlpatterns if page.name == name]
    address = reverse(f"frontend:{name}", kwargs={one: walk.samples[one] for one in pattern.converters})
    answer = await walk.page.goto(address + QUERIES.get(name, ""))
    assert answer is not None
    assert answer.status in (200, 404, 405), f"{address}: {answer.status}"
    if answer.status != 405:
        for text in await audit_in_every_look(walk.page, name, contrast=True):
            yield text
    for width in WIDTHS:
        await walk.page.set_viewport_size({"width": width, "height": 900})
        if await walk.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            yield f"{width}: scrolls sideways because of {await walk.page.evaluate(WIDER)}"
        if width == min(WIDTHS):
            for table in await walk.page.evaluate(SCROLLING):
                yield f"{width}: scrolls sideways: {table}"
    if name == "docs":
        return  # its file is the OpenAPI document
    for table in await walk.page.evaluate(WITHOUT_CSV):
        yield f"no CSV: {table}"


async def test_the_rows_of_a_table_are_saved_as_csv(walk: Walk, seed: Seed) -> None:
    page = walk.page
    seed.lag_samples("billing", {"orders": [5, 10_400]}, every_ms=60_000)
    await page.goto("/compare?name=billing&name=idle")
    async with page.expect_download() as download:
        await page.locator("[data-csv=lag]").click()
    file = await download.value
    assert file.suggested_filename == "Compare-lag.csv"
    lines = list(csv.reader(Path(await file.path()).read_text().splitlines()))
    assert lines[0][0] == "Group"
    assert [line[0] for line in lines[1:]] == ["billing", "idle"]
    assert "10400" in lines[1], "numbers without separators"
    assert {len(line) for line in lines} == {len(lines[0])}


async def test_text_from_outside_does_not_become_a_formula(walk: Walk) -> None:
    page = walk.page
    await page.goto("/compare?name=%3Dcmd(1)&name=a%2C%22b%22")
    async with page.expect_download() as download:
        await page.locator("[data-csv=lag]").click()
    lines = list(csv.reader(Path(await (await download.value).path()).read_text().splitlines()))
    assert [line[0] for line in lines[1:]] == ["'=cmd(1)", 'a,"b"']


SAYS = """
([state, word, button]) => {
  const mark = document.getElementById("live-status"), pause = document.getElementById("live-pause");
  mark.dataset.state = state;
  mark.querySelector(".live-text").textContent = word;
  mark.querySelector(".live-as-of").textContent = word === "Live" ? "" : " as of 08:57:02";
  pause.hidden = false;
  pause.textContent = button;
  return document.querySelector("header.top").offsetHeight;
}
"""
"""The mark of the event stream in a state; returns the height of the bar in pixels."""


async def test_the_mark_does_not_move_the_page(walk: Walk) -> None:
    """Whatever it says, the bar at the top of a narrow window keeps its one line."""
    await walk.page.goto("/groups")
    await expect(walk.page.locator("#live-status")).to_have_text("Live")
    states = [("on", "Live"), ("wait", "Connecting"), ("off", "Offline"), ("stale", "Stale"), ("paused", "Paused")]
    for width in WIDTHS[:2]:
        await walk.page.set_viewport_size({"width": width, "height": 844})
        heights = {
            word: await walk.page.evaluate(SAYS, [state, word, "Resume" if word == "Paused" else "Pause"])
            for state, word in states
        }
        assert set(heights.values()) == {heights["Live"]}, (width, heights)


async def test_the_menu_of_a_narrow_window(walk: Walk) -> None:
    page = walk.page
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.goto("/topics")
    pages = page.get_by_role("navigation", name="Pages")
    await expect(pages).to_be_hidden()
    await page.get_by_role("button", name="Menu", exact=True).click()
    await expect(pages.get_by_role("link", name="Topics", exact=True)).to_have_attribute("aria-current", "page")
    assert await audit(page) == []
    await page.keyboard.press("Escape")
    await expect(pages).to_be_hidden()
    await choose_page(page, "Health")
    await expect(page).to_have_url(re.compile("/health$"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Health")


async def test_dashboard_and_admin_lead_to_each_other(walk: Walk) -> None:
    page = walk.page
    await page.goto("/plans")
    await choose_page(page, "Admin")
    await expect(page).to_have_url(re.compile("/admin/$"))
    await page.get_by_role("link", name="Health").first.click()
    await expect(page).to_have_url(re.compile("/health$"))
