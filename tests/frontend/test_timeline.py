"""Events in words: every kind, cause and reason that the core can write has them."""

from __future__ import annotations

import pytest

from frontend.ui import events as timeline
from frontend.ui.rows import Event
from groups.core.model.events import EventKind
from groups.core.model.types import Cause

MEMBER = "billing-3f2a81c0-1111-4222-8333-444455556666"


def event(kind: str, generation: int = 8, member: str | None = MEMBER, **detail: object) -> Event:
    return Event(1, 1_700_000_000_000, kind, generation, member, detail)


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_has_words_even_without_any_detail(kind: EventKind) -> None:
    line = timeline.line(event(kind.value))
    assert kind.value in timeline.SENTENCES
    assert line.text
    assert "_" not in line.text


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("kind", ["rebalance_started", "group_epoch_bumped", "member_removed"])
def test_every_cause_has_words(cause: Cause, kind: str) -> None:
    assert cause.value in timeline.CAUSES
    assert "_" not in timeline.line(event(kind, cause=cause.value)).text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (event("member_joined", client_host="10.0.0.7"), "billing-3f2a81c0… joined from 10.0.0.7"),
        (event("member_joined", instance_id="b-1"), "billing-3f2a81c0… joined as static member b-1"),
        (
            event("member_expired", cause="session_expired", session_timeout_ms=6_000),
            "billing-3f2a81c0… expired after 6 s without a heartbeat",
        ),
        (
            event("rebalance_started", cause="session_expired"),
            "Rebalance started: billing-3f2a81c0… sent no heartbeat in time",
        ),
        (
            event("rebalance_completed", member=None, members=3, duration_ms=1_204, leader=MEMBER),
            "Generation 8: 3 members joined, took 1.2 s; billing-3f2a81c0… leads",
        ),
        (
            event("assignment_stored", member=None, members=3, duration_ms=41),
            "Generation 8 is stable: partitions assigned to 3 members, took 41 ms",
        ),
        (
            event("deadlines_rearmed", member=None, members=3),
            "The sessions of 3 members start over in full: for a while nobody could renew them",
        ),
        (
            event("deadlines_rearmed", member=None, members=1),
            "The session of its member starts over in full: for a while nobody could renew them",
        ),
        (event("member_left", cause="member_left"), "billing-3f2a81c0… left"),
        (
            event("member_removed", cause="sync_timed_out"),
            "billing-3f2a81c0… did not sync in time and was removed",
        ),
        (event("member_removed", cause="group_full"), "billing-3f2a81c0… was refused: the group is full"),
        (event("member_removed", cause="unheard_of"), "billing-3f2a81c0… was removed"),
        (
            event("member_removed", cause="member_kicked", principal="ann", reason="its host hangs"),
            "billing-3f2a81c0… was removed by ann",
        ),
        (event("group_epoch_bumped", cause="member_kicked"), "Epoch 8: billing-3f2a81c0… was removed by an operator"),
        (
            event("group_held", member=None, principal="ann", until=1_769_860_800_000, members=3, reason="bug 17"),
            "Group held until 2026-01-31 12:00:00.000 UTC: 3 members removed, no member can join, by ann",
        ),
        (event("hold_released", member=None, principal="ann"), "Hold ended, by ann: members can join"),
        (event("hold_released", member=None), "Hold expired: members can join"),
        (
            event("config_changed", member=None, principal="ann", settings={"consumer.assignor": ["uniform", "range"]}),
            "Settings changed: consumer.assignor uniform → range, by ann",
        ),
        (event("something_new"), "Something new: billing-3f2a81c0…"),
    ],
)
def test_sentences(given: Event, text: str) -> None:
    assert timeline.line(given).text == text


def test_the_words_of_a_client_stand_beside_ours() -> None:
    line = timeline.line(event("member_left", cause="member_left", reason="the consumer is being closed"))
    assert (line.text, line.note) == ("billing-3f2a81c0… left", "the consumer is being closed")


def flapping(*kinds: str, name: str = "indexer@10.0.0.7") -> list[Event]:
    """Events about members of one name, the newest first, each with an id of its own."""
    return [
        Event(100 - n, 1_700_000_000_000 - n, kind, 8, f"m{n}", {}, {f"m{n}": name}) for n, kind in enumerate(kinds)
    ]


CYCLE = (
    "assignment_stored",
    "rebalance_completed",
    "rebalance_started",
    "member_left",
    "group_emptied",
    "member_joined",
)


def test_a_member_that_comes_and_goes_is_one_line() -> None:
    events = flapping(*CYCLE * 3)
    (line,) = timeline.folded(events)
    assert line.text == "3 × indexer@10.0.0.7 joined and left"
    assert line.folded == timeline.lines(events)
    assert (line.id, line.at) == (events[0].id, events[0].at)


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (("member_expired", "member_joined") * 4, "4 × indexer@10.0.0.7 joined and expired"),
        (
            ("member_left", "member_joined") * 3 + ("member_removed",),
            "indexer@10.0.0.7 joined 3 times and left or was removed 4 times",
        ),
    ],
)
def test_it_says_how_it_went_and_how_often(kinds: tuple[str, ...], text: str) -> None:
    assert [line.text for line in timeline.folded(flapping(*kinds))] == [text]


@pytest.mark.parametrize(
    "events",
    [
        flapping(*CYCLE * 2),
        flapping("member_left", "member_joined", "member_left", "member_joined")
        + flapping("member_left", "member_joined", name="other"),
        flapping(*("member_joined",) * 5),
        [event(kind, member=None) for kind in ("member_left", "member_joined") * 3],
    ],
    ids=["twice", "another member between", "joins only", "hidden members"],
)
def test_other_events_stay_lines_of_their_own(events: list[Event]) -> None:
    assert timeline.folded(events) == timeline.lines(events)


def test_what_was_before_the_first_of_them_is_no_part_of_it() -> None:
    events = flapping(*CYCLE * 3, "assignment_stored")
    first, last = timeline.folded(events)
    assert (len(first.folded), last.text) == (len(events) - 1, timeline.line(events[-1]).text)


def test_what_people_did_meanwhile_stays_visible() -> None:
    events = [*flapping(*CYCLE * 3), event("group_held", member=None), *flapping(*CYCLE * 3)]
    assert [line.text.partition(":")[0] for line in timeline.folded(events)] == [
        "3 × indexer@10.0.0.7 joined and left",
        "Group held",
        "3 × indexer@10.0.0.7 joined and left",
    ]
