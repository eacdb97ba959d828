"""What the figures have to reach, by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a figure's value, or on its ratio to the yardstick."""

    bound: float
    is_ratio: bool = False
    is_most: bool = False

    def is_reached_by(self, found: float) -> bool:
        """Whether this value, or ratio, is good enough."""
        return found <= self.bound if self.is_most else found >= self.bound

    def __str__(self) -> str:
        times = " x" if self.is_ratio else ""
        return f"{'≤' if self.is_most else '≥'} {self.bound:,g}{times}"


def _least(bound: float, *, ratio: bool = False) -> Target:
    return Target(bound, is_ratio=ratio)


def _most(bound: float, *, ratio: bool = False) -> Target:
    return Target(bound, is_ratio=ratio, is_most=True)


BESIDE = ("storm", "commit", "list", "retention", "spark")
TARGETS: Mapping[str, Target] = {
    "heartbeats.classic": _least(0.6, ratio=True),
    "heartbeats.consumer": _least(0.6, ratio=True),
    "heartbeats.classic.cpu": _least(20_000),
    "heartbeats.consumer.cpu": _least(20_000),
    "heartbeats.classic.wal": _most(60),
    "heartbeats.consumer.wal": _most(60),
    "commits.5.cpu": _least(25_000),
    "commits.50.cpu": _least(60_000),
    "processes.2.apart": _least(1.6, ratio=True),
    "joins.1000": _most(0.5),
    "joins.5000": _most(3),
    "joins.groups": _most(3),
    **{f"beside.{name}": _most(3, ratio=True) for name in BESIDE},
    "sizes.3000": _most(1.1, ratio=True),
    "members.100000": _most(1.2, ratio=True),
    "assignors.range.500x2000": _least(10, ratio=True),
    "assignors.range.10000x100000": _most(0.3),
    "access.revoked": _most(1),
    "kafka.heartbeats": _most(4, ratio=True),
}
"""The bounds that the project set itself. `kafka.heartbeats`: how many times as many Kafka does in a second of CPU."""
