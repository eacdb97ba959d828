"""What states mean, and what a group waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frontend.pages.group import reads
from frontend.pages.group.explained import explain, next_timer, wait_ends
from frontend.pages.group.reads import GroupPage
from frontend.ui import rows
from frontend.ui.members import member_state
from frontend.ui.states import BY_NAME, state
from groups.core.model.consumer_group import ConsumerGroupState, TimerKind
from groups.core.model.types import GroupState

NOW = 1_700_000_000_000
LEADER = "billing-3f2a81c0-1111-4222-8333-444455556666"


def member(pk: int, *, joined: bool = False, deadline: int | None = NOW + 9_000) -> rows.Member:
    return rows.Member(pk, f"m{pk}", None, "c", "h", joined, False, False, 10_000, deadline, NOW - 1_000, None, None, 0)


def page(
    state_name: str = "Stable",
    *,
    members: tuple[rows.Member, ...] = (),
    counts: reads.GroupCounts | None = None,
    committed: int = 0,
    timer: reads.MemberTimer | None = None,
    **header: object,
) -> GroupPage:
    filled = rows.GroupHeader(
        1,
        "billing",
        "classic",
        state_name,
        "Empty",
        NOW,
        7,
        "consumer",
        "range",
        LEADER,
        None,
        None,
        None,
        None,
        NOW,
        NOW,
    )
    joined = sum(one.awaiting_join for one in members)
    return GroupPage(
        now=NOW,
        header=replace(filled, **header),  # type: ignore[arg-type]
        counts=counts or reads.GroupCounts(len(members), joined, 0, None),
        earliest_timer=timer,
        members=members,
        owned=(),
        topics=(),
        drawn=(),
        more_topics=False,
        widths={},
        owners=(),
        totals=rows.PartitionTotals(committed, committed, 0, None),
        offsets=(),
        events=(),
        more_events=False,
    )


def test_every_state_of_the_protocol_has_words() -> None:
    assert set(BY_NAME) == {state.value for state in (*GroupState, *ConsumerGroupState)}
    assert all(known.label and known.meaning for known in BY_NAME.values())


def test_a_state_without_words_keeps_its_name() -> None:
    assert state("Reconciling").label == "Reconciling"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (page(members=(member(1),)), "One member works on generation 7."),
        (page("Empty"), "No members. Committed offsets are kept until they expire."),
        (page("Empty", committed=12), "No members. 12 committed offsets kept for the next member."),
        (page("Empty", counts=reads.GroupCounts(0, 0, 1, NOW)), "No members yet; 1 member id given out"),
        (
            page("PreparingRebalance", members=(member(1),), join_deadline=NOW + 2_900, join_delay_ms=3_000),
            "The group was empty. 1 member joined; the coordinator waits for more before",
        ),
        (
            page("PreparingRebalance", members=(member(1, joined=True), member(2)), join_deadline=NOW + 61_000),
            "A rebalance has begun. 1 of 2 members joined again; the coordinator waits for c@h (m2) to join.",
        ),
        (
            page("PreparingRebalance", members=tuple(member(n) for n in range(5)), join_deadline=NOW - 1),
            "A rebalance has begun. 0 of 5 members joined again; the coordinator waits for c@h (m0), c@h (m1), "
            "c@h (m2) and 2 more to",
        ),
        (
            page("CompletingRebalance", members=(member(1), member(2)), sync_deadline=NOW + 58_100),
            "2 members joined generation 7; the coordinator waits for billing-3f2a81c0… to assign",
        ),
    ],
)
def test_explanations(given: GroupPage, text: str) -> None:
    assert explain(given).startswith(text)


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        (page("PreparingRebalance", join_deadline=NOW + 9_000), NOW + 9_000),
        (page("CompletingRebalance", sync_deadline=NOW + 7_000), NOW + 7_000),
        (page("PreparingRebalance", join_deadline=NOW), None),
        (page("Stable"), None),
    ],
)
def test_when_the_wait_ends(given: GroupPage, ends: int | None) -> None:
    assert wait_ends(given) == ends


def test_the_next_timer_is_the_earliest_and_says_what_it_does() -> None:
    given = page(timer=reads.MemberTimer("m1", "session", NOW + 4_000), join_deadline=NOW + 9_000)
    timer = next_timer(given)
    assert timer is not None
    assert (timer.at, timer.what.seen(timer.at, NOW), timer.late) == (NOW + 4_000, "session of m1 ends", False)
    assert next_timer(page()) is None


def test_a_timer_long_overdue_is_late() -> None:
    timer = next_timer(page(timer=reads.MemberTimer("m1", "session", NOW - 5_001)))
    assert timer is not None
    assert timer.late
    assert timer.what.seen(timer.at, NOW) == "session of m1 should have ended"


@pytest.mark.parametrize(
    ("group_state", "given", "label"),
    [
        ("Stable", member(1), "Active"),
        ("Stable", replace(member(1), pending_sync=True), "Not synced yet"),
        ("Stable", member(1, deadline=NOW), "Overdue"),
        ("PreparingRebalance", member(1, joined=True), "Joined"),
        ("PreparingRebalance", member(1), "Not joined yet"),
        ("CompletingRebalance", replace(member(1), awaiting_sync=True), "Syncing"),
        ("CompletingRebalance", member(1), "Joined"),
    ],
)
def test_member_states(group_state: str, given: rows.Member, label: str) -> None:
    assert member_state(given, group_state, NOW).label == label


@pytest.mark.parametrize("kind", list(TimerKind))
def test_every_timer_of_a_consumer_member_has_words(kind: TimerKind) -> None:
    timer = next_timer(page(timer=reads.MemberTimer("m1", kind.value, NOW)))
    assert timer is not None
    assert "m1" in timer.what.coming
    assert "m1" in timer.what.overdue
