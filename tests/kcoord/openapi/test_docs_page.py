"""The page at /docs in a real browser: it shows the document, within the security policy, from this host alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from playwright.async_api import async_playwright

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
        await page.wait_for_selector(".opblock", timeout=20_000)
        shown = await page.locator(".opblock").count()
        await page.locator("#operations-membership-joinGroup .opblock-summary-control").click()
        await page.wait_for_selector("#operations-membership-joinGroup .opblock-body", timeout=20_000)
        example = await page.locator("#operations-membership-joinGroup .body-param__example").inner_text()
        await browser.close()
    async with httpx.AsyncClient(base_url=address) as client:
        document = (await client.get("/v1/openapi.json")).json()
    assert shown == sum(len(path) for path in document["paths"].values())
    assert '"protocol_type": "consumer"' in example
    assert complaints == []
    assert {host for host in hosts if host} == {urlsplit(address).netloc}
