"""What `make release` refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.release import ReleaseProblem, check_tree

GOOD = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a changelog, committed."""
    commit(tmp_path, GOOD)
    return tmp_path


def git(clone: Path, *arguments: str) -> None:
    person = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *person, *arguments], cwd=clone, check=True, capture_output=True)


def commit(clone: Path, changelog: str) -> None:
    git(clone, "init")
    (clone / "CHANGELOG.md").write_text(changelog)
    git(clone, "add", ".")
    git(clone, "commit", "--message=x")


def test_a_release(clone: Path) -> None:
    check_tree(clone, "1.2.3")
    git(clone, "tag", "v1.2.3")
    check_tree(clone, "1.2.3")


def test_a_tree_that_is_not_clean(clone: Path) -> None:
    (clone / "new.py").touch()
    with pytest.raises(ReleaseProblem, match=r"not clean.*new\.py"):
        check_tree(clone, "1.2.3")


@pytest.mark.parametrize(
    "changelog", ["## [Unreleased]\n", GOOD.replace(" - 2026-01-02", ""), GOOD.replace("1.2.3", "1.2.2"),
                  GOOD.replace("## [Unreleased]\n", "")],
)  # fmt: skip
def test_a_changelog_without_the_section(tmp_path: Path, changelog: str) -> None:
    commit(tmp_path, changelog)
    with pytest.raises(ReleaseProblem, match="CHANGELOG"):
        check_tree(tmp_path, "1.2.3")


def test_a_tag_of_another_version(clone: Path) -> None:
    git(clone, "tag", "v1.2.4")
    with pytest.raises(ReleaseProblem, match=r"v1\.2\.4"):
        check_tree(clone, "1.2.3")
