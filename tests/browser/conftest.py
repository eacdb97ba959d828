"""A server process on a database of its own, and real Chromium looking at it.

Whatever a page does wrong without showing it (an error in the console, a request to another host, something the
content policy refuses) is collected and fails the test.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, ViewportSize, async_playwright

from kcoord.setting_table import RECEIVERS_FILE
from tests.conftest import TABLES, emptied
from tests.frontend.alert_seed import told
from tests.frontend.seed import Seed
from tests.support.accounts import PASSWORD, USER, make_user
from tests.support.database import cloned_database
from tests.support.processes import Running, start_server

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
OF_THE_SERVER = {
    "groups_coordinatornode", "groups_coordinatorpartition", "kcoord_auditpending", "kcoord_auditrecord",
    "kcoord_timerheartbeat",
}  # fmt: skip
"""Tables that a running server would miss."""
EMPTIED = emptied(
    [table for table in TABLES if table not in OF_THE_SERVER], ["frontend_signinattempt", "frontend_savedview"]
)


NARROW: ViewportSize = {"width": 390, "height": 900}
"""What is clicked in between has to be reached there too."""
VIOLATIONS = (
    "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.blockedURI))"
)
_cookies: dict[str, Any] = {}
"""The session of the account at each server, by its address: checking a password takes half a second."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a worker share one browser, and so its event loop."""
    for item in items:
        if item.nodeid.startswith("tests/browser/") and inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def site_database(postgres: str) -> Iterator[str]:
    """The database of the server that the browser talks to."""
    with cloned_database(postgres) as conninfo:
        yield conninfo


@pytest.fixture(scope="session")
def archive_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the server's archive."""
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="session")
def services_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that names other services; it names none."""
    path = tmp_path_factory.mktemp("services") / "services.toml"
    path.touch(0o600)
    return path


@pytest.fixture(scope="session")
def site(
    site_database: str, archive_folder: Path, services_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A running server with one account, and receivers of alerts."""
    receivers = told(tmp_path_factory.mktemp("receivers"))[RECEIVERS_FILE]
    env = {
        "KCOORD_ARCHIVE_PATH": archive_folder,
        "KCOORD_ALERTS_RECEIVERS_FILE": receivers,
        "KCOORD_DASHBOARD_SERVICES_FILE": services_file,
    }
    with start_server(site_database, env=env) as server:
        make_user(site_database)
        server.wait_ready()
        yield server


@pytest.fixture
def seed(site_database: str) -> Iterator[Seed]:
    """Writes rows into the server's database, which is empty."""
    with psycopg.connect(site_database, autocommit=True) as connection:
        _empty(connection)
        yield Seed(connection)


def _empty(connection: psycopg.Connection, tries: int = 5) -> None:
    """The server goes on reading, in an order of its own: whichever Postgres ends in a deadlock tries again."""
    for left in reversed(range(tries)):
        try:
            connection.execute(EMPTIED)
        except psycopg.errors.DeadlockDetected:
            if not left:
                raise
        else:
            return


@dataclass
class Wrongs:
    """What pages did wrong. `expected` holds parts of messages that a test brings about on purpose."""

    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Note a wrong."""
        self.found.append(text)

    def unexpected(self) -> list[str]:
        """The wrongs that the test did not bring about."""
        return [text for text in self.found if not any(part in text for part in self.expected)]


@dataclass
class Launcher:
    """Starts Chromium when it is first wanted, and again if a test brought it down."""

    playwright: Playwright
    path: str
    running: Browser | None = None

    async def browser(self) -> Browser:
        """One that runs."""
        if self.running is None or not self.running.is_connected():
            self.running = await self.playwright.chromium.launch(executable_path=self.path, args=ARGUMENTS)
        return self.running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def launcher(chromium: str) -> AsyncIterator[Launcher]:
    """The one browser of this worker: starting it takes longer than most tests."""
    async with async_playwright() as playwright:
        launched = Launcher(playwright, chromium)
        yield launched
        if launched.running is not None:
            await launched.running.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser(launcher: Launcher) -> AsyncIterator[Browser]:
    """Chromium, without the windows that a test leaves open."""
    running = await launcher.browser()
    yield running
    for context in running.contexts:
        await context.close()


@pytest.fixture
def wrongs() -> Iterator[Wrongs]:
    """Collects what pages do wrong, and fails the test for it."""
    collected = Wrongs()
    yield collected
    assert collected.unexpected() == []


def watch(page: Page, url: str, wrongs: Wrongs) -> None:
    """Collect what a page does wrong."""
    page.on("console", lambda message: wrongs.add(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: wrongs.add(f"exception: {error}"))
    page.on(
        "request",
        lambda request: None if request.url.startswith((f"{url}/", "data:")) else wrongs.add(f"asks {request.url}"),
    )


async def open_context(browser: Browser, site: Running, **options: object) -> BrowserContext:
    """A browser window's worth of state."""
    given = {"viewport": {"width": 1440, "height": 900}, "base_url": site.url, **options}
    return await browser.new_context(**given)  # type: ignore[arg-type]


async def sign_in(page: Page) -> None:
    """Sign in from the page that asks for it, with the session of an earlier test if it still lasts."""
    asked = urlsplit(page.url)
    site = f"{asked.scheme}://{asked.netloc}"
    if site in _cookies:
        await page.context.add_cookies(_cookies[site])
        await page.goto(parse_qs(asked.query).get("next", ["/"])[0])
        if urlsplit(page.url).path != asked.path:
            return
    await page.get_by_label("User name").fill(USER)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_load_state()
    _cookies[site] = await page.context.cookies()


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(browser: Browser, site: Running, seed: Seed, wrongs: Wrongs) -> AsyncIterator[Page]:
    """A page of somebody who has not signed in."""
    context = await open_context(browser, site)
    await context.add_init_script(VIOLATIONS)
    page = await context.new_page()
    watch(page, site.url, wrongs)
    yield page
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(stranger: Page, site: Running) -> Page:
    """A page of somebody who has signed in; it shows the list of groups."""
    await enter(stranger, site, "/groups")
    return stranger


async def enter(page: Page, site: Running, path: str) -> None:
    """Go to a page as somebody who has signed in, in an earlier test or now."""
    await page.context.add_cookies(_cookies.get(site.url, []))
    await page.goto(path)
    if urlsplit(page.url).path != path:
        await sign_in(page)


async def sign_out(page: Page) -> None:
    """By the menu of the account."""
    await page.locator("#account summary").click()
    await page.get_by_role("button", name="Sign out").click()


async def choose_page(page: Page, name: str) -> None:
    """Follow a link of the navigation, which is in a menu where windows are narrow."""
    menu = page.get_by_role("button", name="Menu", exact=True)
    if await menu.is_visible():
        await menu.click()
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True).click()
