"""A server dies under two hundred members of either protocol: they do not all come to the others at once."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import httpx
import pytest

from kcoord.client import ConsumerConfig, MemberState
from kcoord.client.core.consumer import ConsumerCore
from tests.kcoord.client.hosts import named
from tests.kcoord.client.scripted import ScriptedCoordinator
from tests.kcoord.client.scripted_group import ScriptedGroup
from tests.kcoord.client.sources import lettered
from tests.kcoord.client.virtual import Virtual
from tests.support.selection import sample

MEMBERS = 200
DIES_AT = 10.0
BACKOFF_S = 0.1
SPREAD_S = 0.5
"""What the settings below make of it: the first back-off, then a quarter of the heartbeat interval."""

INTERVAL_MS = 2_000
CLASSIC = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": INTERVAL_MS}


class TwoServers:
    """Servers a and b of one group; a is the coordinator, and dies. Notes when b is asked for what."""

    def __init__(self, group: ScriptedCoordinator) -> None:
        self.now = lambda: 0.0
        self.group = group
        self.at_b: list[tuple[float, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        is_dead = self.now() >= DIES_AT
        host, path = request.url.host, request.url.path
        if host == "b":
            self.at_b.append((self.now(), path))
        if is_dead and host == "a":
            raise httpx.ConnectError("refused", request=request)
        if path == "/v1/coordinator":
            # Its lease has not lapsed yet, so b still names it.
            return named("http://a")
        return self.group.handle(request)


def run(protocol: str, seed: int) -> tuple[TwoServers, ConsumerCore]:
    """One member, from its join until ten seconds after its server died."""
    group = ScriptedCoordinator() if protocol == "classic" else ScriptedGroup(interval_ms=INTERVAL_MS)
    servers = TwoServers(group)
    driver = Virtual(servers)
    servers.now = lambda: driver.now
    settings: dict[str, Any] = CLASSIC if protocol == "classic" else {"retry_backoff_max_ms": int(SPREAD_S * 1000)}
    config = ConsumerConfig.of(
        {
            "group_id": "g",
            "url": "http://a,http://b",
            "group_protocol": protocol,
            "watermark_interval_ms": 0,
            **settings,
        }
    )
    core = ConsumerCore(config, lettered(4, 1000), driver.condition, driver, random.Random(seed))
    core.subscribe(["t"], None, None)
    while core.coordinator.state is not MemberState.STABLE:
        driver.run(core.poll(100, None))
    driver.pass_time(2 * DIES_AT)
    return servers, core


@pytest.mark.parametrize("protocol", sample(["consumer", "classic"], "another crowd"))
def test_members_come_to_the_other_server_spread_and_in_time(protocol: str) -> None:
    first: list[float] = []
    for seed in range(MEMBERS):
        servers, core = run(protocol, seed)
        after = [at for at, _ in servers.at_b if at >= DIES_AT]
        served = [at for at, path in servers.at_b if at >= DIES_AT and path.endswith("heartbeat")]
        first.append(after[0])
        # They beat at the same times until then, so all of them notice with the same heartbeat.
        assert after[0] - DIES_AT < INTERVAL_MS / 1000 + BACKOFF_S + SPREAD_S
        assert served[0] - after[0] < 0.01, "the server that was asked serves, for the one it names is dead"
        assert core.coordinator.state is MemberState.STABLE
        assert len(servers.group.all("join")) == (2 if protocol == "classic" else 0), "nobody joined again"
    per_10_ms = Counter(int(at * 100) for at in first)
    assert max(per_10_ms.values()) <= MEMBERS * 0.08, per_10_ms
    assert max(first) - min(first) >= 0.8 * SPREAD_S
