"""Citations of rules, as code and documents write them, and where each leads.

A citation names the page and the section, and the row of its table or the item of its list where that says more:

    classic.md 2.4                    consumer.md 2.3, rows 3 to 5
    classic.md 2.6, 3.2 and 4         offsets.md 13.5 item 5
    http-api.md 2, "sync"             http-api.md "Waiting"
    architecture.md invariant 2

Nothing is left to the reader's memory of the file's first line: "section 2.4" without its page is refused.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, page, within

_SPACE = r"(?:\s+(?:(?:#|--)[ \t]+)?)"
_NUMBER = r"\d+(?:\.\d+)*(?![\w%])"
_SEPARATOR = rf"(?:,{_SPACE}and{_SPACE}|,{_SPACE}|{_SPACE}and{_SPACE}|{_SPACE}to{_SPACE})"
_LABEL = r"\d+[a-d]?(?![\w.])"
_CITATION = re.compile(
    rf"(?<![\w/.-])(?P<page>{'|'.join(PAGES)})\.md"
    rf"(?:{_SPACE}(?P<sections>{_NUMBER}(?:{_SEPARATOR}{_NUMBER})*))?"
    rf"(?:,?{_SPACE}\(?(?P<kind>rows?|items?|steps?){_SPACE}(?P<rows>{_LABEL}(?:{_SEPARATOR}{_LABEL})*))?"
    rf"(?:,?{_SPACE}invariant{_SPACE}(?P<invariant>\d+))?"
    rf'(?:,?{_SPACE}"(?P<title>[^"\n]+)")?'
)
UNRESOLVABLE = re.compile(
    rf"(?<!RFC 9112, )\b[Ss]ections?{_SPACE}\d"
    rf"|\b(?:classic|consumer|offsets){_SPACE}specification\b|\bHTTP{_SPACE}contract\b"
)
"""Ways of citing that leave the page open."""


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation. `sections`, `rows`: what it lists, a range by its two ends; `ranges`: those of sections."""

    path: Path
    line: int
    page: str
    sections: tuple[str, ...]
    ranges: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]
    invariant: str | None
    title: str | None

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.page}.md {', '.join(self.sections)}"


def tracked(*patterns: str) -> list[Path]:
    """Files that are part of the project, those not committed yet included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def citing_files() -> list[Path]:
    """Code and SQL, but not the tests of citations themselves."""
    return [path for path in tracked("*.py", "*.sql") if path.parent != Path(__file__).parent]


def citations(path: Path, text: str) -> Iterator[Citation]:
    """The citations in a text; a bare mention of a page is none."""
    for found in _CITATION.finditer(text):
        if not any(found[name] for name in ("sections", "invariant", "title")):
            continue
        line = text.count("\n", 0, found.start()) + 1
        sections, rows = _listed(found["sections"]), _listed(found["rows"])
        ranges = tuple(re.findall(rf"({_NUMBER}){_SPACE}to{_SPACE}({_NUMBER})", found["sections"] or ""))
        yield Citation(path, line, found["page"], sections, ranges, rows, found["invariant"], found["title"])


def _listed(words: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\d+(?:\.\d+)*[a-d]?", words or ""))


def wrong(citation: Citation) -> str | None:
    """What a citation names that does not exist; None if all of it does."""
    cited = page(citation.page)
    for number in citation.sections:
        if number not in cited.sections:
            return f"{citation}: {cited.path.name} has no section {number}"
    for row in citation.rows:
        if row not in within(citation.page, citation.sections[-1]):
            return f"{citation}: section {citation.sections[-1]} has no row or item {row}"
    if citation.invariant and not re.search(rf"^{citation.invariant}\. ", cited.path.read_text(), re.MULTILINE):
        return f"{citation}: there is no invariant {citation.invariant}"
    if citation.title and not _has_title(citation):
        return f"{citation}: nothing in {cited.path.name} is called {citation.title!r}"
    return None


def _has_title(citation: Citation) -> bool:
    """Does the page have a heading, or a sentence, of these words?"""
    text = " ".join(page(citation.page).path.read_text(encoding="utf-8").split())
    return citation.title is not None and citation.title.lower() in text.lower()
