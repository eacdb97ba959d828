"""Which groups and members there are. A pure function of the seed: a run can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

CLASSIC_SESSION_S = 10.0
CONSUMER_SESSION_S = 10.0
HEARTBEAT_S = 2.0
"""lease (3 s) + heartbeat interval + client timeout (a third of the session) + one retry stays below the session."""

COMMIT_S = 3.0
POLL_INTERVAL_S = 120.0
"""Longest time between polls, which is also the rebalance timeout: longer than any fault, so that it removes nobody."""

REQUEST_MS = 14_000
"""A request that was given up may no longer write: its age, and then its transaction, must be over before.

The age counts from when a server has read the request: on a machine that is loaded with other work, seconds after it
was sent.
"""

SETTINGS = {
    "KCOORD_REQUEST_MAX_AGE_MS": 8_000,
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 500,
    "KCOORD_GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS": int(CONSUMER_SESSION_S * 1000),
    "KCOORD_GROUP_CONSUMER_SESSION_TIMEOUT_MS": int(CONSUMER_SESSION_S * 1000),
    "KCOORD_GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS": 1_000,
    "KCOORD_GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": int(HEARTBEAT_S * 1000),
    "KCOORD_EVENTS_MAX_PER_GROUP": 1_000_000,
}
"""Of the service: sessions as short as the rule above allows, and every event is kept."""

STRATEGIES = (("range",), ("cooperative-sticky",), ("range", "cooperative-sticky"))


@dataclass(frozen=True)
class GroupSpec:
    """A group with a topic of its own."""

    name: str
    protocol: str
    partitions: int
    strategy: tuple[str, ...]

    @property
    def topic(self) -> str:
        """What its members share."""
        return f"{self.name}-topic"

    @property
    def session_s(self) -> float:
        """The session of its members."""
        return CLASSIC_SESSION_S if self.protocol == "classic" else CONSUMER_SESSION_S


@dataclass(frozen=True)
class MemberSpec:
    """A member of a group. `instance` makes it static."""

    name: str
    group: GroupSpec
    instance: str | None

    def settings(self, url: str, token: str) -> dict[str, Any]:
        """Of its consumer."""
        common: dict[str, Any] = {
            "group_id": self.group.name,
            "url": url,
            "token": token,
            "client_id": self.name.replace("/", "-"),
            "group_instance_id": self.instance,
            "group_protocol": self.group.protocol,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "max_poll_interval_ms": int(POLL_INTERVAL_S * 1000),
            "request_timeout_ms": REQUEST_MS,
            "max_wait_ms": 10_000,
            "default_api_timeout_ms": REQUEST_MS + 2_000,
            "fetch_wait_ms": 500,
            "watermark_interval_ms": 0,
            "metadata_max_age_ms": 20_000,
        }
        if self.group.protocol == "classic":
            common["session_timeout_ms"] = int(self.group.session_s * 1000)
            common["heartbeat_interval_ms"] = int(HEARTBEAT_S * 1000)
            common["partition_assignment_strategy"] = self.group.strategy
        return common


@dataclass(frozen=True)
class Workload:
    """All groups, and the members by the process that runs them."""

    groups: tuple[GroupSpec, ...]
    crews: dict[str, tuple[MemberSpec, ...]]


def workload(seed: int, members: int, groups: int, crews: int) -> Workload:
    """Both protocols by turns, about one member in five static, members of a group spread over the processes."""
    random = Random(f"workload {seed}")
    each = [members // groups + (number < members % groups) for number in range(groups)]
    made = [
        GroupSpec(
            f"chaos-{number:02d}",
            "consumer" if number % 2 else "classic",
            random.randint(size, 2 * size),
            random.choice(STRATEGIES),
        )
        for number, size in enumerate(each)
    ]
    names = [f"c{number}" for number in range(crews)]
    found: dict[str, list[MemberSpec]] = {name: [] for name in names}
    for first, (group, size) in enumerate(zip(made, each, strict=True)):
        for number in range(size):
            crew = names[(first + number) % crews]
            instance = f"static-{number}" if random.random() < 0.2 else None
            found[crew].append(MemberSpec(f"{crew}/{group.name}-{number}", group, instance))
    return Workload(tuple(made), {name: tuple(specs) for name, specs in found.items()})
