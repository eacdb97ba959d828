"""What is wrong with a page for a screen reader, a keyboard and weak eyes: our own checks (audit.js) and axe's."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.async_api import Page

HERE = Path(__file__).parent
OWN = (HERE / "audit.js").read_text()
AXE = (HERE / "vendor/axe-core-4.14.1/axe.min.js").read_text()
RUN = """
async (contrast) => {
  const rules = {"label-content-name-mismatch": {enabled: true}, "color-contrast": {enabled: contrast}};
  const found = await axe.run(document, {resultTypes: ["violations"], selectors: false, rules});
  return found.violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`));
}
"""
LOOKS = ((1440, "light"), (1440, "dark"), (390, "dark"), (390, "light"))
"""Widths in pixels and colours, in which every page is looked at."""
WITH_AXE = {(1440, "light"), (390, "dark")}
"""Looks in which axe is run: each width and each colour once. Our own checks, contrast among them, are in all looks."""
PICTURES = os.environ.get("PICTURES")
"""A folder: the looks are kept in it, for somebody to look at."""


async def axe(page: Page, *, contrast: bool = False) -> list[str]:
    """What axe finds, with its best practices and the rule for labels that is off by default.

    `contrast`: whether it looks for that too. It is two thirds of its work, and our own checks do so in every look.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found: list[str] = await page.evaluate(RUN, contrast)
    return found


async def audit(page: Page) -> list[str]:
    """All that is wrong with one of our pages as it is now."""
    own: list[str] = await page.evaluate(OWN)
    return own + await axe(page)


async def audit_in_every_look(page: Page, name: str = "", *also: str, contrast: bool = False) -> list[str]:
    """All that is wrong with one of our pages, narrow and wide, light and dark. The page stays as it is.

    `name`: of its pictures, if `PICTURES` names a folder. `also`: further scripts that return complaints.
    `contrast`: as for `axe`.
    """
    complaints = []
    before = page.viewport_size
    assert before is not None
    for width, scheme in LOOKS:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found: list[str] = await page.evaluate(OWN)
        if (width, scheme) in WITH_AXE:
            found += await axe(page, contrast=contrast)
        for script in also:
            found += await page.evaluate(script)
        complaints += [f"{width} {scheme}: {text}" for text in found]
        if name:
            await picture(page, f"{name}-{width}-{scheme}")
    await page.set_viewport_size(before)
    await page.emulate_media(color_scheme="light")
    return complaints


async def picture(page: Page, name: str) -> None:
    """Keep a picture for somebody to look at, if a folder is named."""
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)
