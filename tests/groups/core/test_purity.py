"""The core has no clock, no randomness, no I/O: only what it is given."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import groups.core

ROOT = Path(groups.core.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
ALLOWED = {
    *("__future__", "collections", "dataclasses", "datetime", "enum", "hashlib", "heapq", "itertools", "typing"),
    *("zlib", "kcoord", "groups"),
}
CLOCKS = {"now", "utcnow", "today"}
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "__import__", "id", "hash"}


def imported(tree: ast.AST) -> set[str]:
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            modules.add(node.module or "")
    return modules


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_core_imports_only_values_and_the_error_registry(path: Path) -> None:
    for module in imported(ast.parse(path.read_text())):
        assert module.split(".")[0] in ALLOWED, f"{path.name} imports {module}"
        if module.startswith("kcoord"):
            assert module == "kcoord.protocol.errors"
        if module.startswith("groups"):
            assert module.startswith("groups.core")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_core_touches_nothing_outside(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS, f"{path.name}:{node.lineno} calls {node.func.id}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in CLOCKS, f"{path.name}:{node.lineno} reads a clock"
        assert not isinstance(node, ast.Global | ast.Nonlocal), f"{path.name} has shared state"


@pytest.mark.parametrize(("protocol", "other"), [("classic", "consumer"), ("consumer", "classic")])
def test_no_protocol_knows_the_other(protocol: str, other: str) -> None:
    for path in (ROOT / protocol).glob("*.py"):
        unknown = f"groups.core.{other}", "groups.core.convert"
        assert not any(module.startswith(unknown) for module in imported(ast.parse(path.read_text()))), path
    assert len(SOURCES) > 15
