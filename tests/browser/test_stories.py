"""What operators come for, each in at most three clicks from the landing page. Typing is not a click; the keys count.
And what every page owes them: a way in and out, the keyboard, news without a reload. `make test` has no other browser.

The page counts presses of the pointer itself, so a test cannot forget one. Playwright presses again if the page moved
under the pointer, and keeps the press that missed from the document.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.audit import audit
from tests.browser.conftest import Wrongs, enter, open_context, sign_out, watch
from tests.frontend.seed import Seed, member_id, now_ms, working_group
from tests.frontend.verdict_seed import judged, verdict
from tests.support.accounts import PASSWORD, USER
from tests.support.processes import Running

pytestmark = pytest.mark.browser

DAY_MS = 86_400_000
COUNTING = """
document.addEventListener('pointerdown', () => sessionStorage.setItem('clicks', 1 + clicks()), true);
const clicks = () => Number(sessionStorage.getItem('clicks') ?? 0);
"""
ZOMBIE, WORKER = member_id("billing", 1), member_id("billing", 0)
TUESDAY = (datetime.now(UTC) - timedelta(days=3)).replace(hour=14, minute=12, second=0, microsecond=0)
AT_THREE = (datetime.now(UTC) - timedelta(days=1)).replace(hour=3, minute=4, second=0, microsecond=0)

OLD_RECORD = """
    select kcoord_audit_append(%(at)s, 'person', 'sam', '7', '', '', 'dashboard', 'offsets.apply', 'group', 'billing',
                               null, '{"partitions":1}', 'bug 17', 'done', '', 1)
