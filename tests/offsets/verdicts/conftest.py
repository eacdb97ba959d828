"""Fixtures of the tests of verdicts."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kcoord.process.runtime import Runtime
from offsets.verdicts import VerdictChecks
from tests.offsets.verdicts.rows import Rows


@pytest.fixture
def rows(database: str) -> Iterator[Rows]:
    """Writes rows into an empty database."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield Rows(connection)


@pytest.fixture
def checks(runtime: Runtime) -> VerdictChecks:
    """What judges groups in this process."""
    return runtime.get(VerdictChecks)
