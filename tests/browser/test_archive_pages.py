"""Pages of the archive in real Chromium: runs, findings, reports; at what width and in what colours you like."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from offsets.models import ReconcileFinding
from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW
from tests.frontend.seed import Seed, working_group
from tests.support.spark_reports import busy_report, put_report
from tests.support.spark_runs import put_finding, put_run

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


def archive_pages(seed: Seed) -> list[str]:
    """Pages of runs that failed, go on and are done, and of findings of every kind."""
    failed = put_run(seed.connection, "archive", "failed", ago_ms=1_000, error="because of this and that " * 9)
    going = put_run(seed.connection, "archive", "running", ago_ms=0, slices_done=3, slices_total=8)
    done = put_run(seed.connection, "reconcile", findings=200, rows=12_345, result={"rows": 5, "by_kind": {}})
    for number, kind in enumerate(ReconcileFinding.Kind.values * 10, start=1):
        put_finding(seed.connection, done, number, kind, ("billing", "a-long-name-of-a-group-" * 8)[number % 2])
    pages = [f"/archive/runs/{run_id}" for run_id in (failed, going, done)]
    actions = [f"/archive/runs/{going}/cancel", "/archive/start?kind=reconcile"]
    return ["/archive", *pages, *actions, "/archive/findings"]


def report_pages(seed: Seed, folder: Path) -> list[str]:
    """Pages of a report without anything, of one day, and of more groups and days than pages show."""
    long_name = "a-name-that-is-as-long-as-a-name-may-be-" * 6
    empty = put_report(seed.connection, folder, {})
    one_day = busy_report(seed.connection, folder, long_name, days=1, groups=1)
    huge = busy_report(seed.connection, folder, "billing", days=400, groups=2_000)
    shown = [f"{huge}?show=days", f"{huge}/groups?page=2&sort=name&q=team", f"{huge}/partitions", empty, one_day]
    groups = ["/groups/billing/report", f"/groups/{long_name}/report?run={one_day}", "/groups/idle/report"]
    return [*(f"/archive/runs/{page}" for page in shown), *groups]


async def test_every_page_of_the_archive_is_readable_and_sound(page: Page, seed: Seed, archive_folder: Path) -> None:
    await page.set_viewport_size(NARROW)
    seed.group("idle", "Empty")
    await page.goto("/groups/idle/report")
    complaints = {}
    for address in ("/groups/idle/report", *archive_pages(seed), *report_pages(seed, archive_folder)):
        await page.goto(address)
        found = await audit_in_every_look(page, re.sub(r"\W+", "-", address)[:100])
        if found:
            complaints[address] = found
    assert complaints == {}


async def test_a_report_is_reached_from_its_run_and_from_its_group(
    page: Page, seed: Seed, archive_folder: Path
) -> None:
    working_group(seed)
    run_id = busy_report(seed.connection, archive_folder, "billing", days=60, groups=200)
    await page.goto("/groups/billing")
    await page.get_by_role("navigation", name="Parts of the group").get_by_role("link", name="Partitions").click()
    await page.get_by_role("link", name="Report", exact=True).click()
    await expect(page).to_have_url(re.compile("/groups/billing/report$"))
    for name in ("Commits a day", "Rebalances a day", "Members seen first a day"):
        plot = page.get_by_role("region", name=name).get_by_role("figure")
        await expect(plot).to_have_accessible_name(re.compile(f"^{name} from 20.*at most"))
    table = page.get_by_role("table").first
    await expect(table.get_by_role("columnheader")).to_have_count(10)
    await expect(table.locator("tbody tr")).to_have_count(14)
    await page.get_by_role("link", name="Show all 60 days").click()
    await expect(table.locator("tbody tr")).to_have_count(60)
    await page.get_by_role("link", name="reported").click()
    await expect(page).to_have_url(re.compile(f"/archive/runs/{run_id}$"))
    await page.get_by_role("link", name="All 200").click()
    await page.get_by_label("Search").fill("service-0000")
    await page.get_by_label("Sort by").select_option("name")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("tbody tr")).to_have_count(10)
    await page.locator("tbody th a").first.click()
    await expect(page).to_have_url(re.compile(r"/groups/team-00\.service-00000/report\?run="))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Report")
