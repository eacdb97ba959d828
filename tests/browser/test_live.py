"""Pages that change while one looks at them."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from playwright.async_api import Page, Route, TimeoutError, expect

from tests.browser.conftest import Wrongs, sign_out, watch
from tests.frontend.seed import Seed, working_group
from tests.support.freezing import seen
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

BOUND_MS = 20_000
"""How long a change may take to show on a busy machine; it is a bound on waiting, not a measure."""
HIDE = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"


@pytest.fixture(autouse=True)
def _bounds() -> None:
    expect.set_options(timeout=BOUND_MS)


async def live(page: Page) -> None:
    """Wait until the page's stream stands."""
    await expect(page.locator("#live-status")).to_have_text("Live")


async def test_scripts_that_arrive_late_and_out_of_step_do_no_harm(page: Page) -> None:
    release = asyncio.Event()

    async def later(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await page.route("**/all-live.js", later)
    first = page.wait_for_event("requestfinished", lambda request: request.url.endswith("/all.js"))
    await asyncio.gather(first, page.goto("/groups", wait_until="commit"))
    await page.evaluate("new Promise(done => setTimeout(done, 50))")  # time enough for a premature start
    release.set()
    await live(page)


async def test_partitions_are_seen_to_move(page: Page, seed: Seed) -> None:
    members = working_group(seed)
    await page.goto("/groups/billing")
    await live(page)
    cells = page.locator("#strip-1 .cell")
    before = [await cells.nth(p).get_attribute("class") for p in range(12)]
    assert len(set(before)) == 3
    await page.evaluate(
        "window.flashes = 0; const animate = Element.prototype.animate;"
        "Element.prototype.animate = function (...a) { window.flashes += 1; return animate.apply(this, a); }; void 0"
    )
    seed.connection.execute("update groups_group set state = 'PreparingRebalance'")
    seed.connection.execute("delete from groups_assignment where member_id = %s", [members[2]])
    seed.connection.execute("delete from groups_member where member_id = %s", [members[2]])
    seed.changed("billing")
    await expect(page.locator(".group-head .badge")).to_have_text("Preparing rebalance")
    await expect(page.get_by_text("No owner: 8–11")).to_be_visible()
    await expect(page.get_by_role("img", name="orders: 12 partitions, 2 owners, 4 without an owner")).to_be_visible()
    moved = {("orders", p): members[0] for p in range(8, 12)}
    seed.assign(1, moved, generation=8)
    seed.connection.execute("update groups_group set state = 'Stable', generation_id = 8")
    seed.changed("billing")
    await expect(page.locator(".group-head .badge")).to_have_text("Stable")
    after = [await cells.nth(p).get_attribute("class") for p in range(12)]
    assert after[:8] == before[:8], "who stayed keeps its colour"
    assert after[8:] == [before[0]] * 4
    assert await page.evaluate("window.flashes") >= 4
    await expect(page.locator("[aria-live=polite]")).to_have_text("billing is Stable, generation 8, 2 members")


async def test_a_refresh_disturbs_nobody(page: Page, seed: Seed) -> None:
    seed.many_groups(30)
    await page.reload()
    await live(page)
    search = page.get_by_label("Search")
    await search.fill("service")
    await expect(page.get_by_text("30 groups found")).to_be_visible()
    await search.evaluate("input => input.setSelectionRange(2, 4)")
    await page.evaluate("window.row = document.querySelector('tbody tr'); scrollTo(0, 200)")
    seed.group("another.service")
    seed.changed("another.service")
    await expect(page.get_by_text("31 groups found")).to_be_visible()
    await expect(search).to_be_focused()
    assert await search.evaluate("input => [input.value, input.selectionStart, input.selectionEnd]") == [
        "service",
        2,
        4,
    ]
    assert await page.evaluate("window.row.isConnected && scrollY") == 200


async def test_a_group_that_goes_says_so_and_one_that_comes_shows_itself(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups/billing")
    await live(page)
    seed.connection.execute("delete from groups_group")
    seed.changed("billing")
    await expect(page.get_by_text("This group was deleted.")).to_be_visible()
    seed.group("billing", "Empty", generation=0)
    seed.changed("billing")
    await expect(page.locator(".group-head .badge")).to_have_text("Empty")


async def test_a_paused_page_stands_still_until_it_is_resumed(page: Page, seed: Seed) -> None:
    await live(page)
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#live-status")).to_have_text("Paused")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    seed.group("quiet")
    seed.changed("quiet")
    other = await page.context.new_page()
    await other.goto("/groups")
    await expect(other.get_by_role("link", name="quiet")).to_be_visible()
    seed.changed("quiet")
    await other.close()
    assert [url for url in asked if url.endswith("/groups")] == []
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("link", name="quiet")).to_be_visible()


async def test_hidden_tabs_let_go_of_the_stream_and_catch_up_when_they_are_seen(
    page: Page, site: Running, seed: Seed
) -> None:
    await live(page)
    before = streams_ended(site)
    await page.evaluate(HIDE % "true" + "document.dispatchEvent(new Event('visibilitychange'))")
    await a_stream_ended(site, before)
    seed.group("unseen")
    seed.changed("unseen")
    await expect(page.get_by_role("link", name="unseen")).to_have_count(0)
    await page.evaluate(HIDE % "false" + "document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.get_by_role("link", name="unseen")).to_be_visible()
    await live(page)


def streams_ended(site: Running) -> int:
    """The server writes a line for each request when it has ended."""
    return sum('"/live"' in line for line in site.output.splitlines())


async def a_stream_ended(site: Running, before: int) -> None:
    """Wait until more streams have ended than before."""

    async def ended() -> bool:
        return streams_ended(site) > before

    await seen(ended, "a stream ends")


NO_WORKER = "delete window.SharedWorker;"
NO_LOCKS = "Object.defineProperty(navigator, 'locks', {value: undefined});"


@pytest.mark.parametrize("without", ["", NO_WORKER], ids=["worker", "leader"])
async def test_many_pages_have_one_stream(page: Page, site: Running, seed: Seed, without: str) -> None:
    """A browser opens six connections to a server: with a stream each, the seventh page would never be loaded."""
    working_group(seed)
    await live(page)
    before = streams_ended(site)
    await page.goto("about:blank")
    await a_stream_ended(site, before)
    await page.context.add_init_script(without)
    before = streams_ended(site)
    tabs = [await page.context.new_page() for _ in range(8)]
    for number, tab in enumerate(tabs):
        await tab.goto("/groups" if number % 2 else "/groups/billing")
        await live(tab)
    seed.connection.execute("update groups_group set state = 'PreparingRebalance'")
    seed.changed("billing")
    for number, tab in enumerate(tabs):
        badge = tab.locator("tbody .badge" if number % 2 else ".group-head .badge")
        await expect(badge).to_have_text("Preparing rebalance")
    # Each has its turn to lead, and the others go on.
    for tab in tabs[:-1]:
        await tab.close()
    await live(tabs[-1])
    seed.connection.execute("update groups_group set state = 'Stable'")
    seed.changed("billing")
    await expect(tabs[-1].locator("tbody .badge")).to_have_text("Stable")
    await tabs[-1].close()
    await a_stream_ended(site, before)
    assert streams_ended(site) - before <= (1 if not without else len(tabs))


async def test_a_browser_with_neither_worker_nor_locks_is_live_as_well(page: Page, seed: Seed) -> None:
    await page.context.add_init_script(NO_WORKER + NO_LOCKS)
    await page.reload()
    await live(page)
    seed.group("seen")
    seed.changed("seen")
    await expect(page.get_by_role("link", name="seen")).to_be_visible()


async def test_a_session_that_ended_leads_to_the_sign_in_and_back(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    wrongs.expected = ["the server responded with a status of 401"]
    working_group(seed)
    await page.goto("/groups/billing")
    await live(page)
    seed.connection.execute("delete from django_session")
    seed.changed("billing")
    await expect(page).to_have_title("Sign in · kcoord")
    assert page.url.endswith("/sign-in?next=%2Fgroups%2Fbilling")


async def test_nothing_is_asked_after_a_sign_out(page: Page, seed: Seed, site: Running, wrongs: Wrongs) -> None:
    """Neither while the answer is on its way, nor in another tab: each request would be a 401 in the browser's log."""
    working_group(seed)
    other = await page.context.new_page()
    watch(other, site.url, wrongs)
    for tab in (page, other):
        await tab.goto("/groups/billing")
        await live(tab)
    await page.bring_to_front()

    async def slowly(route: Route) -> None:
        answer = await route.fetch(max_redirects=0)
        seed.changed("billing")  # both tabs would fetch their panels
        with pytest.raises(TimeoutError):
            async with page.expect_request("**/groups/billing*", timeout=1_500):
                pass
        await route.fulfill(response=answer)

    await page.route("**/sign-out", slowly)
    await sign_out(page)
    for tab in (page, other):
        await expect(tab).to_have_title("Sign in · kcoord")
    assert other.url.endswith("/sign-in?next=/groups/billing")


async def test_members_of_the_real_service_come_and_go(
    page: Page, site: Running, site_database: str, seed: Seed, wrongs: Wrongs
) -> None:
    wrongs.expected = ["the server responded with a status of 404"]
    seed.topic("t", 2)
    async with httpx.AsyncClient(
        headers={"Authorization": f"Bearer {make_token(site_database)}"}, timeout=70
    ) as client:
        one, two = (HttpMember(client, [site.url]) for _ in range(2))
        await page.goto(f"/groups/{one.group_id}")
        await expect(page.get_by_text("There is no such group.")).to_be_visible()
        await live(page)
        preparing = expect(page.locator(".group-head .badge")).to_have_text("Preparing rebalance")
        await asyncio.wait_for(asyncio.gather(one.become_stable(), two.become_stable(), preparing), 60)
        await expect(page.locator(".group-head .badge")).to_have_text("Stable")
        await expect(page.get_by_role("img", name="t: 2 partitions, 2 owners")).to_be_visible()
        await leave(client, site.url, one)
        await expect(page.locator(".group-head .badge")).to_have_text("Preparing rebalance")
        await expect(page.locator(".timeline").get_by_text("Rebalance started")).not_to_have_count(0)


async def leave(client: httpx.AsyncClient, url: str, member: HttpMember) -> None:
    """One member leaves."""
    answer = await client.post(
        f"{url}/v1/groups/{member.group_id}/leave",
        json={"members": [{"member_id": member.member_id, "group_instance_id": None, "reason": "the test ends"}]},
    )
    assert answer.status_code == 200, answer.text
