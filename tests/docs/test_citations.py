"""Every rule that code cites exists, and every citation says on which page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.citations import UNRESOLVABLE, citations, citing_files, tracked, wrong
from tests.docs.pages import ROOT, RULES, page

HERE = Path(__file__)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("classic.md 99.1", "no section 99.1"),
        ("classic.md 2.4, 2.99 and 3", "no section 2.99"),
        ("consumer.md 2.3, rows 1 to 40", "no row or item 40"),
        ("architecture.md invariant 99", "no invariant 99"),
        ('http-api.md 1, "Waiting for nothing"', "nothing in http-api.md is called"),
    ],
)
def test_a_citation_of_nothing_is_noticed(text: str, words: str) -> None:
    (citation,) = citations(HERE, text)
    assert words in (wrong(citation) or "")


def test_what_code_cites_exists() -> None:
    cited = [one for path in citing_files() for one in citations(path, path.read_text(encoding="utf-8"))]
    assert len(cited) > 400
    assert [problem for one in cited if (problem := wrong(one))] == []


def test_what_documents_cite_exists() -> None:
    cited = [one for path in tracked("*.md") for one in citations(path, path.read_text(encoding="utf-8"))]
    assert cited
    assert [problem for one in cited if (problem := wrong(one))] == []


def test_every_citation_names_its_page() -> None:
    open_ones = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]!r} names no page"
        for path in citing_files()
        for text in [path.read_text(encoding="utf-8")]
        for hit in UNRESOLVABLE.finditer(text)
    ]
    assert open_ones == []


@pytest.mark.parametrize("name", RULES)
def test_references_within_the_specification_exist(name: str) -> None:
    """ "§3.3" and "section 3.3" of a page mean the page itself."""
    cited = page(name)
    text = cited.path.read_text(encoding="utf-8")
    numbers = re.findall(r"(?:§|\bsections? )(\d+(?:\.\d+)*)(?![\w%])", text)
    assert numbers
    assert [number for number in numbers if number not in cited.sections] == []
