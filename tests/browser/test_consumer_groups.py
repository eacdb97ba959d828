"""The page of a consumer group while the real service hands partitions from one member to another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.test_live import BOUND_MS, live
from tests.frontend.seed import Seed
from tests.support.http_members import make_token
from tests.support.processes import Running

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]


@pytest.fixture(autouse=True)
def _bounds() -> None:
    expect.set_options(timeout=BOUND_MS)


@pytest_asyncio.fixture(loop_scope="session")
async def client(site: Running, site_database: str, seed: Seed) -> AsyncIterator[httpx.AsyncClient]:
    """A client that may do everything, on a service with a topic `entries` of six partitions."""
    headers = {"Authorization": f"Bearer {make_token(site_database)}"}
    async with httpx.AsyncClient(base_url=site.url, headers=headers, timeout=60) as opened:
        answer = await opened.post("/v1/topics", json={"name": "entries", "partitions": 6})
        assert answer.status_code == 201, answer.text
        yield opened


async def beat(client: httpx.AsyncClient, member_id: str, epoch: int, **more: Any) -> dict[str, Any]:
    """A heartbeat of a member of the group `ledger`."""
    body = {"member_id": member_id, "member_epoch": epoch, **more}
    answer = await client.post("/v1/groups/ledger/consumer-heartbeat", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def join(client: httpx.AsyncClient, member_id: str) -> dict[str, Any]:
    """The first heartbeat of a member."""
    return await beat(
        client, member_id, 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["entries"], topic_partitions=[]
    )


async def test_partitions_are_seen_to_change_hands(page: Page, client: httpx.AsyncClient) -> None:
    badge, sentence = page.locator(".group-head .badge"), page.locator(".explanation")
    hands, cells = page.locator(".handovers tbody tr"), page.locator("#strip-1 .cell")
    alice, bob = (page.locator(".consumer-members tbody tr").filter(has_text=name) for name in ("alice", "bob"))
    await join(client, "alice")
    await page.goto("/groups/ledger")
    await live(page)
    await expect(badge).to_have_text("Stable")
    await expect(hands).to_have_count(0)

    joined = await join(client, "bob")
    await expect(badge).to_have_text("Reconciling")
    await expect(sentence).to_contain_text(
        "127.0.0.1 (alice) learns with its next heartbeat that it must give up entries 3–5 for 127.0.0.1 (bob)"
    )
    await expect(hands).to_have_count(1)
    await expect(hands).to_contain_text("Not told yet")
    await expect(page.locator("#strip-1 .cell.moves")).to_have_text(["3", "4", "5"])

    told = await beat(client, "alice", 1)
    await expect(sentence).to_contain_text(
        "127.0.0.1 (alice) still has to give up entries 3–5, which 127.0.0.1 (bob) waits for"
    )
    await expect(hands).to_contain_text("Must give up")
    await expect(page.locator("#strip-1 .cell.leaving")).to_have_text(["3", "4", "5"])
    await expect(alice).to_contain_text("Giving up")
    await expect(alice).to_contain_text("must give up entries 3–5")
    await expect(bob).to_contain_text("is to get entries 3–5")
    before = await cells.nth(3).get_attribute("data-owner")

    kept = [{"topic": "entries", "partitions": told["assignment"]["topic_partitions"][0]["partitions"]}]
    await beat(client, "alice", 1, topic_partitions=kept)
    await expect(page.get_by_text("No owner: 3–5 wait for 127.0.0.1 (bob)")).to_be_visible()
    await expect(alice).to_contain_text("Active")
    await expect(hands).to_contain_text("Free")

    await beat(client, "bob", joined["member_epoch"])
    await expect(badge).to_have_text("Stable")
    await expect(hands).to_have_count(0)
    await expect(page.locator("#strip-1 .cell.moves")).to_have_count(0)
    assert await cells.nth(3).get_attribute("data-owner") not in ("", before)
    await expect(page.locator("[aria-live=polite]")).to_have_text("ledger is Stable, group epoch 2, 2 members")


async def test_an_epoch_without_a_target_and_the_words_of_the_list(page: Page, client: httpx.AsyncClient) -> None:
    await join(client, "alice")
    await join(client, "bob")
    await beat(client, "bob", -1)
    await page.goto("/groups?type=consumer&state=Assigning&columns=type.generation")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await expect(page.locator("tbody tr")).to_contain_text("epoch 3")
    await page.get_by_role("link", name="ledger").click()
    await expect(page.locator(".explanation")).to_contain_text("Epoch 3 (127.0.0.1 (bob) left) has no target yet")
    await expect(page.locator(".facts")).to_contain_text("1 behind")
