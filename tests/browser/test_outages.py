"""What a page says when its server or its database falls silent: frozen as well as killed, and back again.

Times are taken by the page's clock, from just before the signal until the mark has changed. A busy machine makes them
longer; the promise has seconds left.
"""

from __future__ import annotations

import contextlib
import re
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from kcoord.database import liveness, notifications
from tests.browser.audit import audit
from tests.browser.conftest import Wrongs, open_context, sign_in, watch
from tests.frontend.seed import Seed
from tests.support.accounts import make_user
from tests.support.database import ROOT
from tests.support.postgres import OwnPostgres, own_postgres
from tests.support.processes import Running, start, start_server

pytestmark = [pytest.mark.browser, pytest.mark.whole("waits for what a page promises of a server that is silent")]

BOUND_MS = 40_000
"""How long to wait for what must happen; not a measure."""
MARK_SECONDS = 10.0
PAGE_SECONDS = 8.0
AS_OF = re.compile(r"as of \d\d:\d\d:\d\d")
OUTAGE = ["Failed to load resource", "htmx: htmx:", "Failed to fetch", "network error", "ERR_", "timeout"]
RECORD = """
window.marks = [];
new MutationObserver(() => {
  const state = document.getElementById("live-status").dataset.state;
  if (window.marks.at(-1)?.[0] !== state) window.marks.push([state, Date.now()]);
}).observe(document.getElementById("live-status"), {attributes: true});
void 0
"""


@pytest.fixture(autouse=True)
def _bounds(wrongs: Wrongs) -> None:
    expect.set_options(timeout=BOUND_MS)
    wrongs.expected = [*OUTAGE]


async def live(page: Page) -> None:
    """Wait until the page says it is live, and shows nothing else."""
    await expect(page.locator("#live-status")).to_have_text("Live")
    await expect(page.locator("#live-banner")).to_be_hidden()
    await expect(page.locator("#panel.past")).to_have_count(0)


async def shows_the_past(page: Page, state: str, banner: str, began: float) -> None:
    """The mark, its banner and the grey panel; the first two in time."""
    await expect(page.locator("#live-status")).to_have_attribute("data-state", state)
    await expect(page.locator("#live-status")).to_have_text(AS_OF)
    await expect(page.locator("#live-banner")).to_contain_text(banner)
    await expect(page.locator("#live-banner")).to_have_text(AS_OF)
    await expect(page.locator("#panel.past")).to_have_count(1)
    taken = {name: (at - began) / 1000 for name, at in reversed(await page.evaluate("window.marks"))}
    print(f"{state}: {taken[state]:.1f} s")
    assert taken[state] < MARK_SECONDS, taken


@dataclass
class Supervised:
    """A server whose socket stays open when it ends, as behind the supervisor."""

    listener: socket.socket
    database: str
    server: Running

    def restart(self) -> None:
        """Start it again."""
        self.server.close()
        self.server = start("server", self.arguments(self.listener), self.database, None, self.listener)
        self.server.wait_ready()

    @staticmethod
    def arguments(listener: socket.socket) -> list[str]:
        """What runs."""
        return ["-m", "kcoord.stack.server", "--fd", str(listener.fileno())]


