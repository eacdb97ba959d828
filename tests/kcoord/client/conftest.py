"""Tests with a scripted coordinator run on both drivers of the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kcoord.client.blocking import loops
from tests.kcoord.client.drivers import DRIVERS, THREADS, Chosen
from tests.support.selection import sample

BOTH = {
    "test_consumer_leaving", "test_consumer_reactions", "test_consumer_rebalances", "test_group_metadata",
    "test_iteration", "test_leading", "test_leaving", "test_lookups", "test_reactions", "test_rebalances",
    "test_records", "test_recreated_topics",
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker("one_driver")
    if metafunc.module.__name__.rpartition(".")[2] in BOTH and marked is None:
        metafunc.parametrize("driver", sample(DRIVERS, "on the other driver as well"), indirect=True)


@pytest.fixture(autouse=True)
def driver(request: pytest.FixtureRequest) -> Iterator[str]:
    """The driver that `consumer_of` and `member_of` use."""
    Chosen.name = getattr(request, "param", THREADS)
    yield Chosen.name
    Chosen.name = THREADS
    while loops:
        loops.pop().close()
