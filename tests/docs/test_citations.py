"""Every rule that code cites exists, and every citation says on which page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.citations import UNRESOLVABLE, citations, citing_files, tracked, wrong
from tests.docs.pages import ROOT, RULES, page

HERE = Path(__file__)


def found(text: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(one.page, one.sections, one.rows) for one in citations(HERE, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(classic.md 2.4).", [("classic", ("2.4",), ())]),
        ("Source: classic.md 2.6, 3.2 and 4; KIP-62.", [("classic", ("2.6", "3.2", "4"), ())]),
        ("consumer.md 2.3, rows 3 to 5, and more", [("consumer", ("2.3",), ("3", "5"))]),
        ("offsets.md 3.3, rows 3a to 3c", [("offsets", ("3.3",), ("3a", "3c"))]),
        ("consumer.md 2.5 (steps 3 and 4)", [("consumer", ("2.5",), ("3", "4"))]),
        ("is given (classic.md\n    3.2).", [("classic", ("3.2",), ())]),
        ("# completes (classic.md\n    # 13.1 item 5).", [("classic", ("13.1",), ("5",))]),
        ("classic.md 1; consumer.md 8.", [("classic", ("1",), ()), ("consumer", ("8",), ())]),
        ("see docs/specification/classic.md 2", []),
        ("classic.md has the table", []),
        ("classic.md 3.2, 4 members", [("classic", ("3.2", "4"), ())]),
    ],
)
def test_what_is_read_as_a_citation(text: str, expected: list[object]) -> None:
    assert found(text) == expected


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


@pytest.mark.parametrize(
    "text", ["(section 2.4)", "Sections 2 and 3", "the classic specification, 3", "HTTP contract", "section\n    4"]
)
def test_a_citation_without_its_page_is_noticed(text: str) -> None:
    assert UNRESOLVABLE.search(text)


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
