"""The assignors beside kafka-python's; `python -m tests.bench.assignors` measures more of them."""

from __future__ import annotations

from tests.bench import assignors
from tests.bench.assignors import Shape
from tests.bench.bench import Bench
from tests.bench.figures import Figure

COMPARED = (Shape(50, 1, 200), Shape(500, 1, 2_000))
LARGE = Shape(10_000, 1, 100_000)
NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")


def run(bench: Bench) -> None:
    """CPU time of the pure functions, in this process."""
    middle = COMPARED[-1]
    for name in NAMES:
        shapes = (COMPARED[0],) if "sticky" in name else COMPARED
        for shape in shapes:
            found = assignors.client(name, shape)
            assert found.kafka_python_ms is not None
            key = f"assignors.{name}.{shape.members}x{shape.partitions}"
            # How many times as fast: the ratio of the rates, so that more is better.
            rates = 1_000 / found.ours_ms, 1_000 / found.kafka_python_ms
            bench.add(Figure(key, f"{name}, {shape}", rates[0], "/s", "kafka-python", rates[1]))
    for name in NAMES:
        small, large = assignors.client(name, middle), assignors.client(name, LARGE)
        per_member = small.ours_ms / middle.members
        key = f"assignors.{name}.{LARGE.members}x{LARGE.partitions}"
        base = per_member * LARGE.members / 1_000
        bench.add(Figure(key, f"{name}, {LARGE}", large.ours_ms / 1_000, "s", "500 x 2,000 per member", base))
