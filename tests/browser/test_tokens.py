"""Tokens in real Chromium: one for a new service, its rotation, its end; and removing a member and deleting a group."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW, Wrongs
from tests.frontend.seed import Seed
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


async def create(page: Page, name: str) -> str:
    """A token for the consumers of a group; returns its secret."""
    await page.goto("/tokens/new")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Consumer", exact=True).check()
    await page.get_by_label("Groups", exact=True).fill(name)
    await page.get_by_label("Topics", exact=True).fill("orders, pay*")
    await page.get_by_role("button", name="Create token").click()
    return await page.get_by_role("group", name="The secret").inner_text()


async def test_a_token_for_a_new_service_is_rotated_and_revoked(page: Page, site: Running) -> None:
    await page.goto("/")
    await page.get_by_role("link", name="Tokens").click()
    await page.get_by_role("link", name="New token").click()
    await page.get_by_label("Consumer", exact=True).check()
    await page.get_by_label("Groups", exact=True).fill("mailing")
    await page.get_by_label("Topics", exact=True).fill("orders")
    await page.get_by_label("Name").fill("mailing")
    await expect(page.get_by_text("commit and fetch offsets of, group mailing")).to_be_visible()
    await page.get_by_role("button", name="Create token").click()
    secret = await page.get_by_role("group", name="The secret").inner_text()
    assert re.fullmatch(r"kc_[\w-]{40,}", secret)

    async def status(with_secret: str) -> int:
        headers = {"Authorization": f"Bearer {with_secret}"}
        return (await page.request.get(f"{site.url}/v1/groups", headers=headers)).status

    assert await status(secret) == 200
    await page.get_by_role("link", name="The token").click()
    await expect(page.locator("body")).not_to_contain_text(secret)
    await page.get_by_role("button", name="Rotate").click()
    await expect(page.get_by_text("stays valid for 1 day")).to_be_visible()
    rotated = await page.get_by_role("group", name="The secret").inner_text()
    assert rotated != secret
    assert [await status(rotated), await status(secret)] == [200, 200]
    await page.get_by_role("link", name="The token").click()
    await page.get_by_label("Type the token's name").fill("mailing")
    await page.get_by_role("button", name="Revoke token").click()
    await expect(page.get_by_text("Revoked mailing.")).to_be_visible()
    await expect(page.get_by_role("heading", name="No tokens yet")).to_be_visible()


async def test_a_group_is_created_loses_offsets_and_is_deleted(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    wrongs.expected.append("404")  # the page that says that the group is gone
    seed.topic("orders", 2, [100, 100])
    await page.goto("/create-group")
    await page.get_by_label("Group id").fill("mailing")
    await page.get_by_label("Start offsets").fill("orders,0,42\norders,1,7")
    await page.get_by_role("button", name="Create group").click()
    await expect(page.get_by_text("Created mailing.")).to_be_visible()
    await page.get_by_text("Actions", exact=True).click()
    await page.get_by_role("link", name="Delete offsets").click()
    await page.get_by_label("Partitions of orders").click()
    await page.get_by_label(re.compile("^orders 1, lag")).check()
    await page.get_by_label("Type the group's id").fill("mailing")
    await page.get_by_role("button", name="Delete offsets").click()
    await expect(page.get_by_text("Deleted 1 committed offset of mailing.")).to_be_visible()
    await page.get_by_text("Actions", exact=True).click()
    await page.get_by_role("link", name="Delete group").click()
    await page.get_by_label("Type the group's id").fill("mailing")
    await page.get_by_role("button", name="Delete group").click()
    await expect(page.get_by_text("Deleted mailing with 1 committed offset.")).to_be_visible()


async def test_nothing_is_wrong_with_the_pages(page: Page, seed: Seed) -> None:
    await page.set_viewport_size(NARROW)
    await page.goto("/tokens")
    complaints = {}

    async def look(name: str) -> None:
        complaints[name] = await audit_in_every_look(page, f"tokens-{name}")

    await look("empty")
    await create(page, "mailing")
    await look("secret")
    await page.get_by_role("link", name="The token").click()
    await expect(page.get_by_role("button", name="Rotate")).to_be_visible()
    await look("token")
    await page.goto("/tokens/new?preset=consumer&groups=billing&topics=orders&name=billing")
    await page.get_by_text("As a command").click()
    await look("new")
    await page.goto("/tokens/new?preset=operator-role&prefix=billing-&name=billing")
    await expect(page.get_by_label("Prefix")).to_be_visible()
    await expect(page.get_by_label("Groups", exact=True)).to_be_hidden()
    await look("new-role")
    await create(page, "a-service-with-a-name-that-is-much-longer-than-names-should-be-" * 3)
    await page.goto("/tokens")
    await look("list")
    await page.goto("/create-group")
    await look("create-group")
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("orders", number): 5 for number in range(6)})
    await page.goto("/groups/idle/delete-offsets")
    await look("delete-offsets")
    assert {name: found for name, found in complaints.items() if found} == {}
