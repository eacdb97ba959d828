"""Counts of the event loop, as Prometheus reads them: the same text as that of prometheus-client's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest

from kcoord.metrics import Latencies, Tallies

BUCKETS = (0.001, 0.25, 1, 10)


@pytest.fixture
def tallies() -> Iterator[Tallies]:
    found = Tallies("kcoord_test_tallies", "Things.", ["kind", "error"])
    yield found
    REGISTRY.unregister(found)


def text(collector: Tallies | Latencies) -> bytes:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry)


def test_a_counter(tallies: Tallies) -> None:
    usual = Counter("kcoord_test_tallies", "Things.", ["kind", "error"], registry=(own := CollectorRegistry()))
    for labels, amount in ((("a", "NONE"), 1), (("b", 'said "no"'), 3), (("a", "NONE"), 2)):
        tallies.labels(*labels).inc(amount)
        usual.labels(*labels).inc(amount)
    assert text(tallies) == generate_latest(own)
    assert tallies.labels("a", "NONE").value == 3


def test_a_counter_without_labels() -> None:
    found = Tallies("kcoord_test_plain", "Things.", [])
    found.labels().inc()
    usual = Counter("kcoord_test_plain", "Things.", registry=(own := CollectorRegistry()))
    usual.inc()
    assert text(found) == generate_latest(own)
    REGISTRY.unregister(found)


@given(st.lists(st.sampled_from((0.0, 0.0005, 0.001, 0.002, 0.25, 0.5, 1.0, 5.0, 10.0, 10.5, 1e9))))
def test_a_histogram(seconds: list[float]) -> None:
    found = Latencies("kcoord_test_seconds", "Time.", "route", BUCKETS)
    usual = Histogram("kcoord_test_seconds", "Time.", ["route"], buckets=BUCKETS, registry=(own := CollectorRegistry()))
    for one in seconds:
        found.labels("/x").observe(one)
        usual.labels("/x").observe(one)
    assert text(found) == generate_latest(own)
    REGISTRY.unregister(found)


def test_names_are_taken_once(tallies: Tallies) -> None:
    with pytest.raises(ValueError, match="Duplicated"):
        Tallies("kcoord_test_tallies", "Others.", [])
