"""Named SQL from `.sql` files.

Grammar of a file: `-- name: lock_group` starts a statement; comment lines that follow explain it; then
the statement with `%(parameter)s` placeholders. Each statement is sent with its name in front as a comment, so that
logs and `pg_stat_statements` show our names. Statements are never assembled from pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

_NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)\s*$")


class Queries:
    """The statements of one package's SQL files, as attributes."""

    def __init__(self, package: str, statements: dict[str, str]) -> None:
        self._package = package
        self._statements = statements

    def __getattr__(self, name: str) -> str:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._package}: no statement named {name}") from None

    def items(self) -> Iterator[tuple[str, str]]:
        """Name and text of every statement."""
        return iter(self._statements.items())


def parse(text: str, origin: str) -> dict[str, str]:
    """Statements of one file by name. Raises ValueError for text before the first name, a duplicate or empty name."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        match = _NAME.match(line)
        if match:
            name = match["name"]
            if name in found:
                raise ValueError(f"{origin}: {name} is defined twice")
            current = found[name] = []
        elif current is not None:
            if not line.startswith("--"):
                current.append(line)
        elif line.strip() and not line.startswith("--"):
            raise ValueError(f"{origin}: text before the first `-- name:` line")
    statements = {name: "\n".join(lines).strip().rstrip(";") for name, lines in found.items()}
    empty = [name for name, statement in statements.items() if not statement]
    if empty:
        raise ValueError(f"{origin}: {', '.join(empty)} has no statement")
    return statements


def queries(package: str) -> Queries:
    """All statements of `package`/sql/*.sql. Raises ValueError if a name occurs in two files."""
    statements: dict[str, str] = {}
    for path in sorted(files(package).joinpath("sql").iterdir(), key=lambda p: p.name):
        if not path.name.endswith(".sql"):
            continue
        for name, statement in parse(path.read_text(encoding="utf-8"), f"{package}/sql/{path.name}").items():
            if name in statements:
                raise ValueError(f"{package}: two statements are named {name}")
            statements[name] = f"/* {package}.{name} */ {statement}"
    return Queries(package, statements)
