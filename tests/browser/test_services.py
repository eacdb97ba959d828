"""Groups of other services in real Chromium: their part of the pages, and the way to theirs."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.frontend.seed import Seed
from tests.frontend.verdict_seed import troubled
from tests.support.http_members import make_token
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("axe on pages with a part that few installations have")]


async def test_groups_of_other_services_are_a_click_away(
    page: Page, seed: Seed, site: Running, site_database: str, services_file: Path
) -> None:
    troubled(seed)
    token = make_token(site_database)  # the service asks itself
    written = "".join(
        f'[{name}]\nurl = "{url}"\ntoken = "{token}"\n'
        for name, url in (("payments-europe", site.url), ("payments-overseas", "http://127.0.0.1:1"))
    )
    services_file.write_text(written)
    try:
        await page.goto(f"{site.url}/groups?q=sett")
        rows = page.locator("#groups tbody tr").filter(has_text="payments-settlement")
        await expect(rows).to_have_count(2)  # here and there
        there = rows.filter(has=page.get_by_text("payments-europe", exact=True))
        await expect(there.get_by_role("link", name="payments-settlement")).to_be_visible()
        await expect(there.get_by_role("checkbox")).to_have_count(0)
        await expect(page.get_by_text("payments-overseas could not be read")).to_be_visible()
        assert await audit_in_every_look(page, "groups-elsewhere") == []
        await page.goto(f"{site.url}/search?q=sett")
        await expect(page.get_by_text("in payments-europe").first).to_be_visible()
        assert await audit_in_every_look(page, "search-elsewhere") == []
        await page.goto(site.url)
        await expect(page.get_by_role("heading", name="Other services")).to_be_visible()
        assert await audit_in_every_look(page, "overview-elsewhere") == []
        await page.locator(".health").get_by_role("link", name="payments-settlement").first.click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("payments-settlement")
    finally:
        services_file.write_text("")
