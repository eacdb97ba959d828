"""The blocks of commands of the pages, and what becomes of each: run here, tested elsewhere, or not to be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ROOT

_FOLDERS = (ROOT / "docs", ROOT / "docs" / "monitoring", ROOT / "docs" / "operations")
_FOUND = [path for folder in _FOLDERS for path in folder.glob("*.md")]
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in _FOUND))
SHELL = frozenset({"", "sh", "bash"})
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block; `text` ends with a newline."""

    page: str
    line: int
    text: str


def blocks(page: str) -> list[Block]:
    """What a reader of the page could paste into a shell, or take for that."""
    text = Path(ROOT / page).read_text(encoding="utf-8")
    found = [match for match in _FENCED.finditer(text) if match[1] in SHELL]
    return [Block(page, text.count("\n", 0, match.start()) + 2, match[2]) for match in found]
