"""Which tests belong to changed files: `python -m tests.support.belonging FILE...` prints their paths.

A test belongs to a Python module if it imports it, itself or through other modules of `tests`, or if its folder has the
name of the module's. Where nothing imports a module directly, its importers stand for it. Tests of any other
file (SQL, a template, a page of the docs) are those of the modules that name it, or one of its statements. A file for
which that finds nothing gets the folder of its package's tests. This is a quick answer while you work on something;
only `make test` is a promise.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kcoord", "groups", "offsets", "frontend")
CORES = ("groups/core/", "offsets/core/")
OF_CORES = "tests/conformance/test_through_core.py"
OF_DOCUMENTS = "tests/docs"
STATEMENT = re.compile(r"^-- name: (\w+)", re.MULTILINE)
MOST_STEPS = 3
"""How far from a module its importers may be to stand for it."""


class Belonging:
    """The imports of the whole tree, read once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.graph = grimp.build_graph(*PACKAGES, "tests", cache_dir=str(root / ".import_linter_cache"))

    def tests_of(self, path: str) -> set[str]:
        """Paths of test files and folders, relative to the root. `path`: of a file, also one that was deleted."""
        if path.startswith("tests/") and Path(path).name.startswith("test_"):
            return {path} if (self.root / path).exists() else set()
        if path.endswith(".py"):
            found = self._of_module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        else:
            found = self._of_named(path)
        if path.startswith(CORES):
            found.add(OF_CORES)
        return found | self._mirrored(path) or self._nearest(path)

    def _of_module(self, module: str) -> set[str]:
        reached = {module}
        for _ in range(MOST_STEPS):
            if module not in self.graph.modules:
                return set()
            if tests := self._importing_tests(reached):
                return tests
            reached |= {importer for one in reached for importer in self.graph.find_modules_that_directly_import(one)}
        return self._importing_tests(reached)

    def _importing_tests(self, modules: Iterable[str]) -> set[str]:
        """Test files that import one of `modules`, directly or through helpers in `tests`."""
        found: set[str] = set()
        seen = set(modules)
        queue = list(seen)
        while queue:
            importers = self.graph.find_modules_that_directly_import(queue.pop())
            new = {importer for importer in importers if importer.startswith("tests.")} - seen
            seen |= new
            tests = {one for one in new if one.rpartition(".")[2].startswith("test_")}
            found |= {f"{one.replace('.', '/')}.py" for one in tests}
            queue += new - tests - {"tests.conftest"}  # which imports what every test needs
        return found

    def _mirrored(self, path: str) -> set[str]:
        folders = Path(path).parts[:-1]
        if len(folders) < 2:
            return set()
        files = self.root.glob(f"tests/{folders[0]}/**/{folders[-1]}/test_*.py")
        return {str(file.relative_to(self.root)) for file in files}

    def _of_named(self, path: str) -> set[str]:
        """Of the Python files that contain the file's name, or a named statement of an SQL file."""
        found = {OF_DOCUMENTS} if path.endswith(".md") else set()
        words = [Path(path).name]
        if path.endswith(".sql") and (self.root / path).exists():
            words += STATEMENT.findall((self.root / path).read_text())
        patterns = [word for name in words for word in ("-e", name)]
        command = ["git", "grep", "-lw", "--fixed-strings", *patterns, "--", "*.py"]
        for user in subprocess.run(command, cwd=self.root, capture_output=True, text=True).stdout.splitlines():
            found |= self.tests_of(user)
        return found

    def _nearest(self, path: str) -> set[str]:
        """The folder of tests of the nearest folder above that has one."""
        for parent in Path(path).parents[:-1]:
            if (self.root / "tests" / parent).is_dir():
                return {str("tests" / parent)}
        return set()


def main(paths: list[str]) -> int:
    """Print what belongs to `paths`; 2, with a message, if nothing does."""
    belonging = Belonging()
    found = set().union(*(belonging.tests_of(path) for path in paths))
    if not found:
        print(f"no test belongs to {', '.join(paths)} alone: run `make test`", file=sys.stderr)
        return 2
    print(*sorted(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
