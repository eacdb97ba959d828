"""Labels of groups in a browser: the pages in every look, and a label from its form to the list."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from psycopg.types.json import Jsonb

from tests.browser.audit import audit_in_every_look
from tests.frontend.seed import Seed, working_group
from tests.frontend.verdict_seed import troubled

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

LABELS = {
    "owner": "payments",
    "team": "money",
    "contact": "https://chat.example.com/channels/payments-on-call",
    "runbook": "https://wiki.example.com/teams/payments/runbooks/billing-consumer-is-late",
    "cost-center": "4711",
    "critical": "",
    "description": "reads orders, and writes bills to a table that the accountants look at every morning " * 2,
}


def label(seed: Seed, group_id: str) -> None:
    """Give a group labels."""
    seed.connection.execute(
        "insert into groups_grouplabels (group_name, labels, updated_at, updated_by) values (%s, %s, 0, 'ann')",
        [group_id, Jsonb(LABELS)],
    )


async def test_pages_with_labels(page: Page, seed: Seed) -> None:
    working_group(seed)
    label(seed, "billing")
    wrong = []
    for name, path in (
        ("labels-head", "/groups/billing"),
        ("labels-form", "/groups/billing/labels"),
        ("labels-config", "/groups/billing/config"),
        ("labels-list", "/groups?columns=state.topics.owner.labels"),
        ("labels-bulk", "/group-actions?act=labels&group=billing"),
    ):
        await page.goto(path)
        wrong += [f"{name}: {text}" for text in await audit_in_every_look(page, name)]
    assert wrong == []


async def test_the_overview_says_whom_to_call(page: Page, seed: Seed) -> None:
    troubled(seed)
    judged = "select distinct g.group_id from offsets_groupverdict v join groups_group g on g.id = v.group_id"
    for (group_id,) in seed.connection.execute(judged).fetchall():
        label(seed, group_id)
    await page.goto("/")
    assert await audit_in_every_look(page, "labels-overview") == []


async def test_a_label_from_the_form_to_the_list(page: Page, seed: Seed) -> None:
    working_group(seed)
    await page.goto("/groups/billing")
    await page.get_by_role("link", name="Add labels").click()
    await page.get_by_label("owner", exact=True).fill("payments")
    await page.get_by_label("Name of label 1").fill("zone")
    await page.get_by_label("Value of label 1").fill("b")
    await page.get_by_role("button", name="Save labels").click()
    await expect(page.get_by_text("Changed owner and zone.")).to_be_visible()
    await page.get_by_role("link", name="Back to the group").click()
    await page.get_by_role("link", name="owner", exact=True).click()
    await expect(page).to_have_url("/groups?label=owner%3Dpayments")
    await expect(page.get_by_role("link", name="billing", exact=True)).to_be_visible()
