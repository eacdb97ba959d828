"""Alerts in real Chromium: a rule from the page of a group, a mute, and the pages in every look."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.audit import audit_in_every_look
from tests.browser.conftest import Wrongs
from tests.frontend.alert_seed import HOUR, put_alert, put_message, put_rule
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.verdict_seed import verdict

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

BOUND_MS = 20_000
"""How long a refresh may take to show on a busy machine."""


def many(seed: Seed) -> int:
    """50 alerts of all kinds, rules and messages; returns the id of a rule."""
    now, first = now_ms(), put_rule(seed.connection, min_time_lag_ms=600_000, receivers=["oncall", "chat"])
    put_rule(seed.connection, "a rule with a name that is longer than its column is wide", group_name="", enabled=False)
    kinds = ("stuck", None), ("lag", 12_345), ("time-lag", 4_000_000), ("flapping", None), ("stale", None)
    for number in range(50):
        cause, value = kinds[number % 5]
        put_alert(
            seed.connection,
            first,
            f"billing-invoices-of-the-region-{number:02}" + "-and-more" * (number % 7),
            at=now - number * HOUR,
            cause=cause,
            value=value,
            muted_until=now + HOUR if number % 6 == 1 else None,
            over_since=now if number % 6 == 2 else None,
            told=number % 6 != 1,
        )
    put_alert(seed.connection, first, "billing", at=now - HOUR, resolved_at=now)
    put_message(seed.connection, "oncall", at=now)
    put_message(seed.connection, "chat", at=now, sent=False, next_at=now + HOUR, error="the answer was 500", attempts=2)
    return first


async def test_the_pages_are_sound_in_every_look(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    wrongs.expected = ["the server responded with a status of 400"]
    for address, name in (("/alerts", "alerts-empty"), ("/alerts/rules/new", "alert-rule-new")):
        await page.goto(address)
        assert await audit_in_every_look(page, name) == []
    rule = many(seed)
    for address, name in (("/alerts", "alerts-many"), (f"/alerts/rules/{rule}", "alert-rule")):
        await page.goto(address)
        assert await audit_in_every_look(page, name) == []
    for number in range(14):
        verdict(seed, seed.group(f"billing-invoices-of-region-{number:02}"), "stuck", ms_ago=HOUR)
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_text("It is about 14 groups now.")).to_be_visible()
    assert await audit_in_every_look(page, "alert-rule-preview") == []
    await page.get_by_label("After it has lasted").fill("soon")
    await page.get_by_role("button", name="Save rule").click()
    await expect(page.get_by_text("Write a length such as 5 min")).to_be_visible()
    assert await audit_in_every_look(page, "alert-rule-refused") == []


async def test_a_rule_is_made_from_the_page_of_a_group(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups/billing")
    await page.get_by_text("Actions", exact=True).click()
    await page.get_by_role("link", name="Alert on this…").click()
    await expect(page.get_by_label("Group id, or its beginning")).to_have_value("billing")
    await page.get_by_role("checkbox", name="oncall").check()
    await page.get_by_role("button", name="Create rule").click()
    await expect(page.get_by_text("Made the rule billing.")).to_be_visible()
    row = seed.connection.execute("select id from offsets_alertrule").fetchone()
    assert row is not None
    put_alert(seed.connection, row[0], "billing", at=now_ms())
    await page.goto("/alerts")
    await page.get_by_label("How long billing is muted").select_option("8 hours")
    await page.get_by_role("button", name="Mute billing").click()
    await expect(page.get_by_text("Alerts on billing are muted for 8 hours.")).to_be_visible()
    await page.get_by_role("button", name="End the mute").click()
    await expect(page.get_by_role("button", name="Mute billing")).to_be_visible()


async def test_the_page_follows_what_happens_and_keeps_what_is_being_chosen(page: Page, seed: Seed) -> None:
    rule = put_rule(seed.connection)
    put_alert(seed.connection, rule, "billing-a", at=now_ms())
    await page.goto("/alerts")
    await expect(page.locator("#live-status")).to_have_text("Live")
    await page.get_by_label("How long billing-a is muted").select_option("8 hours")
    await page.get_by_label("Group", exact=True).fill("bil")
    put_alert(seed.connection, rule, "billing-b", at=now_ms())
    put_alert(seed.connection, rule, "billing-c", at=now_ms(), resolved_at=now_ms())
    seed.changed("billing-b")
    await expect(page.get_by_role("link", name="billing-b")).to_be_visible(timeout=BOUND_MS)
    await expect(page.get_by_label("Resolved alerts").get_by_role("link", name="billing-c")).to_be_visible()
    await expect(page.locator("[aria-live=polite]")).to_have_text("2 alerts are open")
    await expect(page.get_by_label("How long billing-a is muted")).to_have_value(str(8 * HOUR))
    await expect(page.get_by_label("Group", exact=True)).to_have_value("bil")


async def test_a_refusal_stays_when_the_page_is_fetched_again(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    wrongs.expected = ["the server responded with a status of 404"]
    alert = put_alert(seed.connection, put_rule(seed.connection), "billing", at=now_ms())
    await page.goto("/alerts")
    seed.connection.execute("delete from offsets_alert where id = %s", [alert])
    await page.get_by_role("button", name="Mute billing").click()
    await expect(page.get_by_role("alert")).to_contain_text(f"there is no alert {alert}")
    await expect(page.locator("#live-status")).to_have_text("Live")
    async with page.expect_response(lambda answer: answer.url.endswith("/alerts"), timeout=BOUND_MS) as fetched:
        seed.changed("billing")
    await (await fetched.value).finished()
    await expect(page.get_by_role("heading", name="No alert is open")).to_be_visible()
    heading, refusal = page.get_by_role("heading", name="Alerts", exact=True), page.get_by_role("alert")
    above, below = await refusal.bounding_box(), await heading.bounding_box()
    assert above
    assert below
    assert above["y"] + above["height"] + 8 <= below["y"], "it does not touch the heading"
    await expect(page.get_by_role("alert")).to_contain_text(f"there is no alert {alert}")


async def test_a_receiver_is_added_tested_and_deleted(page: Page, seed: Seed, wrongs: Wrongs) -> None:
    """Also that the page, which is fetched again all the time, keeps what is being typed."""
    wrongs.expected = ["the server responded with a status of 400"]
    await page.goto("/alerts")
    await page.get_by_label("Name").fill("hook")
    await page.get_by_label("Kind").select_option("Webhook: a program")
    await page.get_by_label("Address").fill("ftp://ops.example")
    put_alert(seed.connection, put_rule(seed.connection), "billing", at=now_ms())
    seed.changed("billing")
    await expect(page.get_by_role("link", name="billing", exact=True)).to_be_visible(timeout=BOUND_MS)
    await expect(page.get_by_label("Address")).to_have_value("ftp://ops.example")
    await page.get_by_role("button", name="Add receiver").click()
    await expect(page.get_by_role("alert")).to_contain_text("webhook is not an http or https address")
    await expect(page.get_by_label("Name")).to_have_value("hook")
    await expect(page.get_by_label("Address")).to_have_value("")
    await page.get_by_label("Address").fill("http://127.0.0.1:9/")
    await page.get_by_label("Secret of the webhook").fill("a shared secret")
    await page.get_by_role("button", name="Add receiver").click()
    await expect(page.get_by_text("Added hook. Send it a test.")).to_be_visible()
    assert await audit_in_every_look(page, "alerts-receivers") == []
    await page.get_by_role("button", name="Send a test to hook").click()
    await expect(page.get_by_role("alert")).to_contain_text("The test to hook was not taken")
    await page.get_by_role("button", name="Delete hook").click()
    await expect(page.get_by_role("button", name="Delete hook")).to_be_visible()
    await page.get_by_role("checkbox", name="delete hook").check()
    await page.get_by_role("button", name="Delete hook").click()
    await expect(page.get_by_text("Deleted hook.")).to_be_visible()
