"""Which worker runs what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.database import ROOT
from tests.support.scheduling import Role, next_scope, role_of

QUEUE = {
    "tests/groups/core/test_many.py": [
        "tests/groups/core/test_many.py::test_a",
        "tests/groups/core/test_many.py::test_b",
    ],
    "tests/kcoord/http/test_few.py": ["tests/kcoord/http/test_few.py::test_it"],
    "tests/wire/test_quick.py": ["tests/wire/test_quick.py::test_it"],
    "tests/browser/test_page.py": ["tests/browser/test_page.py::test_it"],
    "stack": ["tests/chaos/test_run.py::test_it@stack"],
}


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (Role.WAITS, ["stack", "tests/wire/test_quick.py"]),
        (
            Role.COMPUTES,
            [
                "tests/browser/test_page.py",
                "tests/kcoord/http/test_few.py",
                "tests/groups/core/test_many.py",
                "stack",
                "tests/wire/test_quick.py",
            ],
        ),
        (
            Role.WAITS_FIRST,
            [
                "stack",
                "tests/wire/test_quick.py",
                "tests/browser/test_page.py",
                "tests/kcoord/http/test_few.py",
                "tests/groups/core/test_many.py",
            ],
        ),
        (Role.SPARE, ["tests/groups/core/test_many.py"]),
    ],
)
def test_a_worker_takes_what_suits_it_and_the_long_ones_first(role: Role, expected: list[str]) -> None:
    left = dict(QUEUE)
    taken = []
    while (scope := next_scope(left, role)) is not None:
        taken.append(scope)
        del left[scope]
    assert taken == expected


@pytest.mark.parametrize(
    ("workers", "roles"),
    [
        (1, [Role.COMPUTES]),
        (3, [Role.WAITS, Role.COMPUTES, Role.COMPUTES]),
        (4, [Role.WAITS, Role.WAITS_FIRST, Role.COMPUTES, Role.SPARE]),
        (5, [Role.WAITS, Role.WAITS_FIRST, Role.COMPUTES, Role.COMPUTES, Role.SPARE]),
    ],
)
def test_of_several_the_first_waits_and_four_have_all_roles(workers: int, roles: list[Role]) -> None:
    assert [role_of(f"gw{number}", workers) for number in range(workers)] == roles


CONFTEST = """
from tests.support.scheduling import Scheduling


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)
"""
FILE = """
import os

import pytest


@pytest.mark.parametrize("number", range(6))
def test_it(number):
    print("ran in", os.environ["PYTEST_XDIST_WORKER"], __name__)
"""


LAST = """
import os
import pathlib


def test_it():
    ended = pathlib.Path("ended")
    if not ended.exists():
        ended.touch()
        os._exit(1)
"""
"""A test that ends its worker, the first time."""


def run(directory: Path, files: dict[str, str]) -> str:
    """The output of two workers, which have a minute."""
    (directory / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-n2", "--dist=loadgroup", "-rP", "-p", "no:django", "-c", "/dev/null"]
    done = subprocess.run(
        [*command, "--rootdir", str(directory), str(directory)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.whole("a test of the tests: runs pytest with workers of its own")
def test_the_tests_of_a_file_run_in_one_worker_and_none_is_left_out(tmp_path: Path) -> None:
    output = run(tmp_path, dict.fromkeys("abcd", FILE))
    assert "24 passed" in output, output
    ran = {line for line in output.splitlines() if line.startswith("ran in")}
    assert len(ran) == 4, ran


@pytest.mark.whole("a test of the tests: runs pytest with workers of its own")
def test_a_run_in_which_a_worker_dies_ends_and_says_so(tmp_path: Path) -> None:
    output = run(tmp_path, {**dict.fromkeys("abc", FILE), "last": LAST})
    assert "1 failed, 19 passed" in output, output
