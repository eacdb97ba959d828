"""The faults of a run and when they begin: a pure function of the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.chaos.workload import CLASSIC_SESSION_S, CONSUMER_SESSION_S

SESSION_S = max(CLASSIC_SESSION_S, CONSUMER_SESSION_S)
OUTAGE_S = 2 * SESSION_S
PAUSE_S = (0.5, 4.0)
"""Between the end of a fault and the next: sometimes before everything has recovered."""

KILL = "kill a server"
FREEZE = "freeze a server"
HAND_OVER = "stop a server"
CUT = "cut connections"
RESTART = "restart Postgres"
CRASH = "crash Postgres"
CELERY = "freeze Celery"
KILL_CELERY = "kill Celery"
JUMP = "set the clock ahead"
LEAP = "set the clock ahead of all sessions"
FREEZE_ALL = "outage: everything frozen"
KILL_ALL = "outage: everything dead"
KILL_CREW = "kill members"
FREEZE_CREW = "freeze members"

OUTAGES = (FREEZE_ALL, KILL_ALL)
SECONDS: dict[str, tuple[float, float]] = {
    KILL: (0.0, 0.0),
    FREEZE: (1.0, 8.0),
    HAND_OVER: (0.0, 0.0),
    CUT: (0.0, 0.0),
    RESTART: (0.0, 0.0),
    CRASH: (0.0, 0.0),
    CELERY: (3.0, 8.0),
    KILL_CELERY: (0.0, 0.0),
    JUMP: (0.5, 2.5),
    LEAP: (SESSION_S + 5.0, 3 * SESSION_S),
    FREEZE_ALL: (OUTAGE_S, OUTAGE_S),
    KILL_ALL: (OUTAGE_S, OUTAGE_S),
    KILL_CREW: (0.0, 0.0),
    FREEZE_CREW: (2.0, SESSION_S + 4.0),
}
"""Fault -> how long it lasts, or how far the clock goes; from, to."""

TIMELESS = (JUMP, LEAP)
"""Their seconds are not those that the run takes."""

RECOVERY_S = {RESTART: 3.0, CRASH: 4.0, KILL_ALL: 5.0}
"""What a fault takes beyond its seconds: the next one would otherwise only meet a service that is still starting."""


@dataclass(frozen=True)
class Fault:
    """One fault: `at` seconds after the beginning, on `target` ("" where there is no choice), for `s` seconds."""

    at: float
    name: str
    target: str
    s: float

    @property
    def over_at(self) -> float:
        """When it is over, with what it takes to recover."""
        return self.at + (0.0 if self.name in TIMELESS else self.s) + RECOVERY_S.get(self.name, 0.0)


def schedule(seed: int, seconds: float, servers: int, crews: int, kinds: Sequence[str] = tuple(SECONDS)) -> list[Fault]:
    """Faults for `seconds`: every kind once in an order drawn from the seed, then again, as long as there is time."""
    random = Random(f"schedule {seed}")
    found: list[Fault] = []
    at, bag = random.uniform(*PAUSE_S), list[str]()
    while True:
        if not bag:
            bag = random.sample(kinds, len(kinds))
        name = bag.pop()
        if name in (KILL, FREEZE, HAND_OVER):
            target = f"server-{random.randint(1, servers)}"
        else:
            target = f"c{random.randrange(crews)}" if name in (KILL_CREW, FREEZE_CREW) else ""
        fault = Fault(round(at, 2), name, target, round(random.uniform(*SECONDS[name]), 2))
        if fault.over_at > seconds:
            return found
        found.append(fault)
        at = fault.over_at + random.uniform(*PAUSE_S)
