"""The jobs of reconcile on histories made by hand, and on histories that Hypothesis makes: no Postgres."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.offsets.spark.histories import Group, World
from tests.offsets.spark.reconciled import found_in

pytestmark = pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")

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


class Scenes(World):
    """Lines written by hand, each scene in a group of its own; all on one topic."""

    def scene(
        self, group: str, kind: str, *commits: tuple[str, int], converts_after: int = -1, partitions: int = 1
    ) -> None:
        """Commits by (member, generation), each of a larger offset than the one before, on these partitions in turn."""
        self.groups[group] = Group(group, kind, self.now)
        for number, (member, generation) in enumerate(commits):
            self.now += 10
            self.write((group, "t1-x", number % partitions), "commit", 100 + number, member, generation)
            if number == converts_after:
                self.event(group, "group_converted")


def scenes() -> Scenes:
    """What is found, and beside it what only looks like it."""
    world = Scenes()
    world.scene("two", "consumer", ("a", 3), ("b", 3))
    world.scene("taken-over", "consumer", ("a", 3), ("b", 3))
    world.event("taken-over", "member_replaced", "b")
    world.scene("came-back", "consumer", ("a", 3), ("b", 3), ("a", 3))
    world.event("came-back", "member_replaced", "b")
    world.scene("fenced", "consumer", ("a", 3), ("b", 4), ("a", 3))
    world.scene("older-epoch-of-its-own", "consumer", ("a", 4), ("a", 3))  # KIP-1251
    world.scene("older-of-its-own", "classic", ("a", 4), ("a", 3))
    world.scene("converted", "consumer", ("a", 4), ("b", 1), converts_after=0)
    world.scene("across", "classic", ("a", 3), ("b", 4), ("a", 3), partitions=2)
    world.scene("simple", "classic", ("a", 4), ("", -1), ("b", 5))
    world.scene("removed", "consumer", ("a", 4))
    world.remove(("removed", "t1-x", 0), "group_delete")
    world.scene("removed", "consumer", ("b", 1))
    return world


def test_generations_are_compared_within_a_life_and_a_protocol(spark: SparkSession) -> None:
    found = [(one["kind"], one["group"], one["expected"], one["found"]) for one in found_in(spark, scenes())]
    assert found == [
        ("fenced_generation", "across", 4, 3),
        ("two_members", "came-back", 101, 102),
        ("fenced_generation", "fenced", 4, 3),
        ("fenced_generation", "older-of-its-own", 4, 3),
        ("two_members", "two", 100, 101),
    ]


def test_what_is_older_than_the_events_is_not_judged(spark: SparkSession) -> None:
    """A conversion, or a static member that came back, would not be known."""
    world = scenes()
    assert found_in(spark, world, events_from=world.now + 1) == []
