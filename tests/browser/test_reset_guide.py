"""The guided reset in real Chromium: from the first page to yesterday's offsets and back, in one place."""

from __future__ import annotations

import re

import psycopg
import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW
from tests.frontend.seed import Seed, member_id

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

DAY_MS = 86_400_000


def offsets(database: str) -> dict[tuple[str, int], int]:
    with psycopg.connect(database) as connection:
        found = connection.execute("select topic, partition, committed_offset from offsets_committedoffset")
        return {(topic, partition): offset for topic, partition, offset in found}


@pytest.fixture
def billing(seed: Seed) -> None:
    """An empty group with two days of commits on three topics, and logs that have moved on."""
    pk = seed.group("billing", "Empty", protocol=None)
    for topic, count in (("orders", 4), ("payments", 2), ("returns", 1)):
        seed.topic(topic, count, [9_000 + 10 * number for number in range(count)])
        seed.commit(pk, {(topic, number): 8_000 for number in range(count)})
        for number in range(count):
            seed.journal("billing", "commit", topic, number, 2_000, ms_ago=2 * DAY_MS + 3_600_000)
            seed.journal("billing", "commit", topic, number, 8_000, ms_ago=60_000)


async def test_from_the_first_page_to_yesterday_and_back(
    page: Page, seed: Seed, billing: None, site_database: str
) -> None:
    before = offsets(site_database)
    await page.goto("/groups")
    await page.get_by_role("link", name="billing").first.click()
    await page.get_by_text("Actions", exact=True).click()
    await page.get_by_role("link", name="Reset offsets").click()  # the third click from the list
    await expect(page.get_by_role("heading", level=1)).to_have_text("Reset offsets")
    await page.get_by_label("Only some topics").check()
    await page.get_by_label("orders", exact=True).check()
    await page.get_by_label("Committed at a time").first.check()
    await page.get_by_label("Yesterday 06:00").first.check()
    await page.get_by_label("Hold the group before").check()
    await page.get_by_text("As a command").click()
    await expect(page.get_by_label("Make the plan with kgroups", exact=True)).to_contain_text(
        "--topic=orders --to-committed-at="
    )
    await expect(page.get_by_label("Make the plan with curl", exact=True)).to_contain_text(
        '"strategy": "to-committed-at"'
    )
    await page.get_by_role("button", name="Preview").click()

    await expect(page.get_by_role("heading", level=1)).to_have_text("Offset plan")
    await expect(page.get_by_text("No member can join")).to_be_visible()
    await expect(page.locator("time[data-until]")).to_have_text(re.compile(r"1[45]:\d\d"))
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("heading", name="Verify")).to_be_visible()
    await expect(page.get_by_text("of 4 partitions", exact=True)).to_be_visible()
    assert {key: offset for key, offset in offsets(site_database).items() if key[0] == "orders"} == {
        ("orders", number): 2_000 for number in range(4)
    }
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("Undone: the offsets of 4 partitions are restored.")).to_be_visible()
    assert offsets(site_database) == before
    await page.get_by_role("button", name="End the hold").click()
    await expect(page.get_by_text("The hold has ended")).to_be_visible()
    await expect(page.locator("time[data-until]")).to_have_count(0)


async def test_planning_again_keeps_the_choices(page: Page, billing: None) -> None:
    await page.goto("/groups/billing/reset")
    await page.get_by_label("Only some topics").check()
    await page.get_by_label("Partitions of orders").click()
    await page.get_by_label(re.compile("^orders 1, lag")).check()
    await page.get_by_label(re.compile("^orders 3, lag")).check()
    await page.get_by_label("Forwards or backwards").check()
    await page.get_by_label("Records", exact=True).fill("-10")
    await page.get_by_label("Clamp new offsets").check()
    await page.get_by_role("button", name="Preview").click()
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(2)
    first = page.url
    await page.get_by_role("button", name="Plan again").click()
    await page.wait_for_url(lambda url: url != first)
    await expect(rows).to_have_count(2)
    await page.get_by_role("link", name="Change the choices").click()
    await expect(page.get_by_label(re.compile("^orders 1, lag"))).to_be_checked()
    await expect(page.get_by_label(re.compile("^orders 2, lag"))).not_to_be_checked()
    await expect(page.get_by_label("Clamp new offsets")).to_be_checked()
    await expect(page.get_by_label("Records", exact=True)).to_have_value("-10")


async def test_a_typed_instant_is_the_chosen_one(page: Page, billing: None) -> None:
    await page.goto("/groups/billing/reset")
    await page.get_by_label("Records written since a time").first.check()
    group = page.get_by_role("group", name="Records written since a time")
    await group.get_by_role("textbox").fill("2026-01-30T06:00:00")
    await expect(group.get_by_role("radio").last).to_be_checked()


async def test_nothing_is_wrong_with_the_steps(page: Page, seed: Seed, billing: None) -> None:
    await page.set_viewport_size(NARROW)
    await page.goto("/groups/none/reset")
    complaints = {}

    async def look(name: str) -> None:
        complaints[name] = await audit_in_every_look(page, f"reset-{name}")

    await look("empty")
    huge(seed)
    await page.goto("/groups/huge/reset?scope=chosen&strategy=to-datetime")
    await look("huge")
    await page.goto("/groups/billing/reset?scope=chosen&strategy=to-datetime&t=orders&hold=on")
    await page.get_by_label("Partitions of orders").click()
    await page.get_by_text("As a command").click()
    await look("normal")
    await page.get_by_label("Latest").check()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Offset plan")
    await look("plan")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("heading", name="Verify")).to_be_visible()
    await look("applied")
    await page.goto("/groups/huge/reset")
    await page.get_by_label("Earliest").check()
    await page.get_by_label("hold the group before").uncheck()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Offset plan")
    await look("huge-plan")
    assert {name: found for name, found in complaints.items() if found} == {}


def huge(seed: Seed) -> None:
    """A busy group with 10,000 partitions of 130 topics."""
    pk = seed.group("huge", "Stable")
    members = [member_id("huge", number) for number in range(20)]
    seed.members(pk, members)
    committed = {}
    for number in range(130):
        count = 2_000 if number < 2 else 4 if number < 30 else 58
        name = f"stream-{number:03d}-of-a-department-with-a-long-name"
        seed.topic(name, count, [100_000 + number] * count)
        committed |= {(name, partition): 50_000 + partition for partition in range(count)}
    seed.commit(pk, committed)
