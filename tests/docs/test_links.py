"""Relative links of the Markdown documents lead to files, and their fragments to headings."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.citations import tracked
from tests.docs.pages import ROOT, anchor

_FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)
DOCUMENTS = [path for path in tracked("*.md") if "vendor" not in path.parts]


def links(text: str) -> list[str]:
    """Where the links of a document go, those to other hosts left out."""
    prose = _CODE.sub("`code`", _FENCE.sub("", text))
    return [target for target in _LINK.findall(prose) if not re.match(r"[a-z]+:", target)]


def broken(document: Path, target: str) -> str | None:
    """What is wrong with a link; None if it leads somewhere."""
    name, _, fragment = target.partition("#")
    path = (document.parent / unquote(name)).resolve() if name else document
    if not path.exists():
        return f"{target}: there is no {name}"
    if not path.is_relative_to(ROOT):
        return f"{target}: outside of the repository"
    if fragment and fragment not in anchors(path):
        return f"{target}: no heading of {path.name} has this fragment"
    return None


def anchors(path: Path) -> set[str]:
    """The fragments of a document's headings."""
    return {anchor(title) for title in _HEADING.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert [problem for target in links(text) if (problem := broken(document, target))] == []


def test_documents_are_found() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
    assert {"README.md", "docs/architecture.md", "docs/specification/classic.md"} <= names


@pytest.mark.parametrize("target", ["nowhere.md", "#nothing", "docs/operations/start.md#nothing", "../outside"])
def test_a_broken_link_is_noticed(target: str) -> None:
    assert broken(ROOT / "README.md", target) is not None
