"""The overview in real Chromium: what needs attention, with workers that freeze or stop making progress."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx
import psycopg
import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import NARROW, Wrongs, open_context, sign_in, watch
from tests.frontend.seed import Seed, now_ms
from tests.frontend.verdict_seed import judged, troubled, verdict
from tests.support.accounts import make_user
from tests.support.database import ROOT, cloned_database
from tests.support.http_members import make_token
from tests.support.processes import Running, start_beat, start_server, start_worker

pytestmark = [pytest.mark.browser, pytest.mark.whole("needs Celery and a server of its own")]

QUICK = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
    "KCOORD_VERDICT_CHECK_INTERVAL_MS": 1_000,
    "KCOORD_LAG_SAMPLE_INTERVAL_MS": 1_000,
    "KCOORD_VERDICT_STALLED_MS": 3_000,
}
PATIENCE_MS = 60_000
WORKER = """
import sys
from kcoord.client import Consumer
url, token, group_id = sys.argv[1:]
with Consumer("orders", group_id=group_id, url=url, token=token, session_timeout_ms=20_000,
              heartbeat_interval_ms=1_000, enable_auto_commit=False) as consumer:
    while True:
        consumer.poll(timeout_ms=500)
        print(len(consumer.assignment()), flush=True)
"""
CLIPPED = """
[...document.querySelectorAll('.need, .tally a, .health-line')].filter((element) =>
  element.scrollWidth > element.clientWidth + 1).map((element) => `wide: ${element.innerText}`)
