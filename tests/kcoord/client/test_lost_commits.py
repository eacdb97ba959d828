"""The service lost commits in a fail-over: the member commits again what it had acknowledged. In virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcoord.client import TopicPartition
from kcoord.protocol.errors import Error
from tests.kcoord.client.scripted import Refusal, ScriptedCoordinator
from tests.kcoord.client.virtual_member import Member

LOST = {"committed_offsets_lost": {"since": "2026-01-01T00:00:00.000Z", "until": "2026-01-01T00:00:09.000Z"}}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)

Tell = Callable[[Member], None]


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


@pytest.fixture
def member(server: ScriptedCoordinator) -> Member:
    """It has committed offsets 5 and 6, which the service has lost."""
    member = Member(server, enable_auto_commit=False)
    assert member.poll()
    commit(member, {T0: 5, T1: 6})
    server.committed = {("t", 0): 2}
    return member


def commit(member: Member, offsets: dict[TopicPartition, int]) -> None:
    member.driver.run(member.core.commit(offsets, 30_000))


def poll(member: Member) -> None:
    """And let what it began end."""
    member.poll()
    member.driver.pass_time(1)


def told(answer: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """The same answer, which tells of the loss."""
    return lambda body: {**answer(body), **LOST}


def test_a_commit_that_is_told_of_the_loss(server: ScriptedCoordinator, member: Member) -> None:
    server.script("offsets/commit", told(server._offsets_commit))
    commit(member, {T0: 7})
    poll(member)
    assert server.committed == {("t", 0): 7, ("t", 1): 6}
    assert member.core.offsets.committed_again == 1


def test_a_fetch_that_is_told_of_it_and_what_is_ahead_stays(server: ScriptedCoordinator, member: Member) -> None:
    server.committed["t", 1] = 60
    server.script("offsets/fetch", told(server._offsets_fetch))
    member.driver.run(member.core.committed([T0], False, None))
    poll(member)
    assert server.committed == {("t", 0): 5, ("t", 1): 60}


def test_the_same_loss_is_told_once_and_another_one_again(
    server: ScriptedCoordinator, member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    server.script("offsets/fetch", *[told(server._offsets_fetch)] * 3)
    member.driver.run(member.core.committed([T0], False, None))
    poll(member)
    sent = len(server.all("offsets/commit"))
    member.driver.run(member.core.committed([T0], False, None))
    poll(member)
    assert len(server.all("offsets/commit")) == sent
    assert [record.message.count("lost commits of") for record in caplog.records].count(1) == 1


def test_it_is_tried_again_until_it_succeeds(server: ScriptedCoordinator, member: Member) -> None:
    server.script("offsets/commit", told(server._offsets_commit), *[Refusal(Error.COORDINATOR_NOT_AVAILABLE)] * 2)
    commit(member, {T0: 7})
    for _ in range(4):
        poll(member)
    assert server.committed["t", 1] == 6
    assert len(server.all("offsets/commit")) == 5


def test_partitions_that_went_away_are_not_committed(server: ScriptedCoordinator, member: Member) -> None:
    """Somebody else may have committed them since."""
    member.core.subscription.set_assigned([T1])
    member.core.subscription.set_assigned([T0, T1])
    server.script("offsets/fetch", told(server._offsets_fetch))
    member.driver.run(member.core.committed([T0], False, None))
    poll(member)
    assert server.committed == {("t", 0): 2, ("t", 1): 6}
