"""docs/performance.md is what the script makes of the results beside it, and its plots are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.bench import report
from tests.bench.figures import Results


def test_the_document_is_that_of_the_results() -> None:
    made = report.Report(report.fitted(Results.read(report.RESULTS))).document(report.TEMPLATE.read_text())
    assert report.DOCUMENT.read_text() == made, "run `python -m tests.bench.report`"


def test_pictures_of_the_document_are_there() -> None:
    named = re.findall(r"\]\((performance/[^)]+\.svg)\)", report.DOCUMENT.read_text())
    assert {Path(one).name for one in named} == {path.name for path in report.FOLDER.glob("*.svg")}
