"""Heartbeats that are decided after a later one of their member (`checks.check_order`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.consumer.members import OVERTAKEN_MS
from groups.core.model.commands import Tick
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP, START, World


def shared() -> World:
    """m1 has all partitions of foo and was told to give half of them to m2."""
    made = World()
    made.set_topics(foo=6)
    made.stable("m1")
    made.advance(20_000)
    made.heartbeat("m1", 1)
    made.join("m2", "foo")
    told = made.heartbeat("m1", 1)
    assert told.assignment == {"foo": [0, 1, 2]}
    return made


@pytest.mark.parametrize("owned", [{}, {"foo": [0, 1, 2]}])
def test_a_late_heartbeat_releases_nothing(owned: dict[str, list[int]]) -> None:
    made = shared()
    made.advance(500)
    late = made.heartbeat("m1", 1, owned, age_ms=OVERTAKEN_MS + 600)
    assert late.error is Error.COORDINATOR_NOT_AVAILABLE
    assert made.assigned("m2") == {}, "m1 still reads them"
    made.heartbeat("m1", 1, {"foo": [0, 1, 2]})
    assert made.heartbeat("m2", 2).assignment == {"foo": [3, 4, 5]}


def test_a_late_join_does_not_start_the_member_over() -> None:
    made = shared()
    before = made.group
    assert made.join("m1", "foo", age_ms=OVERTAKEN_MS + 1).error is Error.COORDINATOR_NOT_AVAILABLE
    assert made.group == before


@pytest.mark.parametrize("epoch", [-1, -2])
def test_a_late_leave_does_not_remove_who_came_back(epoch: int) -> None:
    made = World()
    made.set_topics(foo=6)
    made.stable("m1", instance_id="i1")
    late = made.heartbeat("m1", epoch, instance_id="i1", age_ms=OVERTAKEN_MS + 1)
    assert late.error is Error.COORDINATOR_NOT_AVAILABLE
    assert made.member("m1").member_epoch > 0


def test_an_old_heartbeat_that_is_the_latest_of_its_member_counts() -> None:
    made = shared()
    made.advance(4_000)
    assert made.heartbeat("m1", 1, {"foo": [0, 1, 2]}, age_ms=4_000).error is Error.NONE
    assert made.heartbeat("m2", 2).assignment == {"foo": [3, 4, 5]}


def test_a_heartbeat_shortly_after_another_counts_whatever_the_clocks_of_servers_say() -> None:
    made = shared()
    assert made.heartbeat("m1", 1, {"foo": [0, 1, 2]}, age_ms=OVERTAKEN_MS).error is Error.NONE


def test_a_clock_that_was_set_back_refuses_nobody() -> None:
    made = shared()
    made.now -= 30_000
    assert made.heartbeat("m1", 1, {"foo": [0, 1, 2]}, age_ms=5_000).error is Error.NONE


def test_sessions_that_start_over_after_an_outage_make_no_heartbeat_late() -> None:
    made = shared()
    made.advance(4_000)
    assert made.consumer.armed_gap == 0
    made.gap = 1
    made.send(Tick(GROUP))
    assert made.consumer.armed_gap == 1
    assert made.heartbeat("m1", 1, {"foo": [0, 1, 2]}, age_ms=3_000).error is Error.NONE


def test_the_end_of_a_connection_makes_no_heartbeat_late() -> None:
    made = World()
    made.set_topics(foo=6)
    made.stable("m1")
    held = made.heartbeat("m1", 1, max_wait_ms=10_000)
    made.advance(4_000)
    made.abandon(held)
    assert made.heartbeat("m1", 1, age_ms=3_000).error is Error.NONE


def test_a_held_heartbeat_goes_on_after_its_wait() -> None:
    made = World()
    made.set_topics(foo=6)
    made.stable("m1")
    held = made.heartbeat("m1", 1, max_wait_ms=10_000)
    held.command = replace(held.command, age_ms=11_000)
    made.advance(8_000)
    made.join("m2", "foo")
    assert held.assignment == {"foo": [0, 1, 2]}
    assert made.now > START
