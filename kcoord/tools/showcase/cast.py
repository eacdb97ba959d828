"""Which groups and topics the showcase has. Pure: the same number and seed give the same groups."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product

TEAMS = ("billing", "search", "warehouse", "mailing", "fraud", "catalog", "shipping", "reports", "media", "support")
JOBS = (
    "invoices", "indexer", "loader", "exports", "thumbnails", "reconcile", "notifier", "scoring", "sync", "archiver",
    "prices", "sessions", "labels", "returns", "alerts", "payments", "imports", "feeds", "metrics", "cleanup",
)  # fmt: skip
LEAST_GROUPS = 45
ASSIGNORS = {
    "classic": ("cooperative-sticky", "range", "roundrobin", "sticky"),
    "consumer": ("uniform", "range"),
    "share": ("simple",),
}


class Behaviour(str, Enum):
    """How the members of a group behave."""

    STEADY = "steady"
    SLOW = "slow"
    IDLE = "idle"
    ROLLING = "rolling"
    STALLED = "stalled"
    LATE = "late"
    STUCK_JOINING = "stuck-joining"
    STUCK_SYNCING = "stuck-syncing"
    STUCK_REVOKING = "stuck-revoking"
    UNCOVERED = "uncovered"
    FLAPPING = "flapping"
    STALE = "stale"
    EXPIRING = "expiring"
    EMPTY = "empty"
    NEW = "new"
    HELD = "held"
    ZOMBIE = "zombie"
    MIXED = "mixed"
    REGEX = "regex"
    STATIC = "static"
    TRANSACTION = "transaction"
    OPAQUE = "opaque"
    LARGE = "large"
    DISPUTED = "disputed"
    QUEUE = "queue"
    UNATTENDED = "unattended"
    UNSETTLED = "unsettled"


CLASSIC_ONLY = frozenset(
    {
        Behaviour.LATE,
        Behaviour.STUCK_JOINING,
        Behaviour.STUCK_SYNCING,
        Behaviour.UNCOVERED,
        Behaviour.OPAQUE,
        Behaviour.STATIC,
        Behaviour.DISPUTED,
    }
)
CONSUMER_ONLY = frozenset({Behaviour.STUCK_REVOKING, Behaviour.MIXED, Behaviour.REGEX})
SHARE_ONLY = frozenset({Behaviour.QUEUE, Behaviour.UNATTENDED, Behaviour.UNSETTLED})
ORDINARY = (
    (Behaviour.STEADY, 14),
    (Behaviour.IDLE, 3),
    (Behaviour.SLOW, 2),
    (Behaviour.EMPTY, 2),
    (Behaviour.ROLLING, 1),
)
"""What the groups beyond the first of each kind do, with weights."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. `rate`: records per second and partition; `is_reported`: its watermarks are."""

    name: str
    partitions: int
    rate: float
    is_reported: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """One group. `protocol`: "classic", "consumer" or "share"; `assignor`: that its members vote for."""

    group_id: str
    behaviour: Behaviour
    protocol: str
    assignor: str
    topic: Topic
    members: int


def cast(groups: int, seed: int) -> list[Part]:
    """`groups` groups: each behaviour once in each protocol that has it, then mostly healthy ones.

    Raises ValueError for fewer than LEAST_GROUPS.
    """
    if groups < LEAST_GROUPS:
        raise ValueError(f"--groups: {groups}; at least {LEAST_GROUPS} are needed to show everything")
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    names = _names(chance)
    behaviours = [*_one_of_each(), *_ordinary(chance)]
    while len(behaviours) < groups:
        behaviours.extend(_ordinary(chance))
    return [_part(next(names), behaviour, protocol, chance) for behaviour, protocol in behaviours[:groups]]


def labels(part: Part) -> dict[str, str]:
    """Whose group it is, whom to call and what to do."""
    team = part.group_id.split("-", 1)[0]
    return {
        "owner": team,
        "contact": f"https://chat.example.com/{team}-on-call",
        "runbook": f"https://wiki.example.com/runbooks/{part.group_id}",
    }


def topics(parts: Sequence[Part]) -> list[Topic]:
    """The topics of these groups, each once."""
    return list({part.topic.name: part.topic for part in parts}.values())


def _names(chance: random.Random) -> Iterator[str]:
    names = [f"{team}-{job}" for team, job in product(TEAMS, JOBS)]
    chance.shuffle(names)
    number = 1
    while True:
        yield from (name if number == 1 else f"{name}-{number}" for name in names)
        number += 1


def _one_of_each() -> Iterator[tuple[Behaviour, str]]:
    for behaviour in Behaviour:
        if behaviour in SHARE_ONLY:
            yield behaviour, "share"
            continue
        if behaviour not in CONSUMER_ONLY:
            yield behaviour, "classic"
        if behaviour not in CLASSIC_ONLY:
            yield behaviour, "consumer"


def _ordinary(chance: random.Random) -> list[tuple[Behaviour, str]]:
    drawn = chance.choices([kind for kind, _ in ORDINARY], [weight for _, weight in ORDINARY], k=20)
    return [(behaviour, chance.choice(("classic", "consumer"))) for behaviour in drawn]


def _part(group_id: str, behaviour: Behaviour, protocol: str, chance: random.Random) -> Part:
    partitions, members, rate = chance.choice((4, 6, 8, 12, 16)), chance.randint(2, 4), chance.uniform(0.5, 20)
    if behaviour is Behaviour.LARGE:
        partitions, members, rate = 240, 40, 1.0
    elif behaviour is Behaviour.IDLE:
        rate = 0.0
    elif behaviour in SHARE_ONLY:
        partitions, rate = 4, 0.3
    topic = Topic(group_id.replace("-", ".", 1), partitions, rate, behaviour is not Behaviour.STALE)
    return Part(group_id, behaviour, protocol, chance.choice(ASSIGNORS[protocol]), topic, members)
