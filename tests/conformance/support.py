"""For the pytest wrappers: the cases of a file as parameters."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.mark.structures import ParameterSet

from tests.conformance.cases import Case, Suite, conformance_directory, read_cases


def case_file(suite: Suite, where: Callable[[Case], bool] = lambda _: True) -> list[ParameterSet]:
    """One parameter for each case of the suite's file that `where` lets through, named after it.

    Raises OSError when the file is missing: a suite without its cases must not look like one that passed.
    """
    path = conformance_directory() / f"{suite.value}.jsonl"
    return [pytest.param(case, id=case.name) for case in read_cases(path) if where(case)]


def is_commit_or_fetch(case: Case) -> bool:
    """A case of the offsets convention about commits, transactional ones too, and fetches."""
    return case.area in ("commit", "fetch", "txn")
