"""What `make test` leaves out, and what belongs to a changed file."""

from __future__ import annotations

import pytest

from tests.support.belonging import OF_CORES, Belonging
from tests.support.selection import reason_of, seconds_by_folder

UNNAMED = "-".join(("nothing", "names", "this"))
"""Put together here, or this file would name it."""


@pytest.fixture(scope="module")
def belonging() -> Belonging:
    return Belonging()


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("groups/core/classic/join.py", OF_CORES),
        ("groups/core/classic/join.py", "tests/groups/core/test_join_details.py"),
        ("offsets/sql/samples.sql", "tests/offsets/lag/test_samples.py"),
        ("kcoord/control/rest/labels.py", "tests/kcoord/rest/test_acls.py"),
        ("tests/support/plans.py", "tests/frontend/test_plan_list.py"),
        ("tests/support/test_selection.py", "tests/support/test_selection.py"),
        ("docs/plans.md", "tests/docs"),
        (f"frontend/{UNNAMED}.html", "tests/frontend"),
    ],
)
def test_what_belongs_to_a_file(belonging: Belonging, path: str, test: str) -> None:
    assert test in belonging.tests_of(path)


def test_nothing_belongs_to_a_file_of_no_package(belonging: Belonging) -> None:
    assert belonging.tests_of(f"{UNNAMED}.txt") == set()


@pytest.mark.parametrize(
    ("reason", "expected"), [(("it takes minutes",), "it takes minutes"), ((), None), (("",), None)]
)
def test_a_test_is_left_out_only_with_a_reason(
    request: pytest.FixtureRequest, reason: tuple[str, ...], expected: str | None
) -> None:
    request.node.add_marker(pytest.mark.whole(*reason))
    if expected is None:
        with pytest.raises(pytest.UsageError):
            reason_of(request.node)
    else:
        assert reason_of(request.node) == expected


def test_seconds_are_summed_by_folder_with_those_of_fixtures() -> None:
    phases = [
        ("tests/a/b/c/test_x.py::test_1", 1.5),
        ("tests/a/test_x.py::test", 2.0),
        ("tests/a/test_y.py::test", 1.0),
    ]
    assert seconds_by_folder([*phases, phases[0]]) == {"tests/a": (3, 6.0)}
