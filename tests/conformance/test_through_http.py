"""The cases through the whole service, by its HTTP API."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case
from tests.conformance.http_backend import HttpBackend
from tests.conformance.support import passes, through_door


@pytest.mark.parametrize("case", through_door("http"))
async def test_scenario(case: Case, database: str, token: str) -> None:
    async with HttpBackend(database, token) as backend:
        await passes(case, backend)
