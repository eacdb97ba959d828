"""The table of docs/http-api.md that says what each operation takes, from their declarations."""

from __future__ import annotations

from kcoord.access.rights import Permission
from tests.docs.pages import ROOT
from tests.support.operations import operations

PATH = ROOT / "docs" / "http-api.md"
BEGIN, END = "<!-- permissions: begin -->", "<!-- permissions: end -->"


def render() -> str:
    """The page as it should be: what is written by hand, and the table between its two marks."""
    head, _, rest = PATH.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    declared = operations()
    rows = ""
    for permission in Permission:
        names = sorted(name for name, operation in declared.items() if operation.takes is permission)
        rows += f"| {_words(permission)} | {', '.join(names)} |\n"
    return f"{head}{BEGIN}\n| takes | operations |\n| --- | --- |\n{rows}{END}{tail}"


def _words(permission: Permission) -> str:
    operation, resource = permission.value
    if operation is None:
        return "any token"
    return f"`{operation.value}` on {f'`{resource.value}`' if resource else 'everything'}"
