"""The page at /docs in a real browser: it shows the document, within the security policy, from this host alone.

It is audited with all pages, in `tests/browser/test_widths.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from playwright.async_api import async_playwright, expect

pytestmark = [pytest.mark.browser, pytest.mark.whole("starts a browser of its own")]

STARTED_SECONDS = 10
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]


@pytest.fixture
async def address(runtime: object) -> AsyncIterator[str]:
    """The address of the application, served on a free port of the loopback."""
    from kcoord.asgi import application

    server = uvicorn.Server(uvicorn.Config(application, port=0, lifespan="off", log_config=None, ws="none"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(STARTED_SECONDS):
        while not server.started:
            assert not serving.done(), "the server ended before it began to serve"
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await serving


async def test_the_page_shows_every_operation_and_loads_nothing_from_elsewhere(address: str, chromium: str) -> None:
    complaints: list[str] = []
    hosts: set[str] = set()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = await browser.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        response = await page.goto(f"{address}/docs")
        assert response is not None
        assert "script-src 'self'" in response.headers["content-security-policy"]
        shown = await page.locator("article:has(.api-method)").count()
        await page.get_by_role("link", name="Join a group", exact=True).first.click()
        join = page.locator("#joinGroup")
        await expect(join).to_be_in_viewport()
        line = await join.locator("pre").first.inner_text()
        await join.get_by_role("link", name="JoinRequest").click()
        await expect(page.locator("#schema-JoinRequest")).to_be_in_viewport()
        kinds = await page.locator("#schema-JoinRequest tr").all_inner_texts()
        links = await page.locator("a[href^='#']").evaluate_all("found => found.map(one => one.hash.slice(1))")
        names = await page.locator("[id]").evaluate_all("found => found.map(one => one.id)")
        await browser.close()
    async with httpx.AsyncClient(base_url=address) as client:
        document = (await client.get("/v1/openapi.json")).json()
    assert shown == sum(len(path) for path in document["paths"].values())
    assert f"{address}/v1/groups/GROUP_ID/join" in line
    assert '"protocol_type": "consumer"' in line
    assert any("group_instance_id" in row and "string or null" in row for row in kinds)
    assert any("group_instance_id" in row and "1 to 249 characters" in row for row in kinds)
    assert set(links) <= set(names), "every type that is named is there"
    assert complaints == []
    assert {host for host in hosts if host} == {urlsplit(address).netloc}
