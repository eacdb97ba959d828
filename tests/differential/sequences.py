"""Sequences of steps, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TOPICS = {"orders": 3, "refunds": 1}
UNKNOWN_TOPIC = "missing"
SLOTS = range(3)
STATIC = 2
"""The slot whose member has an instance id: a live member never changes its own, which brokers handle badly."""
KNOWS_EPOCHS, WITHOUT_RETENTION = 9, 5
"""The oldest versions of OffsetCommit that are played: of members that have epochs, and of all others."""
LONG_METADATA = 5_000
"""Characters, more than `offset.metadata.max.bytes`."""


@dataclass(frozen=True, slots=True)
class Step:
    """`kind`: a method of `playing.Player`; `given`: its arguments, which JSON can have."""

    kind: str
    given: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


def sequence(seed: int, length: int) -> list[Step]:
    """The steps of a seed: of a group of the consumer or of the classic protocol, and of its offsets."""
    chance = random.Random(seed)
    kinds = chance.choice((CONSUMER, CONSUMER, CLASSIC)) | OFFSETS
    first = next(iter(kinds))
    names, weights = list(kinds), [weight for weight, _ in kinds.values()]
    chosen = [first, *chance.choices(names, weights, k=length - 1)]
    return [Step(name, kinds[name][1](chance)) for name in chosen]


def _join(chance: random.Random) -> dict[str, Any]:
    """Votes are for the first assignor, so another one never wins: Kafka bumps the epoch for that.

    Nobody joins without topics: Kafka then may assign it those of others (consumer.md 0.0).
    """
    return {
        "slot": chance.choice(SLOTS),
        "version": 1,
        "topics": chance.choice([["orders"], ["orders"], ["orders", "refunds"], ["refunds"], [UNKNOWN_TOPIC]]),
        "assignor": chance.choice([None, None, None, "range", "none-such"]),
    }


def _beat(chance: random.Random) -> dict[str, Any]:
    return {
        "slot": chance.choice(SLOTS),
        "version": chance.choice([0, 1]),
        "epoch": chance.choice(["current"] * 6 + ["newer", "previous"]),
        "owned": chance.choice(["assigned"] * 3 + ["none", None]),
        "topics": chance.choice([None] * 6 + [["orders"], ["orders", "refunds"], ["refunds"]]),
    }


def _leave_by_beat(chance: random.Random) -> dict[str, Any]:
    return {"slot": chance.choice(SLOTS), "version": chance.choice([0, 1]), "epoch": chance.choice([-1, -1, -2, -3])}


def _partitions(chance: random.Random) -> list[tuple[str, int]]:
    every = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
    return chance.sample([*every, ("orders", 7), (UNKNOWN_TOPIC, 0)], k=chance.randint(1, 3))


def _commit(chance: random.Random, oldest: int) -> dict[str, Any]:
    return {
        "slot": chance.choice([*SLOTS, None]),
        "version": chance.randint(oldest, 10),
        "epoch": chance.choice(["current"] * 4 + ["newer", "previous"]),
        "partitions": _partitions(chance),
        "offset": chance.randint(0, 99),
        "metadata": chance.choice([0, 3, 3, LONG_METADATA]),
    }


def _fetch(chance: random.Random) -> dict[str, Any]:
    return {
        "slot": chance.choice([None, None, *SLOTS]),
        "version": chance.randint(2, 10),
        "epoch": chance.choice(["current", "current", "newer"]),
        "partitions": chance.choice([None, _partitions(chance)]),
        "stable": chance.random() < 0.3,
    }


def _transaction(chance: random.Random) -> dict[str, Any]:
    return {
        "slot": chance.choice([*SLOTS, None, None]),
        "version": chance.choice([3, 4, 5, 6]),
        "epoch": chance.choice(["current"] * 3 + ["newer"]),
        "partitions": _partitions(chance),
        "offset": chance.randint(100, 199),
        "committed": chance.random() < 0.6,
    }


def _leave(chance: random.Random) -> dict[str, Any]:
    return {
        "slot": chance.choice(SLOTS),
        "version": chance.randint(0, 5),
        "by": chance.choice(["id", "id", "instance", "both", "nobody"]),
    }


def _versions(last: int) -> Callable[[random.Random], dict[str, Any]]:
    return lambda chance: {"version": chance.randint(0, last)}


def _of_member(last: int) -> Callable[[random.Random], dict[str, Any]]:
    return lambda chance: {
        "slot": chance.choice(SLOTS),
        "version": chance.randint(0, last),
        "epoch": chance.choice(["current"] * 3 + ["newer", "previous"]),
    }


Kinds = dict[str, tuple[int, Callable[[random.Random], dict[str, Any]]]]
"""What may follow, with its weight; the first is what a sequence begins with."""

CONSUMER: Kinds = {
    "join": (6, _join),
    "beat": (12, _beat),
    "leave_by_beat": (2, _leave_by_beat),
    "commit": (6, lambda chance: _commit(chance, KNOWS_EPOCHS)),
}
CLASSIC: Kinds = {
    "rebalance": (6, lambda chance: {"slot": chance.choice(SLOTS), "version": chance.randint(5, 9)}),
    "heartbeat": (4, _of_member(4)),
    "commit": (6, lambda chance: _commit(chance, WITHOUT_RETENTION)),
}
OFFSETS: Kinds = {
    "fetch": (6, _fetch),
    "transaction": (2, _transaction),
    "leave": (2, _leave),
    "delete_offsets": (2, lambda chance: {"partitions": _partitions(chance)}),
    "delete_group": (1, _versions(3)),
    "describe": (2, _versions(6)),
    "describe_consumer": (3, _versions(1)),
    "list_groups": (2, _versions(5)),
}
