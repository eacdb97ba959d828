"""Pages in real Chromium: signing in, finding groups, and what every page owes to keyboards, readers and weak eyes."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from frontend.pages.sign_in.view import account_key
from tests.browser.audit import audit_in_every_look, axe
from tests.browser.conftest import NARROW, Wrongs, open_context, sign_in, watch
from tests.frontend.seed import Seed, member_id, now_ms, reconciling_group, working_group
from tests.frontend.verdict_seed import judged, verdict
from tests.support.accounts import USER
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


async def test_searching_narrows_the_list_and_keeps_address_and_focus(page: Page, seed: Seed) -> None:
    seed.many_groups(300)
    await page.reload()
    await expect(page.locator("tbody tr")).to_have_count(50)
    search = page.get_by_label("Search")
    await search.press_sequentially("service-0012", delay=20)
    await expect(page.locator("tbody tr")).to_have_count(10)
    await expect(page.get_by_text("10 groups found")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/groups\?q=service-0012$"))
    await expect(search).to_be_focused()
    await page.get_by_label("Empty").check()
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page).to_have_url(re.compile(r"\?q=service-0012&state=Empty$"))
    await page.get_by_label("Preparing rebalance").check()
    await page.get_by_label("Empty").uncheck()
    await expect(page.get_by_role("heading", name="No group matches")).to_be_visible()
    await page.evaluate("setTimeout(() => history.back())")
    await expect(page.locator("tbody tr")).to_have_count(2)
    await expect(page.get_by_label("Empty")).to_be_checked()
    await page.reload()
    await expect(page.get_by_label("Search")).to_have_value("service-0012")


async def test_ten_thousand_groups_come_page_by_page(page: Page, seed: Seed) -> None:
    seed.many_groups(10_000)
    await page.goto("/groups?sort=changed")
    await expect(page.get_by_text("10,000 groups")).to_be_visible()
    await expect(page.locator("tbody tr")).to_have_count(50)
    first = await page.locator("tbody th").first.inner_text()
    await page.get_by_role("link", name="Next ›").click()
    await expect(page.locator("tbody th").first).not_to_have_text(first)
    await expect(page).to_have_url(re.compile(r"\?sort=changed&after="))
    await page.get_by_role("link", name="‹ Previous").click()
    await expect(page.locator("tbody th").first).to_have_text(first)


async def test_the_list_works_without_scripts(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> None:
    seed.many_groups(120)
    context = await open_context(browser, site, java_script_enabled=False)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/groups")
    await sign_in(page)
    await page.get_by_label("Search").fill("service-0001")
    await page.get_by_label("Empty").check()
    await page.get_by_role("button", name="Apply").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    await context.close()


async def test_a_huge_group_shows_what_fits_and_the_rest_on_demand(page: Page, seed: Seed) -> None:
    members = [member_id("fleet", number) for number in range(1_000)]
    pk = seed.group("fleet")
    seed.members(pk, members)
    seed.assign(pk, {("telemetry", p): members[p % 1_000] for p in range(5_000)})
    await page.goto("/groups/fleet")
    await expect(page.locator("[aria-labelledby=members-title] tbody tr")).to_have_count(25)
    await expect(page.locator(".cell")).to_have_count(960)
    await expect(page.locator(".strip-note")).to_contain_text("5,000 partitions")
    await expect(page.get_by_text("0, 1000, 2000, 3000, 4000", exact=True)).to_be_visible()
    await page.get_by_role("link", name="Show all 1,000", exact=True).click()
    await expect(page.locator("[aria-labelledby=members-title] tbody tr")).to_have_count(50)
    await expect(page.get_by_role("status").filter(has_text="of 1,000")).to_have_text("1–50 of 1,000")


async def test_the_skip_link_leads_to_the_content(page: Page) -> None:
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "main"


async def test_a_chosen_colour_scheme_is_kept(page: Page) -> None:
    light = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    button = page.get_by_role("button", name="Colours")
    await button.click()
    await expect(button).to_have_text("Light")
    await button.click()
    await expect(button).to_have_text("Dark")
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    await page.goto("/topics")
    await expect(page.get_by_role("button", name="Colours")).to_have_text("Dark")


async def test_rows_are_close_together_if_chosen_and_stay_so(page: Page, seed: Seed) -> None:
    seed.sampled("billing", {"orders": [700, 9_000, 4_200]})
    await page.goto("/groups")
    row = page.locator("#groups tbody tr").first
    before = await row.bounding_box()
    await page.locator("#account summary").click()
    await page.get_by_role("button", name="Comfortable rows").click()
    await page.reload()
    await page.locator("#account summary").click()
    await expect(page.get_by_role("button", name="Compact rows")).to_be_visible()
    after = await row.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] < before["height"]
    assert await audit_in_every_look(page) == []


async def test_the_head_of_the_list_stays_in_sight_and_nothing_is_cut_off(page: Page, seed: Seed) -> None:
    seed.many_groups(60)
    name = "clickstream.sessions_of_customers.eu-central-1.production.hourly_aggregates.v2"
    pk = seed.sampled(name, {topic: [10**12] * 9 for topic in ("orders-of-customers", "payments-of-customers")}, 2)
    for kind in ("uncovered", "late", "flapping"):
        verdict(seed, pk, kind, "orders")
    judged(seed)
    await page.set_viewport_size({"width": 1440, "height": 700})
    await page.goto("/groups")
    await expect(page.get_by_role("img", name="Last hour: from 2,000,000,000,000")).to_be_visible()
    last = page.locator("#groups tbody tr").last
    await last.scroll_into_view_if_needed()
    bar = await page.locator(".top").bounding_box()
    head = await page.get_by_role("columnheader", name="Lag", exact=True).bounding_box()
    assert bar is not None
    assert head is not None
    assert abs(head["y"] - bar["y"] - bar["height"]) <= 1
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    edges = await page.evaluate(
        "[...document.querySelectorAll('#groups tr')].map((row) => row.getBoundingClientRect().right)"
    )
    assert max(edges) <= 1440 - 24


async def test_a_topic_says_who_reads_it_and_what_is_written(page: Page, seed: Seed) -> None:
    members = working_group(seed)
    seed.topic("orders", 13, [11_000] * 12)
    seed.reported("orders", {0: [40 * n for n in range(60)], 1: [None] * 30 + [90 * n for n in range(30)]})
    await page.goto("/topics/orders")
    await expect(page.get_by_role("slider", name="Instant in Records written per minute")).to_be_attached()
    owner = page.get_by_role("table").last.get_by_role("link", name="billing@10.0.0.3").first
    assert await audit_in_every_look(page) == []
    await owner.click()
    await expect(page.get_by_text(members[2]).first).to_be_visible()


async def test_pages_are_readable_and_sound_in_every_state(stranger: Page, seed: Seed, wrongs: Wrongs) -> None:
    """With nothing, little, much and what is refused; test_widths has every page with something."""
    wrongs.expected = ["the server responded with a status of 404", "the server responded with a status of 400"]
    page = stranger
    await page.set_viewport_size(NARROW)
    complaints = {}

    async def look(address: str) -> None:
        await page.goto(address)
        found = await audit_in_every_look(page, re.sub(r"\W+", "-", address))
        if found:
            complaints[address] = found

    await look("/sign-in")
    await sign_in(page)
    await look("/groups")
    await look("/topics")
    await look("/archive")
    await look("/archive/findings")
    working_group(seed)
    rebalancing(seed)
    reconciling_group(seed)
    seed.many_groups(60)  # the list has pages
    seed.group("a-name-that-is-as-long-as-a-name-may-be-" * 6)
    seed.topic("orders", 12, [12_000] * 12)
    seed.lag_samples("billing", {"orders": [*range(60)], "payments": [5] * 20})
    pk = seed.group("idle", "Empty")
    seed.group_lag(pk, 12_345, 90_000)
    seed.journal("billing", "commit", "orders", 0, 5, member_id="m", generation=3)
    seed.journal("billing", "reset", "orders", 0, 1, principal="mara")
    for address in (
        "/groups?sort=lag", "/groups?q=nothing", "/groups/search", "/groups/ledger",
        "/groups/billing/simulate?add=2&assignor=sticky", "/groups/none", "/groups/billing?range=week",
        "/groups/idle/delete", "/groups/billing/commits?topic=nothing", "/topics?q=nothing", "/nowhere",
        "/groups?state=x",
    ):  # fmt: skip
        await look(address)
    await page.goto("/groups/billing/reset")
    await page.get_by_label("Latest").check()
    await page.get_by_label("Only some topics").check()
    await page.get_by_label("Other topics").fill("orders")
    await page.get_by_label("hold the group before").uncheck()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Offset plan")
    await look(page.url)
    seed.commit(pk, {("orders", 0): 99_999})
    await page.goto("/groups/billing/reset")
    await page.get_by_label("Copy another group").check()
    await page.get_by_label("Group id").fill("idle")
    await page.get_by_label("hold the group before").uncheck()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("button", name="Clamp to the log")).to_be_visible()
    await look(page.url)
    assert complaints == {}


def rebalancing(seed: Seed) -> None:
    """A group in the middle of a rebalance, with partitions that nobody owns."""
    members = [member_id("search", number) for number in range(14)]
    pk = seed.group("search", "PreparingRebalance", join_deadline_in=60_000, leader=members[0])
    seed.members(pk, members, joined=[number % 2 == 0 for number in range(14)], static=True)
    seed.assign(pk, {("clicks", p): members[p % 14] for p in range(90) if p % 7})
    seed.commit(pk, {("clicks", p): p for p in range(90)}, metadata="a note that is longer than its column is wide")


async def test_the_admin_keeps_to_its_own_policy(page: Page, seed: Seed) -> None:
    working_group(seed)
    for address in ("/admin/", "/admin/groups/group/", "/admin/groups/group/1/change/", "/admin/kcoord/apitoken/add/"):
        answer = await page.goto(address)
        assert answer is not None
        assert answer.status == 200
        await page.wait_for_load_state("networkidle")
        assert await axe(page, contrast=True) == []
    await page.get_by_label("Name").first.fill("from the browser")
    await page.locator("#id_rules-0-pattern").select_option("prefix")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#secret")).to_have_text(re.compile(r"^kc_[\w-]{43}$"))


async def test_a_wait_at_the_sign_in_is_counted_down_and_its_end_is_said_once(
    stranger: Page, seed: Seed, wrongs: Wrongs
) -> None:
    wrongs.expected = ["the server responded with a status of 429"]
    seed.connection.execute(
        "insert into frontend_signinattempt (key, failures, last_at) values (%s, 11, %s)",
        [account_key(USER).key, now_ms()],
    )
    await stranger.clock.install()
    await stranger.goto("/sign-in")
    await stranger.get_by_label("User name").fill(USER)
    await stranger.get_by_label("Password").fill("wrong")
    await stranger.get_by_role("button", name="Sign in").click()
    shown, said = stranger.locator("#countdown"), stranger.get_by_role("alert")
    first = int((await shown.text_content() or "").split()[3])
    await stranger.evaluate(
        "window.said = 0; new MutationObserver(() => { window.said += 1; })"
        ".observe(document.querySelector('[role=alert]'), {childList: true, characterData: true, subtree: true})"
    )
    await stranger.clock.run_for(2_000)
    await expect(shown).to_have_text(re.compile(rf"Try again in ({first - 2}|{first - 3}) seconds\."))
    assert await stranger.evaluate("window.said") == 0
    assert await audit_in_every_look(stranger, "sign-in-wait") == []
    await stranger.clock.run_for(70_000)
    await expect(shown).to_have_text("You can try again now.")
    await expect(said).to_have_text("Too many failed attempts. You can try again now.")
    assert await stranger.evaluate("window.said") == 1


async def test_large_offsets_of_a_topic_fit_a_narrow_window(page: Page, seed: Seed) -> None:
    seed.topic("orders", 4, [123_456_789_012] * 3)
    seed.connection.execute("update groups_watermark set log_start_offset = 120456789012")
    seed.connection.execute("update groups_watermark set sampled_at = 1 where partition = 1")
    await page.goto("/topics/orders")
    assert await audit_in_every_look(page, "topic-large-offsets") == []
    await page.set_viewport_size({"width": 390, "height": 844})
    table = page.get_by_role("group", name="Partitions")
    assert await table.evaluate("element => element.scrollWidth - element.clientWidth") == 0
    for number in await table.get_by_text("123,456,789,012").all():
        assert await number.evaluate("cell => cell.offsetHeight < 2 * 24"), "in one line"
