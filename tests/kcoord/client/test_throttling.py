"""A client that is told to wait by a quota waits as long as it is told, and stays a member. In virtual time."""

from __future__ import annotations

from itertools import pairwise

from kcoord.client import MemberState
from kcoord.protocol.errors import Error
from tests.kcoord.client.scripted import Refusal, ScriptedCoordinator
from tests.kcoord.client.virtual_member import Member

TOLD_S = 1.0


def throttled(times: int) -> list[Refusal]:
    return [Refusal(Error.THROTTLING_QUOTA_EXCEEDED, retry_after="1")] * times


def stable(server: ScriptedCoordinator) -> Member:
    member = Member(server, session_timeout_ms=10_000, heartbeat_interval_ms=500, enable_auto_commit=False)
    assert member.poll()
    assert member.core.coordinator.state is MemberState.STABLE
    return member


def test_heartbeats_that_are_told_to_wait_for_minutes_cost_nothing() -> None:
    server = ScriptedCoordinator()
    member = stable(server)
    server.script("heartbeat", *throttled(1_000))
    member.driver.pass_time(120)
    gaps = [after - before for before, after in pairwise(member.at("heartbeat")[1:])]
    assert len(gaps) > 60
    assert min(gaps) >= TOLD_S - 1e-6
    assert max(gaps) < 2
    assert member.core.coordinator.state is MemberState.STABLE
    assert len(member.at("join")) == 2
    assert len(member.at("coordinator")) == 1, "its server still answers for the group: no reason to look again"


def test_commits_that_are_told_to_wait_are_sent_again_after_that() -> None:
    server = ScriptedCoordinator()
    member = stable(server)
    server.script("offsets/commit", *throttled(3))
    member.driver.run(member.core.commit(None, 30_000))
    sent = member.at("offsets/commit")
    assert len(sent) == 4
    assert min(after - before for before, after in pairwise(sent)) >= TOLD_S - 1e-6
    assert member.core.coordinator.state is MemberState.STABLE
