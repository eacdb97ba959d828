"""For the pytest wrappers: the cases of a file as parameters, or one skip that says where the files are expected."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from _pytest.mark.structures import ParameterSet

from tests.conformance.cases import DIRECTORY_VARIABLE, Case, Suite, conformance_directory, read_cases


def case_file(suite: Suite, where: Callable[[Case], bool] = lambda _: True) -> list[ParameterSet]:
    """One parameter for each case of the suite's file that `where` lets through, named after it."""
    directory = conformance_directory()
    path = directory / f"{suite.value}.jsonl" if directory else None
    if path is None or not path.is_file():
        reason = f"{suite.value}.jsonl lies outside the repository: set {DIRECTORY_VARIABLE} to its directory"
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(case, id=case.name) for case in read_cases(path) if where(case)]


def is_commit_or_fetch(case: Case) -> bool:
    """A case of the offsets convention about commits, transactional ones too, and fetches."""
    return case.area in ("commit", "fetch", "txn")
