"""The rules of verdicts, without a service."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.model.types import RANKS, VerdictKind
from groups.engine.heartbeats import LAST_PARTS, STORED_PARTS
from kcoord.config import Config
from offsets.core.verdicts import (
    FIRST_SEEN,
    STUCK_STATES,
    OwnedPartition,
    StoredSession,
    Verdict,
    disputed,
    expiring,
    flapping,
    late,
    stale,
    stalled,
    stuck,
    unattended,
    uncovered,
    unsettled,
    with_beginnings,
    worst_first,
)
from offsets.verdicts import CHECKS, thresholds
from tests.conftest import START_MS

T = thresholds(Config({}))
NOW = START_MS
MINUTE = 60_000
OWNED = OwnedPartition(
    stable_since=NOW - 60 * MINUTE,
    log_end_offset=100,
    position=60,
    readable_since=NOW - 20 * MINUTE,
    committed_offset=60,
    committed_at=NOW - 10 * MINUTE,
)
"""Stalled for ten minutes."""


def test_each_kind_is_found_by_one_check() -> None:
    kinds = [kind for check in CHECKS.values() for kind in check.kinds]
    assert sorted(kinds) == sorted(VerdictKind)
    assert set(RANKS) == set(VerdictKind)


@pytest.mark.parametrize("state", [*STUCK_STATES, "Stable", "Empty", "Dead"])
def test_a_group_is_stuck_only_in_a_state_that_it_should_pass_through(state: str) -> None:
    since = NOW - T.stuck_ms
    assert stuck(state, since, T, NOW) == (since if state in STUCK_STATES else None)
    assert stuck(state, since + 1, T, NOW) is None


@given(
    session_ms=st.integers(6_000, 1_800_000),
    heartbeats=st.lists(st.floats(0.001, 1 / 3), min_size=1, max_size=40),
    seen=st.floats(0, 1),
)
def test_a_member_in_time_is_never_late_although_its_session_is_stored_behind(
    session_ms: int, heartbeats: list[float], seen: float
) -> None:
    """Whatever the pauses up to a third of the session, and whenever the row is looked at: the lane stores a session
    if a tenth has passed since it was stored before, and the last one after a fifth.
    """
    at, stored_at = NOW, NOW
    rows = [(NOW, NOW)]
    for pause in heartbeats:
        before, at = at, at + int(pause * session_ms)
        if stored_at < before and at - stored_at >= session_ms // LAST_PARTS > before - stored_at:
            rows.append((stored_at + session_ms // LAST_PARTS, before))
            stored_at = before
        if at - stored_at >= session_ms // STORED_PARTS:
            rows.append((at, at))
            stored_at = at
    looked_at = NOW + int((at - NOW) * seen)
    armed_at = [armed for written, armed in rows if written <= looked_at][-1]
    assert late(StoredSession(armed_at, armed_at + session_ms), looked_at, T) is None


@given(session_ms=st.integers(6_000, 60_000), percent=st.integers(45, 95))
def test_a_silent_member_is_late_before_its_session_ends(session_ms: int, percent: int) -> None:
    session = StoredSession(NOW, NOW + session_ms)
    rules = replace(T, late_percent=percent)
    assert late(session, session.deadline - 1, replace(T, late_percent=45)) == NOW
    first = next(at for at in range(session_ms) if late(session, NOW + at, rules) is not None)
    assert first * 100 >= session_ms * percent
    assert (first - 1) * 100 < session_ms * percent


def test_the_session_of_a_heartbeat_that_waits_on_the_server_counts_from_when_it_is_answered() -> None:
    waiting = StoredSession(NOW, NOW + 60_000 + 45_000)
    assert late(waiting, NOW + 60_000 + 5_000, T) is None
    assert late(waiting, NOW + 60_000 + 16_000, T) == NOW


def test_a_group_flaps_from_the_first_rebalance_in_the_window() -> None:
    begun = [NOW - 1_000 * n for n in range(T.flapping_rebalances)]
    assert flapping(begun, T, NOW) == begun[-1]
    assert flapping(begun[1:], T, NOW) is None
    assert flapping([*begun[1:], NOW - T.flapping_window_ms], T, NOW) is None


def test_an_owner_that_commits_nothing_is_stalled_since_its_last_commit() -> None:
    assert stalled(OWNED, T, NOW) == OWNED.committed_at
    assert stalled(replace(OWNED, committed_at=NOW - T.stalled_ms + 1), T, NOW) is None
    assert stalled(replace(OWNED, log_end_offset=60), T, NOW) is None, "there is nothing to read"
    assert stalled(OWNED, replace(T, stalled_lag=41), NOW) is None


@pytest.mark.parametrize(
    ("since", "why"),
    [("stable_since", "a new owner has time"), ("readable_since", "after a quiet hour there was nothing to read")],
)
def test_an_owner_is_judged_only_from_when_it_could_read(since: str, why: str) -> None:
    recent = NOW - T.stalled_ms
    assert stalled(replace(OWNED, committed_at=0, **{since: recent}), T, NOW) == recent
    assert stalled(replace(OWNED, committed_at=0, **{since: recent + 1}), T, NOW) is None, why


def test_an_owner_that_commits_the_same_offset_again_and_again_is_stalled() -> None:
    again = replace(OWNED, committed_at=NOW - 1_000)
    assert stalled(again, T, NOW) is None, "what it had committed before is not known"
    assert stalled(replace(again, earlier=(60, NOW - 7 * MINUTE)), T, NOW) == NOW - 7 * MINUTE
    assert stalled(replace(again, earlier=(59, NOW - 7 * MINUTE)), T, NOW) is None
    assert stalled(replace(again, earlier=(90, NOW - 7 * MINUTE)), T, NOW) is None, "a reset to an earlier offset"


def test_an_owner_that_never_commits_is_stalled_once_the_log_has_grown() -> None:
    never = replace(OWNED, committed_offset=None, committed_at=None)
    assert stalled(never, T, NOW) == OWNED.readable_since
    assert stalled(replace(never, log_end_offset=60), T, NOW) is None


@given(
    offsets=st.lists(st.integers(0, 50), min_size=2, max_size=30, unique=True).map(sorted),
    seen=st.integers(0, 10 * MINUTE),
)
def test_an_owner_that_advances_within_the_time_is_never_stalled(offsets: list[int], seen: int) -> None:
    """However far behind it is, and however slowly it commits (a commit each `stalled_ms`)."""
    times = [NOW + n * (T.stalled_ms - 1) for n in range(len(offsets))]
    now = min(times[0] + seen, times[-1])
    made = [(offset, at) for offset, at in zip(offsets, times, strict=True) if at <= now]
    earlier = [(offset, at) for offset, at in made if at <= now - T.stalled_ms]
    partition = replace(
        OWNED,
        stable_since=0,
        readable_since=0,
        committed_offset=made[-1][0],
        position=made[-1][0],
        committed_at=made[-1][1],
        earlier=earlier[-1] if earlier else None,
    )
    assert stalled(partition, T, now) is None


def test_partitions_without_an_owner_count_once_the_group_has_settled() -> None:
    settled = NOW - T.uncovered_ms
    assert uncovered(3, 2, "Stable", settled, T, NOW)
    assert not uncovered(3, 3, "Stable", settled, T, NOW)
    assert not uncovered(3, 2, "Stable", settled + 1, T, NOW)
    assert not uncovered(3, 2, "Empty", settled, T, NOW)


def test_stale_and_expiring_begin_at_their_thresholds() -> None:
    assert stale(NOW - T.stale_ms, T, NOW) is None
    assert stale(NOW - T.stale_ms - 1, T, NOW) == NOW - T.stale_ms - 1
    assert expiring(None, T, NOW) is None
    assert expiring(NOW + T.expiring_ms + 1, T, NOW) is None
    assert expiring(NOW + T.expiring_ms, T, NOW) == NOW + T.expiring_ms


def test_items_wait_without_members_and_stay_unsettled_for_as_long_as_an_owner_may_stall() -> None:
    since = NOW - T.stalled_ms
    assert unattended(1, "Empty", since, T, NOW) == since
    assert [
        unattended(0, "Empty", since, T, NOW),
        unattended(1, "Stable", since, T, NOW),
        unattended(1, "Empty", since + 1, T, NOW),
    ] == [None] * 3
    assert (unsettled(since, T, NOW), unsettled(since + 1, T, NOW)) == (since, None)


def test_an_earlier_end_is_disputed_for_as_long_as_it_is_not_stale() -> None:
    lately = NOW - T.stale_ms
    assert (disputed(lately, T, NOW), disputed(lately - 1, T, NOW), disputed(None, T, NOW)) == (lately, None, None)


def test_the_worst_comes_first_then_what_has_lasted_longest() -> None:
    verdicts = [
        Verdict(VerdictKind.STALE, 1),
        Verdict(VerdictKind.STALLED, 9, "b"),
        Verdict(VerdictKind.STALLED, 5, "a"),
        Verdict(VerdictKind.UNCOVERED, 10, "a"),
    ]
    assert [(verdict.kind.value, verdict.since) for verdict in worst_first(verdicts)] == [
        ("uncovered", 10), ("stalled", 5), ("stalled", 9), ("stale", 1),
    ]  # fmt: skip


def test_only_what_has_no_beginning_of_its_own_keeps_the_stored_one() -> None:
    for kind in VerdictKind:
        stored = {(kind, "t"): 3, (kind, "other"): 1}
        assert with_beginnings([Verdict(kind, 5, "t")], stored)[0].since == (3 if kind in FIRST_SEEN else 5)
        assert with_beginnings([Verdict(kind, 2, "t")], stored)[0].since == 2
