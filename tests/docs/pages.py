"""The pages that code cites: their numbered sections, and the rows of the tables in each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPECIFICATION = ROOT / "docs" / "specification"
PAGES = {
    "classic": SPECIFICATION / "classic.md",
    "consumer": SPECIFICATION / "consumer.md",
    "offsets": SPECIFICATION / "offsets.md",
    "share": SPECIFICATION / "share.md",
    "http-api": ROOT / "docs" / "http-api.md",
    "architecture": ROOT / "docs" / "architecture.md",
}
RULES = ("classic", "consumer", "offsets", "share")
"""The pages that are the specification; the others are the project's own design."""

_HEADING = re.compile(r"^(#+) (.+?)\s*$")
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.? (.+)")
_ROW = re.compile(r"^\| (\d+[a-d]?) \|")
_ITEM = re.compile(r"^(\d+[a-d]?)\. ")


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered section. `rows`: the first cells of its tables and the numbers of its lists, `3a` included."""

    number: str
    title: str
    anchor: str
    rows: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its numbered sections by number, and the titles of all its headings."""

    name: str
    path: Path
    sections: dict[str, Section]
    titles: frozenset[str]


def anchor(title: str) -> str:
    """The fragment that GitHub gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@cache
def page(name: str) -> Page:
    """Read a page. Raises KeyError for a name that is not in `PAGES`, OSError when the page is missing."""
    sections: dict[str, Section] = {}
    titles: list[str] = []
    current: Section | None = None
    for line in _prose(PAGES[name].read_text(encoding="utf-8")):
        if heading := _HEADING.match(line):
            titles.append(heading[2])
            if numbered := _NUMBERED.match(heading[2]):
                assert numbered[1] not in sections, f"{name}.md has two sections {numbered[1]}"
                current = Section(numbered[1], numbered[2], anchor(heading[2]))
                sections[numbered[1]] = current
        elif current and (row := _ROW.match(line) or _ITEM.match(line)):
            current.rows.add(row[1])
    return Page(name, PAGES[name], sections, frozenset(titles))


def _prose(text: str) -> list[str]:
    """The lines outside fenced blocks."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            lines.append(line)
    return lines


def within(page_name: str, number: str) -> set[str]:
    """The rows of a section and of the sections below it."""
    sections = page(page_name).sections
    return {
        row for name, found in sections.items() if name == number or name.startswith(f"{number}.") for row in found.rows
    }
