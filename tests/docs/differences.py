"""The second part of `docs/differences.md`: every `Differs from Kafka:` in the code, in the code's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.citations import citing_files
from tests.docs.pages import ROOT

PATH = ROOT / "docs" / "differences.md"
BEGIN, END = "<!-- code: begin -->", "<!-- code: end -->"

_MARK = re.compile(
    r"Differs from Kafka(?::|,)\s+(?P<words>.*?)(?=\.\s|\.\"\"\"|\n[ \t]*(?:#|--)?[ \t]*\n|\"\"\"|\Z)", re.DOTALL
)
_COMMENT = re.compile(r"^[ \t]*(?:#|--) ?", re.MULTILINE)


def render() -> str:
    """The page as it should be: what is written by hand, and the list between its two marks."""
    head, _, rest = PATH.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{''.join(_entries())}{END}{tail}"


def _entries() -> Iterator[str]:
    for path in citing_files():
        if not path.is_relative_to(ROOT / "tests"):
            yield from (f"- {_link(path)}: {words}\n" for words in marked(path.read_text(encoding="utf-8")))


def marked(text: str) -> list[str]:
    """What follows each mark of a text, up to the end of its sentence, on one line."""
    return [_plain(found["words"]) for found in _MARK.finditer(text)]


def _plain(words: str) -> str:
    return " ".join(_COMMENT.sub("", words).split()).removeprefix("- ").rstrip(".:") + "."


def _link(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return f"[{name}](../{name})"
