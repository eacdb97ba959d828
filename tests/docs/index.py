"""The index of `docs/specification/README.md`: which modules cite each rule, found in their comments and docstrings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.docs.citations import Citation, citations, citing_files
from tests.docs.pages import ROOT, RULES, SPECIFICATION, page

PATH = SPECIFICATION / "README.md"
BEGIN, END = "<!-- index: begin -->", "<!-- index: end -->"


def render() -> str:
    """The page as it should be: what is written by hand, and the index between its two marks."""
    head, _, rest = PATH.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{_index()}{END}{tail}"


def _index() -> str:
    modules = cited_by()
    return "".join(f"\n### {name}.md\n\n{_table(name, modules)}\n" for name in RULES)


def cited_by() -> Mapping[tuple[str, str], list[Path]]:
    """Page and section -> the modules that cite it, tests left out."""
    found: dict[tuple[str, str], set[Path]] = defaultdict(set)
    for path in citing_files():
        if path.is_relative_to(ROOT / "tests"):
            continue
        for one in citations(path, path.read_text(encoding="utf-8")):
            if one.page in RULES:
                for number in one.sections:
                    found[one.page, number].add(path)
                for number in _between(one):
                    found[one.page, number].add(path)
    return {key: sorted(paths) for key, paths in found.items()}


def _between(citation: Citation) -> Iterator[str]:
    """The sections inside of "2 to 5" and "9.5 to 9.7", which the citation does not spell out."""
    for first, last in citation.ranges:
        parent, _, begin = first.rpartition(".")
        for number in range(int(begin) + 1, int(last.rpartition(".")[2])):
            yield f"{parent}.{number}" if parent else str(number)


def _table(name: str, modules: Mapping[tuple[str, str], list[Path]]) -> str:
    rows = ["| section | modules |", "| --- | --- |"]
    for number, section in page(name).sections.items():
        title = f"[{number}]({name}.md#{section.anchor}) {_short(section.title)}"
        cited = modules.get((name, number), [])
        rows.append(f"| {title} | {'<br>'.join(map(_link, cited)) or _elsewhere(name, number, modules)} |")
    return "\n".join(rows) + "\n"


def _elsewhere(name: str, number: str, modules: Mapping[tuple[str, str], list[Path]]) -> str:
    """Where to look for a section that no module cites: the section above it, or those below."""
    parent = number.rpartition(".")[0]
    if parent and (name, parent) in modules:
        return f"see {parent}"
    if any(cited_page == name and cited.startswith(f"{number}.") for cited_page, cited in modules):
        return "see below"
    return "–"


def _short(title: str) -> str:
    """A heading without its remarks in brackets."""
    return title.partition(" (")[0].partition(": `")[0].replace("|", "\\|")


def _link(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    return f"[{name}](../../{name})"
