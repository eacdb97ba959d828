"""`python -m tests.screenshots`: start a showcase, wait until it has something to show, take the pictures."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, StorageState, sync_playwright

from kcoord.tools.demo.run import Narrator
from kcoord.tools.showcase.cast import cast
from tests.browser.conftest import ARGUMENTS
from tests.screenshots.shots import HEIGHTS, Shot, everything, pictures
from tests.support import chromium
from tests.support.processes import ROOT
from tests.support.showcase import Showcase, run_showcase

GROUPS, SEED = 60, 1
VERDICTS = {"uncovered", "stalled", "stuck", "expiring", "flapping", "stale"}
WAIT_SECONDS = 600.0
COLORS, AREAS = 256, 64


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line options."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description="Pictures of the dashboard.")
    parser.add_argument("--all", action="store_true", help="every page, at three widths, light and dark")
    parser.add_argument("--only", default="", help="pictures whose name contains this")
    parser.add_argument("--minutes", type=float, default=3, help="how much history to wait for (default: %(default)s)")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images", help="folder (default: %(default)s)")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Take the pictures; returns the exit status."""
    given = parse(arguments)
    narrator = Narrator()
    path = chromium.find()
    if path is None:
        sys.stderr.write(f"kcoord screenshots: {chromium.MISSING}\n")
        return 1
    parts = cast(GROUPS, SEED)
    shots = [shot for shot in (everything(parts) if given.all else pictures(parts)) if given.only in shot.name]
    given.into.mkdir(parents=True, exist_ok=True)
    narrator.say(f"starting a showcase of {GROUPS} groups")
    with run_showcase("--groups", str(GROUPS), "--seed", str(SEED)) as showcase:
        _wait(showcase, given.minutes * 60)
        narrator.say(f"taking {len(shots)} pictures")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            failed = _take(browser, showcase, shots, given.into)
            browser.close()
    for problem in failed:
        sys.stderr.write(f"kcoord screenshots: {problem}\n")
    return 1 if failed else 0


def _wait(showcase: Showcase, seconds: float) -> None:
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {showcase.known.api_token}"}
    with httpx.Client(base_url=showcase.url, headers=headers, trust_env=False) as client:
        while True:
            answers = {kind: client.get("/v1/groups", params={"verdict": kind}).raise_for_status() for kind in VERDICTS}
            missing = [kind for kind, answer in answers.items() if not answer.json()["groups"]]
            elapsed = time.monotonic() - began
            if not missing and elapsed >= seconds:
                return
            if elapsed > WAIT_SECONDS:
                raise TimeoutError(showcase.running.report(f"never shown: {missing}"))
            time.sleep(2)


def _take(browser: Browser, showcase: Showcase, shots: Iterable[Shot], into: Path) -> list[str]:
    state = _signed_in(browser, showcase)
    failed = []
    for shot in shots:
        context = browser.new_context(
            viewport={"width": shot.width, "height": HEIGHTS[shot.width]},
            color_scheme="dark" if shot.is_dark else "light",
            base_url=showcase.url,
            storage_state=state,
            timezone_id="UTC",
        )
        try:
            page = context.new_page()
            answer = page.goto(shot.path)
            page.locator("main").wait_for()
            if answer is None or answer.status != httpx.codes.OK:
                failed.append(f"{shot.name}: {shot.path} answered {answer.status if answer else 'nothing'}")
                continue
            page.wait_for_timeout(1_500)  # until the mark of the event stream says Live
            store(page.screenshot(full_page=shot.is_whole), into / f"{shot.name}.png")
        finally:
            context.close()
    return failed


def _signed_in(browser: Browser, showcase: Showcase) -> StorageState:
    context = browser.new_context(base_url=showcase.url)
    page = context.new_page()
    page.goto("/sign-in")
    page.get_by_label("User name").fill(showcase.known.admin_user)
    page.get_by_label("Password").fill(showcase.known.admin_password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    state = context.storage_state()
    context.close()
    return state


def store(picture: bytes, path: Path) -> None:
    """Write a picture with few colours, which suffice and make it a third of the size.

    The most frequent colours, of areas, stay exactly as they are. The others are chosen by how far apart they are, so
    that the rare ones of marks and lines are among them.
    """
    with Image.open(io.BytesIO(picture)) as image:
        full = image.convert("RGB")
        counted = sorted(full.getcolors(full.width * full.height) or (), reverse=True)
        spread = full.quantize(COLORS - AREAS, Image.Quantize.MAXCOVERAGE).getpalette() or []
        palette = Image.new("P", (1, 1))
        palette.putpalette([*(part for _, color in counted[:AREAS] for part in color), *spread])  # type: ignore[union-attr]
        full.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
