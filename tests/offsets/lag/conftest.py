"""Fixtures of the tests of samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService


@pytest.fixture
def samples(runtime: Runtime) -> SampleService:
    """The sampler of this process."""
    return runtime.get(SampleService)


@pytest.fixture
def sql(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A look at the rows."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection
