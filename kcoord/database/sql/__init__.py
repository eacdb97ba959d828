"""Named SQL from `.sql` files.

Grammar of a file: `-- name: lock_group` starts a statement; comment lines that follow explain it; then
the statement with `%(parameter)s` placeholders. Each statement is sent with its name in front as a comment, so that
logs and `pg_stat_statements` show our names.

What several statements of a package have in common is written once: `-- fragment: matching` starts it, and a line
`-- include: matching` in a statement stands for its lines, also in another file. That is done when the files are read;
a statement never depends on its parameters. Statements are sent without their indentation: what is longer than 4,096
bytes psycopg would parse each time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

_HEADING = re.compile(r"^-- (?P<kind>name|fragment): (?P<name>[a-z][a-z0-9_]*)\s*$")
_INCLUDE = re.compile(r"^\s*-- include: (?P<name>[a-z][a-z0-9_]*)\s*$")


class Queries:
    """The statements of one package's SQL files, as attributes."""

    def __init__(self, package: str, statements: dict[str, str]) -> None:
        self._package = package
        self._statements = statements
        vars(self).update(statements)

    def __getattr__(self, name: str) -> str:
        raise AttributeError(f"{self._package}: no statement named {name}")

    def items(self) -> Iterator[tuple[str, str]]:
        """Name and text of every statement."""
        return iter(self._statements.items())


def parse(texts: Mapping[str, str]) -> dict[str, str]:
    """Statements of one package by name, with their fragments in place. `texts`: its files by name.

    Raises ValueError for text before the first name, a duplicate or empty name, an unknown fragment or one that no
    statement includes, and a fragment that includes another.
    """
    blocks: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for origin, text in texts.items():
        for key, lines in _blocks(text, origin).items():
            if key in blocks:
                raise ValueError(f"{origin}: {key[1]} is defined in {blocks[key][0]} too")
            blocks[key] = origin, lines
    fragments = {name: (origin, lines) for (kind, name), (origin, lines) in blocks.items() if kind == "fragment"}
    included: set[str] = set()
    for name, (origin, lines) in fragments.items():
        if any(_INCLUDE.match(line) for line in lines):
            raise ValueError(f"{origin}: the fragment {name} includes another")

    def complete(origin: str, lines: list[str]) -> Iterator[str]:
        for line in lines:
            match = _INCLUDE.match(line)
            if match is None:
                yield line.strip()
                continue
            if match["name"] not in fragments:
                raise ValueError(f"{origin}: no fragment named {match['name']}")
            included.add(match["name"])
            yield from map(str.strip, fragments[match["name"]][1])

    statements = {name: "\n".join(complete(*block)) for (kind, name), block in blocks.items() if kind == "name"}
    for name in sorted(fragments.keys() - included):
        raise ValueError(f"{fragments[name][0]}: no statement includes {name}")
    return {name: statement.strip().rstrip(";") for name, statement in statements.items()}


def _blocks(text: str, origin: str) -> dict[tuple[str, str], list[str]]:
    """The lines of each statement and fragment, without comments."""
    found: dict[tuple[str, str], list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        match = _HEADING.match(line)
        if match:
            key = match["kind"], match["name"]
            if key in found:
                raise ValueError(f"{origin}: {match['name']} is defined twice")
            current = found[key] = []
        elif current is not None:
            if not line.startswith("--") or _INCLUDE.match(line):
                current.append(line)
        elif line.strip() and not line.startswith("--"):
            raise ValueError(f"{origin}: text before the first `-- name:` line")
    for lines in found.values():
        while lines and not lines[-1].strip():
            del lines[-1]
    empty = [name for (_, name), lines in found.items() if not "".join(lines).strip(" ;")]
    if empty:
        raise ValueError(f"{origin}: {', '.join(empty)} has no statement")
    return found


@functools.cache
def queries(package: str) -> Queries:
    """All statements of a package, from its sql/ or beside its pages; read once. Raises ValueError as `parse`."""
    root = Path(str(files(package)))
    paths = sorted(path for folder in ("sql", "database/sql", "ui", "pages/*") for path in root.glob(f"{folder}/*.sql"))
    texts = {f"{package}/{path.relative_to(root)}": path.read_text(encoding="utf-8") for path in paths}
    statements = {name: f"/* {package}.{name} */ {statement}" for name, statement in parse(texts).items()}
    return Queries(package, statements)
