"""The map of partitions in a browser: its legend filters by mouse and keys, and its colours differ in shape."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from frontend.pages.group.map import COLOURS, LOOKS
from tests.browser.audit import audit
from tests.frontend.seed import Seed, member_id, reconciling_group

pytestmark = [pytest.mark.browser, pytest.mark.whole("the stories meet the browser; this is one part of the pages")]

SHAPES = """
(classes) => {
  const plain = (text) => text.replace(/(oklch|rgb|color)\\((?:[^()]|\\([^()]*\\))*\\)/g, "c");
  return classes.map((name) => {
    const cell = document.createElement("span");
    cell.className = `cell ${name}`;
    document.querySelector(".cells").append(cell);
    const {backgroundImage, backgroundSize, borderRadius} = getComputedStyle(cell);
    const shape = plain(`${backgroundImage} ${backgroundSize} ${borderRadius}`);
    cell.remove();
    return shape;
  });
}
"""
"""How cells look with all colours the same."""


def dozen(seed: Seed) -> list[str]:
    members = [member_id("dozen", number) for number in range(COLOURS)]
    pk = seed.group("dozen")
    seed.members(pk, members, client_id="dozen")
    seed.topic("clicks", 30, [900] * 30)
    seed.assign(pk, {("clicks", p): members[p % COLOURS] for p in range(29)})
    seed.commit(pk, {("clicks", p): 800 for p in range(30)})
    return members


async def test_the_legend_filters_by_mouse_and_keys(page: Page, seed: Seed) -> None:
    members = dozen(seed)
    await page.goto("/groups/dozen")
    legend = page.get_by_role("list", name="Show only")
    await legend.get_by_role("link", name="dozen@10.0.0.2").first.click()
    await expect(page.locator(".cell:not(.dim)")).to_have_text(["1", "13", "25"])
    await expect(page).to_have_url(re.compile(rf"\?owner={members[1]}$"))
    assert await audit(page) == []
    unowned = legend.get_by_role("link", name="no owner")
    await page.get_by_role("link", name="Clear").click()
    await expect(page.locator(".cell.dim")).to_have_count(0)
    await unowned.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".cell:not(.dim)")).to_have_text(["29"])
    await unowned.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".cell.dim")).to_have_count(0)
    await page.get_by_label("Partition", exact=True).fill("7")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("list", name="Partition 7")).to_contain_text("dozen@10.0.0.8")
    await page.get_by_role("link", name="Lag", exact=True).click()
    await expect(page.locator(".cell:not(.dim)")).to_have_class(re.compile(r"\bl1\b"))
    assert await audit(page) == []


async def test_cells_differ_in_shape_as_well(page: Page, seed: Seed) -> None:
    reconciling_group(seed)
    await page.goto("/groups/ledger")
    for classes in ([f"o{number}" for number in range(COLOURS)] + ["free"], [look for look, _ in LOOKS]):
        shapes = await page.evaluate(SHAPES, classes)
        assert len(set(shapes)) == len(classes), dict(zip(classes, shapes, strict=True))
