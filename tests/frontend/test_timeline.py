"""Events in words: every kind, cause and reason that the core can write has them."""

from __future__ import annotations

import pytest

from frontend import timeline
from frontend.rows import Event
from groups.core.model.causes import Cause
from groups.core.model.events import EventKind

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
