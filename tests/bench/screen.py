"""How long it takes until Chromium shows a join, and an outage: for `tests.bench.pages`."""

from __future__ import annotations

import signal
import statistics
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import ARGUMENTS
from tests.support import chromium
from tests.support.accounts import PASSWORD, USER, make_user
from tests.support.database import ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import Running, start_server

JOINS, OUTAGES = 9, 3
LIMIT_MS = 60_000
LIVE, NOT_LIVE = "#live-status[data-state=on]", "#live-status:not([data-state=on])"


@dataclass(frozen=True, slots=True)
class Seen:
    """Until something was on the screen: median and longest time in s, of so many times."""

    what: str
    seconds: float
    most: float
    of: int


def seen() -> list[Seen]:
    """Measure on a server and a database of their own; nothing without Chromium."""
    path = chromium.find()
    if path is None:
        return []
    with ephemeral_database() as conninfo, start_server(conninfo) as server, sync_playwright() as playwright:
        make_user(conninfo)
        server.wait_ready()
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_page(base_url=server.url)
        page.set_default_timeout(LIMIT_MS)
        with httpx.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {make_token(conninfo)}"}, trust_env=False
        ) as client:
            found = [_joins(page, client), _outages(page, server)]
        browser.close()
    return found


def _joins(page: Page, client: httpx.Client) -> Seen:
    """From the request of a member that joins until the page of its group counts it."""
    client.post("/v1/topics", json={"name": "orders", "partitions": 4}).raise_for_status()
    _join(client)
    page.goto("/groups/screen")
    page.get_by_label("User name").fill(USER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.locator(LIVE).wait_for()
    taken = []
    for number in range(JOINS):
        page.wait_for_timeout(1_000)  # a page that was fetched just now is not fetched again at once
        started = time.perf_counter()
        _join(client)
        page.get_by_role("link", name=f"Members {number + 2}", exact=True).wait_for()
        taken.append(time.perf_counter() - started)
    return _of("From a join to the changed page", taken)


def _join(client: httpx.Client) -> None:
    body = {
        "member_id": str(uuid.uuid4()), "member_epoch": 0, "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["orders"], "topic_partitions": [],
    }  # fmt: skip
    client.post("/v1/groups/screen/consumer-heartbeat", json=body).raise_for_status()


def _outages(page: Page, server: Running) -> Seen:
    """From the moment a server is frozen until the mark of the page no longer says Live."""
    taken = []
    for _ in range(OUTAGES):
        page.locator(LIVE).wait_for()
        started = time.perf_counter()
        server.send(signal.SIGSTOP)
        try:
            page.locator(NOT_LIVE).wait_for()
            taken.append(time.perf_counter() - started)
        finally:
            server.send(signal.SIGCONT)
    return _of("From a frozen server to the mark", taken)


def _of(what: str, taken: Sequence[float]) -> Seen:
    return Seen(what, round(statistics.median(taken), 2), round(max(taken), 2), len(taken))
