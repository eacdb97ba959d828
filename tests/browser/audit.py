"""What is wrong with a page for a screen reader, a keyboard and weak eyes: our own checks (audit.js) and axe's."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page

HERE = Path(__file__).parent
OWN = (HERE / "audit.js").read_text()
AXE = (HERE / "vendor/axe-core-4.14.1/axe.min.js").read_text()
RUN = """
async ([disabled]) => {
  const rules = {"label-content-name-mismatch": {enabled: true}};
  for (const rule of disabled) rules[rule] = {enabled: false};
  const found = await axe.run(document, {resultTypes: ["violations"], rules});
  return found.violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`));
}
"""


async def axe(page: Page, *disabled: str) -> list[str]:
    """What axe finds, with its best practices and the rule for labels that is off by default, without some rules."""
    await page.evaluate(AXE)
    found: list[str] = await page.evaluate(RUN, [list(disabled)])
    return found


async def audit(page: Page) -> list[str]:
    """All that is wrong with one of our pages."""
    own: list[str] = await page.evaluate(OWN)
    return own + await axe(page)
