"""Counters and histograms for what happens in every request: only the event loop's thread counts.

Those of prometheus-client are for any thread: each count takes a lock and several calls, and the five of a heartbeat
were a tenth of its cost. These add to plain numbers, and make series of them when they are asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Tally:
    """One series of `Tallies`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, amount: int = 1) -> None:
        """Count `amount` more."""
        self.value += amount


class Tallies(Collector):
    """A counter. Parameters: its name without `_total`, what it says, the names of its labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._name, self._documentation, self._labels = name, documentation, tuple(labels)
        self._found: dict[tuple[str, ...], Tally] = {}
        REGISTRY.register(self)

    def labels(self, *values: str) -> Tally:
        """The series with these labels, by position."""
        found = self._found.get(values)
        if found is None:
            assert len(values) == len(self._labels), (self._name, values)
            found = self._found.setdefault(values, Tally())
        return found

    def describe(self) -> Iterator[Metric]:
        """Its name, for the registry."""
        yield CounterMetricFamily(self._name, self._documentation, labels=self._labels)

    def collect(self) -> Iterator[Metric]:
        """All series as they are now."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, tally in tuple(self._found.items()):
            family.add_metric(values, tally.value)
        yield family


class Durations:
    """One series of `Latencies`. `counts`: by bucket, the last one for what is longer than every bound."""

    __slots__ = ("_bounds", "counts", "seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Something took `seconds`."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.seconds += seconds


class Latencies(Collector):
    """A histogram of seconds. Parameters: name, what it says, the name of its label, the bounds of its buckets."""

    def __init__(self, name: str, documentation: str, label: str, buckets: Sequence[float]) -> None:
        self._name, self._documentation, self._label = name, documentation, label
        self._bounds = tuple(float(bound) for bound in buckets)
        self._found: dict[str, Durations] = {}
        REGISTRY.register(self)

    def labels(self, value: str) -> Durations:
        """The series with this label."""
        found = self._found.get(value)
        if found is None:
            found = self._found.setdefault(value, Durations(self._bounds))
        return found

    def describe(self) -> Iterator[Metric]:
        """Its name, for the registry."""
        yield HistogramMetricFamily(self._name, self._documentation, labels=[self._label])

    def collect(self) -> Iterator[Metric]:
        """All series as they are now."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=[self._label])
        bounds = [str(floatToGoString(bound)) for bound in (*self._bounds, float("inf"))]  # type: ignore[no-untyped-call]
        for value, found in tuple(self._found.items()):
            family.add_metric([value], list(zip(bounds, accumulate(found.counts), strict=True)), found.seconds)
        yield family
