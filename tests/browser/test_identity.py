"""Sign-in at an identity provider in real Chromium: there and back, under the content policy, by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from playwright.async_api import Browser, expect

from tests.browser.audit import audit
from tests.browser.conftest import Wrongs, open_context, sign_out, watch
from tests.support.database import cloned_database
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, Provider, identity_provider
from tests.support.processes import Running, start_server


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """The provider."""
    with identity_provider() as found:
        yield found


@pytest.fixture(scope="module")
def joined(postgres: str, provider: Provider) -> Iterator[tuple[Running, str]]:
    """A server that uses it, and its database."""
    with cloned_database(postgres) as conninfo:
        env = {
            "KCOORD_OIDC_ISSUER": provider.issuer,
            "KCOORD_OIDC_CLIENT_ID": CLIENT_ID,
            "KCOORD_OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "KCOORD_OIDC_ALLOWED_GROUPS": "kafka",
            "KCOORD_OIDC_GROUP_MAP": "kafka=operators",
            "KCOORD_OIDC_LABEL": "Example Corp",
            "KCOORD_OIDC_SIGN_OUT": "always",
        }
        with start_server(conninfo, env=env) as server:
            server.wait_ready()
            yield server, conninfo


async def test_a_person_signs_in_at_the_provider_and_lands_where_they_wanted(
    browser: Browser, joined: tuple[Running, str], provider: Provider, wrongs: Wrongs
) -> None:
    server, conninfo = joined
    provider.order(person={"sub": "1", "preferred_username": "ines", "groups": ["kafka"]})
    context = await open_context(browser, server)
    page = await context.new_page()
    watch(page, server.url, wrongs)
    wrongs.expected.append(f"asks {provider.issuer}/authorize")
    await page.goto("/groups?q=bill")
    button = page.get_by_role("link", name="Sign in with Example Corp")
    for _ in range(5):
        if await button.evaluate("element => element === document.activeElement"):
            break
        await page.keyboard.press("Tab")
    await expect(button).to_be_focused()
    before = {cookie["name"]: cookie["value"] for cookie in await context.cookies()}
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{server.url}/groups?q=bill")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    after = {cookie["name"]: cookie for cookie in await context.cookies()}
    assert after["sessionid"]["value"] != before.get("sessionid")
    assert (after["sessionid"]["httpOnly"], after["sessionid"]["sameSite"]) == (True, "Lax")
    with psycopg.connect(conninfo) as connection:
        found = connection.execute(
            "select u.username, g.name from auth_user u join auth_user_groups ug on ug.user_id = u.id"
            " join auth_group g on g.id = ug.group_id"
        ).fetchall()
    assert found == [("ines", "operators")]
    # Nothing that could be used again is in the log.
    for secret in (CLIENT_SECRET, "code=", after["sessionid"]["value"]):
        assert secret not in server.output
    await context.close()


async def test_a_person_signs_out_here_and_at_the_provider(
    browser: Browser, joined: tuple[Running, str], provider: Provider, wrongs: Wrongs
) -> None:
    """The button is a form, which the content policy lets send nobody to another origin, and the browser obeys it."""
    server, _ = joined
    person = {"sub": "77", "preferred_username": "tilda", "groups": ["kafka"]}
    provider.order(person=person, registered="/nowhere")
    context = await open_context(browser, server)
    page = await context.new_page()
    watch(page, server.url, wrongs)
    wrongs.expected += [f"asks {provider.issuer}/authorize", f"asks {provider.issuer}/sign-out", "400"]
    await page.goto("/sign-in/provider?next=/topics")
    before = provider.ended()
    await sign_out(page)
    await expect(page.get_by_text("address not registered")).to_be_visible()
    assert page.url.startswith(f"{provider.issuer}/sign-out?")
    # The provider did not do it. Here the session has ended all the same, and there is a link to try again.
    await page.goto("/topics")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.goto("/signed-out")
    await expect(page.get_by_role("status")).to_contain_text("you may still be signed in with Example Corp")
    assert await audit(page) == []
    provider.order(person=person)
    await page.get_by_role("link", name="Sign out of Example Corp").click()
    await expect(page.get_by_role("status")).to_have_text("You are signed out here and of Example Corp.")
    assert provider.ended() == [*before, "77"]
    assert await audit(page) == []
    # Once more, without an error at the provider: nobody has to click anything else.
    await page.get_by_role("link", name="Sign in again").click()
    await page.get_by_role("link", name="Sign in with Example Corp").click()
    await sign_out(page)
    await expect(page.get_by_role("status")).to_have_text("You are signed out here and of Example Corp.")
    assert provider.ended() == [*before, "77", "77"]
    assert "id_token_hint" not in server.output
    await context.close()


async def test_somebody_who_is_not_let_in_reads_what_an_administrator_has_to_do(
    browser: Browser, joined: tuple[Running, str], provider: Provider, wrongs: Wrongs
) -> None:
    server, _ = joined
    provider.order(person={"sub": "2", "preferred_username": "oskar", "groups": ["sales"]})
    context = await open_context(browser, server)
    page = await context.new_page()
    watch(page, server.url, wrongs)
    wrongs.expected += [f"asks {provider.issuer}/authorize", "403"]
    await page.goto("/sign-in")
    await page.get_by_role("link", name="Sign in with Example Corp").click()
    await expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
    await expect(page.get_by_text("KCOORD_OIDC_ALLOWED_GROUPS")).to_be_visible()
    reference = await page.locator("code").last.inner_text()
    refused = [line for line in server.output.splitlines() if "identity_refused" in line]
    assert len(refused) == 1
    assert reference in refused[0]
    assert "NOT_ALLOWED" in refused[0]
    await page.get_by_role("link", name="Back to sign-in").click()
    await expect(page).to_have_url(re.compile("/sign-in$"))
    await context.close()


async def test_a_password_still_opens_the_form_with_its_error(
    browser: Browser, joined: tuple[Running, str], wrongs: Wrongs
) -> None:
    server, _ = joined
    context = await open_context(browser, server)
    page = await context.new_page()
    watch(page, server.url, wrongs)
    await page.goto("/sign-in")
    await expect(page.get_by_label("User name")).to_be_hidden()
    await page.get_by_text("Sign in with a password").click()
    await page.get_by_label("User name").fill("mara")
    await page.get_by_label("Password", exact=True).fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_have_text("Wrong user name or password. Both are case-sensitive.")
    await expect(page.get_by_label("User name")).to_be_visible()
    await context.close()
