"""The jobs of reconcile on histories made by hand, and on histories that Hypothesis makes: no Postgres."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.histories import World
from tests.spark.reconciled import found_in

STEP = st.tuples(st.integers(0, 20), st.integers(0, 3), st.integers(0, 3), st.integers(0, 30))
HISTORIES = st.lists(st.lists(STEP, min_size=20, max_size=60), min_size=20, max_size=60)


def lived(histories: list[list[tuple[int, int, int, int]]]) -> World:
    """One world in which they happened one after the other."""
    world = World()
    for steps in histories:
        for step in steps:
            world.do(*step)
        world.begin()
    return world


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # one run takes seconds: shrinking would take an hour
    suppress_health_check=list(HealthCheck),
)
@given(HISTORIES, st.floats(0, 1))
def test_nothing_is_found_in_clean_histories(
    spark: SparkSession, histories: list[list[tuple[int, int, int, int]]], dropped: float
) -> None:
    """Nor in what is left of them when the first days were dropped."""
    world = lived(histories)
    assert found_in(spark, world, sure_since=world.now) == []
    begins = world.lines[int(dropped * (len(world.lines) - 1))]["at"] if world.lines else 0
    world.lines = [line for line in world.lines if line["at"] >= begins]
    world.events = [event for event in world.events if event["at"] >= begins]
    assert found_in(spark, world, sure_since=world.now, events_from=begins) == []