"""


async def test_the_browser_goes_on_counting_what_lasts(page: Page, seed: Seed) -> None:
    verdict(seed, seed.group("late", "PreparingRebalance"), "stuck", ms_ago=95_000)
    judged(seed)
    await page.clock.install()
    await page.goto("/")
    await page.get_by_role("button", name="Pause").click()
    since = page.locator(".need-since")
    await expect(since).to_have_text("for 1 min")
    await page.clock.run_for(60_000)
    await expect(since).to_have_text("for 2 min")


async def test_what_needs_attention_comes_worst_first_and_leads_to_the_group(page: Page, seed: Seed) -> None:
    troubled(seed)
    await page.get_by_role("link", name="Overview").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    needs = page.locator(".need")
    await expect(needs.locator("h4")).to_have_text([
        "payments-settlement", "clickstream.sessions.eu-central-1.production", "search-index", "mailing",
        "retired-importer", "thumbnails", "audit",
    ])  # fmt: skip
    await expect(page.locator(".cause")).to_have_text([
        "Uncovered 1", "Stalled 1", "Stuck 1", re.compile("^Late 2 *1 listed here$"), "Expiring 1", "Flapping 1",
        "Stale 1",
    ])  # fmt: skip
    await expect(page.get_by_text("7 of 8 groups need attention")).to_be_visible()
    await expect(needs.first).to_contain_text("Partitions 12 and 13 of orders have no owner.")
    await expect(needs.first.locator(".tag")).to_have_text("Late")
    await needs.nth(1).get_by_role("link").click()
    await expect(page).to_have_url(re.compile(r"/groups/clickstream[^/]*#offsets-title$"))
    await page.go_back()
    await page.get_by_role("link", name="Late 2").click()
    await expect(page.locator("tbody th")).to_have_text(["payments-settlement", "mailing"])
    await expect(page.get_by_label("Late")).to_be_checked()
    await page.get_by_label("Late").uncheck()
    await page.get_by_label("Stuck").check()
    await expect(page.locator("tbody th")).to_have_text(["search-index"])
    await expect(page).to_have_url(re.compile(r"/groups\?verdict=stuck$"))


async def test_a_new_verdict_shows_without_a_reload(page: Page, seed: Seed) -> None:
    pk = seed.group("billing")
    judged(seed)
    await page.goto("/")
    await expect(page.get_by_text("Nothing needs attention").first).to_be_visible()
    await page.get_by_role("heading", name="Health").evaluate("element => { element.kept = true }")
    verdict(seed, pk, "flapping", number=12)
    seed.changed("billing")
    await expect(page.locator(".need")).to_contain_text("12 rebalances within 10 min.")
    assert await page.get_by_role("heading", name="Health").evaluate("element => element.kept"), "no reload"


@pytest.fixture(scope="module")
def living(postgres: str) -> Iterator[tuple[Running, str, str]]:
    """A server with Celery that checks groups each second, its database, and a token."""
    with cloned_database(postgres) as conninfo, start_server(conninfo, env=QUICK) as server:
        make_user(conninfo)
        with start_worker(conninfo, env=QUICK), start_beat(conninfo, env=QUICK):
            server.wait_ready(timers=True)
            yield server, conninfo, make_token(conninfo)


@pytest.fixture
def worker(living: tuple[Running, str, str], request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A worker in a group named after the test, that has partitions and never commits."""
    server, _, token = living
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as client:
        client.post("/v1/topics", json={"name": "orders", "partitions": 2})
        popen = subprocess.Popen(
            [sys.executable, "-c", WORKER, server.url, token, request.node.name],
            cwd=ROOT, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            assert popen.stdout is not None
            for line in popen.stdout:
                if line.strip() == "2":
                    break
            assert popen.poll() is None, "the worker has ended"
            yield popen
        finally:
            popen.kill()
            popen.wait(10)


async def open_overview(browser: Browser, site: Running, wrongs: Wrongs) -> Page:
    """The landing page of somebody who has just signed in."""
    context = await open_context(browser, site)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    await page.goto("/")
    await sign_in(page)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    return page


async def test_a_frozen_worker_is_late_before_its_session_ends(
    browser: Browser, living: tuple[Running, str, str], worker: subprocess.Popen[str], wrongs: Wrongs,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    server, conninfo, _ = living
    page = await open_overview(browser, server, wrongs)
    worker.send_signal(signal.SIGSTOP)
    need = page.locator(".need", has_text=request.node.name)
    await expect(need).to_contain_text("sends no heartbeats", timeout=PATIENCE_MS)
    await expect(need).to_contain_text("The first loses its partitions in")
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(
            "select session_deadline > %s from groups_member m join groups_group g on g.id = m.group_id"
            " where g.group_id = %s",
            [now_ms(), request.node.name],
        ).fetchone()
    assert row == (True,), "its session has not ended"
    await need.get_by_role("link").click()
    await expect(page.locator(".verdicts")).to_contain_text("sends no heartbeats")
    await expect(page.locator("td .badge", has_text="Late")).to_have_count(1)
    worker.send_signal(signal.SIGCONT)
    await expect(page.locator(".verdicts")).to_have_count(0, timeout=PATIENCE_MS)
    await page.context.close()


async def test_a_worker_that_heartbeats_and_never_commits_is_stalled(
    browser: Browser, living: tuple[Running, str, str], worker: subprocess.Popen[str], wrongs: Wrongs,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    server, _, token = living
    page = await open_overview(browser, server, wrongs)
    need = page.locator(".need", has_text=request.node.name).filter(has_text="no progress")
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as client:
        for end in range(100, 100_000, 100):
            marks = [{"partition": p, "log_start_offset": 0, "log_end_offset": end} for p in (0, 1)]
            answer = client.post("/v1/topics/orders/watermarks", json={"partitions": marks})
            assert answer.status_code < 300, answer.text
            await page.wait_for_timeout(500)
            if await need.count():
                break
    await expect(need).to_contain_text("Partitions 0 and 1 of orders make no progress")
    await need.get_by_role("link").click()
    await expect(page.locator(".verdicts")).to_contain_text("Stalled")
    await page.locator(".tabs").get_by_role("link", name="Members").click()
    await expect(page.locator("td .badge", has_text="Active")).to_have_count(1)
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as client:
        group = client.get(f"/v1/groups?verdict=stalled&q={request.node.name}").json()["groups"]
        assert [line["group_id"] for line in group] == [request.node.name]
    await page.context.close()


async def test_the_page_is_readable_and_sound(page: Page, seed: Seed) -> None:
    await page.set_viewport_size(NARROW)
    await page.goto("/")
    await expect(page.get_by_role("heading", name="No groups yet")).to_be_visible()
    complaints = {"none": await audit_in_every_look(page, "overview-none")}
    troubled(seed)
    for name, address in (("overview", "/"), ("list", "/groups?verdict=late")):
        await page.goto(address)
        complaints[name] = await audit_in_every_look(page, f"overview-{name}", CLIPPED)
    assert {name: found for name, found in complaints.items() if found} == {}
