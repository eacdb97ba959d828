"""The core without any input or output: minutes of a member's life in virtual time, the same in every run."""

from __future__ import annotations

import pytest

from kcoord.client import MemberState
from kcoord.protocol.errors import Error
from tests.kcoord.client.scripted import Refusal, ScriptedCoordinator
from tests.kcoord.client.scripted_group import ScriptedGroup
from tests.kcoord.client.virtual_member import Member


def test_heartbeats_keep_their_interval_and_a_silent_user_leaves_on_time() -> None:
    member = Member(ScriptedCoordinator(), max_poll_interval_ms=301_000)
    assert member.poll()
    assert member.core.coordinator.state is MemberState.STABLE
    member.driver.pass_time(310)
    assert member.at("heartbeat") == pytest.approx([3.0 * n for n in range(1, 101)])
    assert member.at("leave") == [301.0], "not at the next heartbeat"
    assert member.core.coordinator.state is MemberState.UNJOINED
    assert member.poll(), "and the next poll joins again"
    assert len(member.at("join")) == 4


def test_automatic_commits_come_every_interval() -> None:
    member = Member(ScriptedCoordinator(), max_poll_records=1)
    while member.driver.now < 21:
        member.poll()
        member.driver.pass_time(1)
    assert member.at("offsets/commit") == pytest.approx([5, 10, 15, 20], abs=1)


def test_an_outage_is_retried_with_growing_pauses() -> None:
    server = ScriptedCoordinator()
    server.script("join", *[Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS)] * 8)
    member = Member(server)
    while not member.poll():
        pass
    pauses = [later - earlier for earlier, later in zip(member.at("join"), member.at("join")[1:], strict=False)]
    for pause, plain in zip(pauses, [0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1], strict=False):
        assert 0.8 * plain <= pause <= 1.2 * plain


def test_member_of_a_consumer_group_leaves_on_time() -> None:
    server = ScriptedGroup(interval_ms=5_000)
    member = Member(server, group_protocol="consumer")
    assert member.poll()
    member.driver.pass_time(310)
    assert server.leaves() == [-1]
    assert member.times[-1] == (300.0, "consumer-heartbeat")
    gaps = [b - a for a, b in zip(member.at("consumer-heartbeat"), member.at("consumer-heartbeat")[1:], strict=False)]
    assert max(gaps) <= 5.0
    assert member.driver.run(member.core.close(True, member.driver.now + 1)) is True


def test_close_commits_and_leaves_in_no_time() -> None:
    server = ScriptedCoordinator()
    member = Member(server)
    assert member.poll()
    before = member.driver.now
    assert member.driver.run(member.core.close(True, before + 30)) is True
    assert server.apis()[-2:] == ["offsets/commit", "leave"]
    assert member.driver.now == before