"""
"""Records cannot be removed, so only the story that looks for it may leave one."""


def ms_since(at: datetime) -> int:
    """How long ago an instant was."""
    return now_ms() - int(at.timestamp() * 1_000)


def wall(at: datetime) -> str:
    """An instant as a field for date and time takes it."""
    return f"{at:%Y-%m-%dT%H:%M:%S}"


def a_bad_day(seed: Seed) -> None:
    """`billing` waits for a member that is gone, others lag, and offsets were changed days ago and at 03:04."""
    pk = seed.group(
        "billing", "PreparingRebalance", generation=7, leader=WORKER, since_ms_ago=244_000, join_deadline_in=56_000
    )
    seed.members(pk, [WORKER, ZOMBIE], client_id="billing", joined=[True, False])
    seed.topic("orders", 3, [9_000, 9_000, 9_000])
    seed.commit(pk, {("orders", partition): 8_000 for partition in range(3)})
    verdict(seed, pk, "stuck", ms_ago=244_000, due_in=56_000, number=1, names=(ZOMBIE,))
    judged(seed)
    seed.journal("billing", "reset", "orders", 1, 5, ms_ago=ms_since(TUESDAY), principal="sam")
    seed.journal("billing", "reset", "orders", 1, 2_000, ms_ago=2 * DAY_MS + 3_600_000, principal="root")
    for partition in range(3):
        seed.journal("billing", "commit", "orders", partition, 2_000, ms_ago=2 * DAY_MS + 3_600_000)
    seed.event("billing", "rebalance_started", 6, ZOMBIE, ms_ago=ms_since(AT_THREE), cause="session_expired")
    for name, lag, time_lag in (("mailing", 900_000, 20_000), ("archive-loader", 40, 7_200_000), ("audit", 0, 0)):
        seed.group_lag(seed.group(name), lag, time_lag)
        seed.lag_samples(name, {"orders": [lag // 2, lag // 3, lag]}, every_ms=2 * DAY_MS)


@pytest_asyncio.fixture(loop_scope="session")
async def landing(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> AsyncIterator[Page]:
    """The landing page after a bad day. A story ends with at most three clicks, on a page without complaints."""
    a_bad_day(seed)
    context = await open_context(browser, site)
    await context.add_init_script(COUNTING)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await enter(page, site, "/")
    await page.evaluate("sessionStorage.removeItem('clicks')")
    yield page
    assert await audit(page) == [], "where the story ends"
    await context.close()


async def in_time(page: Page, clicks: int) -> None:
    """The answer is visible after this number of clicks."""
    assert int(await page.evaluate("sessionStorage.getItem('clicks') ?? 0")) == clicks <= 3


async def test_why_is_billing_stuck(landing: Page) -> None:
    await expect(landing.locator(".need").first).to_contain_text("billing")
    await in_time(landing, 0)
    await landing.get_by_role("link", name="billing", exact=True).click()
    await expect(landing.locator(".explanation")).to_contain_text(re.compile("waits for billing.* to join"))
    await expect(landing.locator(".explanation")).to_contain_text("The wait ends")
    await in_time(landing, 1)


async def test_who_is_furthest_behind_in_time(landing: Page) -> None:
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Groups").click()
    await landing.get_by_role("link", name="Time lag").click()
    await expect(landing.locator("tbody th").first).to_have_text("archive-loader")
    await expect(landing.locator("tbody tr").first).to_contain_text("2 h")
    await in_time(landing, 2)


async def test_who_changed_this_offset_last_tuesday(landing: Page, seed: Seed) -> None:
    seed.connection.execute(OLD_RECORD, {"at": int(TUESDAY.timestamp() * 1_000)})
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Audit").click()
    await landing.get_by_label("On", exact=True).fill("billing")
    await landing.get_by_label("From (UTC)").fill(wall(TUESDAY.replace(hour=0, minute=0))[:16])
    await landing.get_by_label("Before (UTC)").fill(wall(TUESDAY.replace(hour=23, minute=59))[:16])
    await landing.get_by_role("button", name="Show").click()
    row = landing.locator("tbody tr")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("sam")
    await expect(row).to_contain_text("bug 17")
    await row.get_by_role("link", name="Commit history").click()
    change = landing.locator("tbody tr")
    await expect(change).to_have_count(1)  # the commits and the reset of the days since are left out
    await expect(change).to_contain_text(re.compile(r"reset\s*orders\s*1?\s*1\s*5\s*sam"))
    await in_time(landing, 3)


async def test_what_happened_at_three(landing: Page) -> None:
    await landing.get_by_role("link", name="billing", exact=True).click()
    await landing.get_by_role("link", name="History", exact=True).click()
    await landing.get_by_label("From (UTC)").fill(wall(AT_THREE.replace(minute=0)))
    await landing.get_by_label("Before (UTC)").fill(wall(AT_THREE.replace(minute=30)))
    await landing.get_by_role("button", name="Show").click()
    await expect(landing.locator(".span-text")).to_contain_text("03:00")
    await expect(landing.get_by_role("region", name="Rebalances")).to_contain_text("03:04")
    await in_time(landing, 3)


async def test_what_happened_at_three_to_all_groups(landing: Page) -> None:
    await landing.get_by_role("link", name="What happened").click()
    await landing.get_by_label("From (UTC)").fill(wall(AT_THREE.replace(minute=0)))
    await landing.get_by_label("Before (UTC)").fill(wall(AT_THREE.replace(minute=30)))
    await landing.get_by_role("button", name="Show").click()
    row = landing.get_by_role("row").filter(has_text="03:04")
    await expect(row).to_contain_text("A member sent no heartbeat in time")
    await row.get_by_role("link", name="billing", exact=True).click()
    await expect(landing.get_by_role("heading", level=1)).to_have_text("History")
    await expect(landing.locator(".span-text")).to_contain_text("03:00")
    await in_time(landing, 3)


async def test_is_the_coordinator_healthy(landing: Page) -> None:
    await expect(landing.get_by_role("complementary", name="Health")).to_contain_text("Postgres")
    await in_time(landing, 0)
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Health").click()
    await expect(landing.get_by_role("heading", level=1)).to_have_text("Health")
    await expect(landing.locator(".health-part").first).to_be_visible()
    await in_time(landing, 1)


async def test_reset_to_yesterday_and_undo(landing: Page, seed: Seed) -> None:
    await landing.keyboard.press("Control+k")
    await landing.keyboard.type("reset billing")
    await expect(landing.get_by_role("option").first).to_contain_text("Reset offsets of billing")
    await landing.keyboard.press("Enter")
    await expect(landing.get_by_role("heading", level=1)).to_have_text("Reset offsets")
    for choice in ("Committed at a time", "Yesterday 06:00", "Hold the group before"):
        field = landing.get_by_label(choice).first
        if not await field.is_checked():
            await field.press("Space")
    await landing.get_by_role("button", name="Preview").click()
    await landing.get_by_role("button", name="Apply").click()
    await expect(landing.get_by_role("heading", name="Verify")).to_be_visible()
    assert committed(seed) == {2_000}
    await landing.get_by_role("button", name="Undo").click()
    await expect(landing.get_by_text("Undone: the offsets of 3 partitions are restored.")).to_be_visible()
    assert committed(seed) == {8_000}
    await in_time(landing, 3)


def committed(seed: Seed) -> set[int]:
    """The committed offsets of all partitions."""
    return {offset for (offset,) in seed.connection.execute("select committed_offset from offsets_committedoffset")}


async def test_kick_a_zombie(landing: Page, seed: Seed) -> None:
    await landing.get_by_role("link", name="billing", exact=True).click()
    await landing.get_by_role("link", name=f"Remove {ZOMBIE}").click()
    await landing.get_by_label("Reason").fill("its host hangs")
    await landing.get_by_role("button", name="Remove member").click()
    await expect(landing.get_by_text(f"Removed {ZOMBIE}. It can join again.")).to_be_visible()
    await in_time(landing, 3)
    left = seed.connection.execute("select member_id from groups_member").fetchall()
    assert left == [(WORKER,)]
    await expect(landing.get_by_role("complementary", name="Events")).to_contain_text("its host hangs")


async def test_compare_two_groups_over_a_week(landing: Page) -> None:
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Compare").click()
    await landing.get_by_label("Name 1").fill("mailing")
    await landing.get_by_label("Name 2").fill("archive-loader")
    await landing.get_by_role("button", name="Compare").click()
    await landing.get_by_role("link", name="7 d").click()
    await expect(landing.locator("tbody th")).to_contain_text(["mailing", "archive-loader"])
    await expect(landing.get_by_role("region", name="Lag", exact=True).locator("svg").first).to_be_visible()
    await in_time(landing, 3)


async def test_a_token_for_a_new_service(landing: Page) -> None:
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Tokens").click()
    await landing.get_by_role("link", name="New token").click()
    await landing.get_by_label("Name").fill("mailing")
    await landing.get_by_label("Groups", exact=True).fill("mailing")
    await landing.get_by_label("Topics", exact=True).fill("orders")
    await landing.get_by_role("button", name="Create token").click()
    secret = await landing.get_by_role("group", name="The secret").inner_text()
    assert secret.startswith("kc_")
    await in_time(landing, 3)
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await landing.request.get("/v1/groups", headers=headers)).status == 200


async def test_an_alert(landing: Page, seed: Seed) -> None:
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Alerts").click()
    await landing.get_by_role("link", name="New alert rule").first.click()
    await landing.get_by_label("Name", exact=True).fill("far behind")
    await landing.get_by_label("By at least this long").fill("10 min")
    await landing.get_by_role("checkbox", name="oncall").press("Space")
    await landing.get_by_role("button", name="Create rule").click()
    await expect(landing.get_by_text("Made the rule far behind.")).to_be_visible()
    await in_time(landing, 3)
    stored = "select name, min_time_lag_ms, receivers from offsets_alertrule"
    assert seed.connection.execute(stored).fetchall() == [("far behind", 600_000, ["oncall"])]


async def test_who_owns_partition_seven(landing: Page, seed: Seed) -> None:
    seed.topic("shipments", 12, [100] * 12)
    pk = seed.group("shipping")
    worker = member_id("shipping", 0)
    seed.members(pk, [worker], client_id="shipping")
    seed.assign(pk, {("shipments", partition): worker for partition in range(12)})
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Topics").click()
    await landing.get_by_role("link", name="shipments", exact=True).click()
    row = (
        landing.get_by_role("region", name="Partitions")
        .get_by_role("row")
        .filter(has=landing.get_by_role("rowheader", name="7", exact=True))
    )
    await expect(row.get_by_role("link", name="shipping", exact=True)).to_be_visible()
    await expect(row.get_by_role("link").nth(1)).to_have_attribute("title", worker)
    await in_time(landing, 2)


async def test_read_access_for_a_colleague(landing: Page, seed: Seed) -> None:
    seed.connection.execute(
        "insert into auth_user (username, password, is_active, is_staff, is_superuser, first_name, last_name, email,"
        " date_joined) values ('zoe', '!', true, false, false, '', '', '', now())"
    )
    await landing.get_by_role("navigation", name="Pages").get_by_role("link", name="Access").click()
    await landing.get_by_role("link", name="Grant").click()
    await landing.get_by_label("Name", exact=True).fill("zoe")
    await landing.get_by_label("Prefix").fill("bill")
    await landing.keyboard.press("Tab")
    await expect(landing.get_by_text("they see 1 group (billing)")).to_be_visible()
    await landing.get_by_role("button", name="Grant", exact=True).click()
    await expect(landing.get_by_text("zoe has 3 new rules.")).to_be_visible()
    await in_time(landing, 3)
    seed.connection.execute(
        "delete from kcoord_accessrule where user_id in (select id from auth_user where username = 'zoe')"
    )
    seed.connection.execute("delete from auth_user where username = 'zoe'")


async def test_signing_in_and_out(stranger: Page) -> None:
    await stranger.goto("/groups?state=Empty")
    await expect(stranger).to_have_title("Sign in · kcoord")
    await expect(stranger.get_by_label("User name")).to_be_focused()
    await stranger.get_by_label("User name").fill(USER)
    await stranger.get_by_label("Password").fill("wrong")
    await stranger.keyboard.press("Enter")
    await expect(stranger.get_by_role("alert")).to_contain_text("Wrong user name or password")
    await expect(stranger.get_by_label("User name")).to_have_value(USER)
    await stranger.get_by_label("Password").fill(PASSWORD)
    await stranger.keyboard.press("Enter")
    await expect(stranger).to_have_url(re.compile(r"/groups\?state=Empty$"))
    await sign_out(stranger)
    await expect(stranger).to_have_url(re.compile("/sign-in$"))
    await stranger.goto("/groups")
    await expect(stranger).to_have_title("Sign in · kcoord")


async def test_the_keyboard_reaches_everything_in_the_order_of_reading(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    reached: list[str] = []
    while len(reached) < 100 and "billing" not in reached:
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    wanted = [
        "kcoord",
        "Overview",
        "Groups",
        "Topics",
        "Alerts",
        "Plans",
        "Audit",
        "Health",
        "Nodes",
        "Archive",
        "live-pause",
        "zone",
        "theme",
        "account-menu",
        "q",
        "type",
        "state-Stable",
        "verdict-late",
        "billing",
    ]
    assert [name for name in reached if name in wanted] == wanted
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    await page.get_by_role("link", name="billing").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("billing")


async def test_a_new_group_appears_in_the_list(page: Page, seed: Seed) -> None:
    await expect(page.locator("#live-status")).to_have_text("Live")
    await expect(page.get_by_role("heading", name="No groups yet")).to_be_visible()
    working_group(seed)
    seed.changed("billing")
    await expect(page.get_by_role("link", name="billing")).to_be_visible()
    await expect(page.get_by_text("1 group", exact=True)).to_be_visible()