@pytest.fixture
def supervised(site_database: str) -> Iterator[Supervised]:
    """A second server on the database of the site."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = Supervised.arguments(listener)
        made = Supervised(listener, site_database, start("server", arguments, site_database, None, listener))
        try:
            made.server.wait_ready()
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError):
                made.server.send(signal.SIGCONT)
            made.server.close()


@pytest_asyncio.fixture(loop_scope="session")
async def watched(page: Page, supervised: Supervised, wrongs: Wrongs) -> AsyncIterator[Page]:
    """The list of groups, live, from that server."""
    url = supervised.server.url
    wrongs.expected.append(f"asks {url}/")
    cookies = await page.context.cookies()
    await page.context.add_cookies([{"name": c["name"], "value": c["value"], "url": url} for c in cookies])
    await page.goto(f"{url}/groups")
    await live(page)
    await page.evaluate(RECORD)
    yield page
    await page.goto("about:blank")


async def test_a_frozen_server(watched: Page, supervised: Supervised, seed: Seed) -> None:
    began = await watched.evaluate("Date.now()")
    supervised.server.send(signal.SIGSTOP)
    await shows_the_past(watched, "off", "The server does not answer.", began)
    seed.group("made-meanwhile")
    supervised.server.send(signal.SIGCONT)
    await live(watched)
    await expect(watched.get_by_role("link", name="made-meanwhile")).to_be_visible()


async def test_a_server_that_died_while_its_socket_is_open(watched: Page, supervised: Supervised, seed: Seed) -> None:
    """Connections are taken by the kernel, and nobody answers."""
    began = await watched.evaluate("Date.now()")
    supervised.server.kill()
    await shows_the_past(watched, "off", "The server does not answer.", began)
    seed.group("made-meanwhile")
    supervised.restart()
    await live(watched)
    await expect(watched.get_by_role("link", name="made-meanwhile")).to_be_visible()


@pytest.fixture(scope="module")
def silent() -> Iterator[OwnPostgres]:
    """A database that may be frozen."""
    with own_postgres() as own:
        yield own


@pytest.fixture(scope="module")
def silent_site(silent: OwnPostgres) -> Iterator[Running]:
    """Its server."""
    with start_server(silent.conninfo) as server:
        make_user(silent.conninfo)
        server.wait_ready()
        yield server


async def signed_in(browser: Browser, site: Running, wrongs: Wrongs, **options: object) -> Page:
    """The list of groups from that server."""
    page = await (await open_context(browser, site, **options)).new_page()
    watch(page, site.url, wrongs)
    await page.goto("/groups")
    await sign_in(page)
    return page


async def test_a_frozen_database(browser: Browser, silent: OwnPostgres, silent_site: Running, wrongs: Wrongs) -> None:
    page = await signed_in(browser, silent_site, wrongs)
    await live(page)
    await page.evaluate(RECORD)
    began = await page.evaluate("Date.now()")
    with silent.frozen():
        await shows_the_past(page, "stale", "The server has lost its connection to the database.", began)
        await expect(page.get_by_role("heading", name="No groups yet")).to_be_visible()
        await expect(page.locator("#live-banner")).to_be_visible()
        assert await audit(page) == []
    await live(page)
    await page.context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("address", ["/groups", "/admin/groups/group/"])
async def test_a_page_that_is_opened_then_says_so_soon_and_tries_again(
    browser: Browser, silent: OwnPostgres, silent_site: Running, wrongs: Wrongs, address: str, scripts: bool
) -> None:
    page = await signed_in(browser, silent_site, wrongs, java_script_enabled=scripts)
    with silent.frozen():
        answer = await page.goto(address, timeout=BOUND_MS, wait_until="commit")
        assert answer is not None
        assert answer.status == 503
        taken = answer.request.timing["responseStart"] / 1000
        print(f"{address}: {taken:.1f} s")
        assert taken < PAGE_SECONDS
        await expect(page.get_by_role("heading", level=1)).to_have_text("Temporarily unavailable")
        if scripts:
            assert await audit(page) == []
    await expect(page.get_by_role("heading", name=re.compile("Temporarily"))).to_have_count(0)
    await expect(page).to_have_title(re.compile("Groups|group"))
    assert page.url.endswith(address)
    await page.context.close()


def test_the_parts_of_the_promise_leave_some_of_it() -> None:
    """The server loses LISTEN after a ping and its limit, and tells pages at once."""
    assert notifications.PING_SECONDS + liveness.ANSWER_SECONDS <= MARK_SECONDS - 3


LINK = {"connected": True, "before": True, "since": 0, "due": 0, "listening": True}
PANEL = {"asked": 0, "failed": "", "answered": 0}
LOST = {"connected": False}
NEVER = {"connected": False, "before": False}
SAID = [
    (0, {}, {}, "on"),
    (99_000, {}, {}, "on"),
    (7_900, {}, {"asked": 1}, "on"),
    (8_100, {}, {"asked": 1}, "stale"),
    (0, {}, {"failed": "The server could not make this page (500)."}, "stale"),
    (0, {"listening": False}, {}, "stale"),
    (4_900, NEVER, {}, "wait"),
    (5_100, NEVER, {}, "off"),
    (1_900, LOST, {}, "on"),
    (2_100, LOST, {}, "wait"),
    (5_100, LOST, {}, "off"),
    # The server answers requests: what it answered since, or what it is still answering in its time.
    (9_000, LOST, {"answered": 3_000}, "stale"),
    (10_100, LOST, {"answered": 3_000}, "off"),
    (15_000, LOST, {"answered": 3_000, "asked": 8_000}, "stale"),
    (17_100, LOST, {"answered": 3_000, "asked": 8_000}, "off"),
    # An answer from before the beat that did not come says nothing.
    (7_500, {**LOST, "due": 3_500}, {"answered": 3_000}, "off"),
]
"""A time in ms, what is different about the link and the panel, and what the mark then says."""


async def test_what_the_mark_says(browser: Browser) -> None:
    page = await browser.new_page()
    await page.evaluate((ROOT / "frontend/static/frontend/live-state.js").read_text())
    told = [
        await page.evaluate("(a) => kcoordState.of(...a).name", [now, {**LINK, **link}, {**PANEL, **panel}])
        for now, link, panel, _ in SAID
    ]
    assert told == [wanted for *_, wanted in SAID]
    await page.close()
