"""docs/performance.md and its data pages are what the script makes of the results, and their plots are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench import report
from tests.bench.figures import Results


def test_the_pages_are_those_of_the_results() -> None:
    made = report.pages(report.fitted(Results.read(report.RESULTS)))
    assert report.DOCS / "performance.md" in made
    assert {page: page.read_text() for page in made} == made, "run `python -m tests.bench.report`"


def test_pictures_of_the_pages_are_there() -> None:
    pages = [report.DOCS / "performance.md", *report.FOLDER.glob("*.md")]
    named = [page.parent / path for page in pages for path in re.findall(r"\]\(([^)]+\.svg)\)", page.read_text())]
    assert {Path(one) for one in named} == set(report.FOLDER.glob("*.svg"))
