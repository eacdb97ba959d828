"""Why a consumer group is not stable, and what its members do, in words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from frontend.pages.group.explained import consumer_wait_ends as wait_ends
from frontend.pages.group.explained import explain_consumer as explain
from frontend.pages.group.present import consumer, member_line
from frontend.pages.group.reads import Computation, ConsumerPart, Counts, GroupCounts, GroupPage, Handover
from frontend.ui.members import Detail
from frontend.ui.members import consumer_member_state as member_state
from frontend.ui.rows import Event, Member
from groups.core.model.consumer_group import DEPARTED_EPOCH, MemberState
from tests.frontend.test_states import NOW
from tests.frontend.test_states import member as any_member
from tests.frontend.test_states import page as any_page


def member(pk: int, epoch: int = 7, state: MemberState = MemberState.STABLE) -> Member:
    return replace(any_member(pk), member_epoch=epoch, consumer_state=state.value)


def handover(holder: str | None, heir: str | None, *partitions: int, told: bool = False, topic: str = "t") -> Handover:
    return Handover(
        1, holder, told, 2, heir, topic, partitions, NOW + 38_000 if told else None, 6, NOW - 3_000, NOW + 9_000, 7, NOW
    )


def part(
    *handovers: Handover,
    unsettled: int = 2,
    giving_up: int = 1,
    waiting: int = 1,
    behind: int = 0,
    away: int = 0,
    computation: Computation = Computation(NOW - 60_000, None, None, failed=False),  # noqa: B008 - it is immutable
) -> ConsumerPart:
    return ConsumerPart(
        counts=Counts(unsettled, giving_up, waiting, behind, away),
        computation=computation,
        votes={},
        details={},
        differences=(),
        handovers=handovers,
        handover_lines=len(handovers),
        moving=sum(len(move.partitions) for move in handovers),
        heirs=(),
        unknown_topics=frozenset(),
    )


def page(state: str, members: int = 5, target: int = 7, shown: tuple[Member, ...] = (), **other: object) -> GroupPage:
    given = any_page(state, members=shown, counts=GroupCounts(members, 0, 0, None), assignment_epoch=target)
    return replace(given, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (part(handover("m1", "m4", 3, 4, 5, told=True)), "m1 still has to give up t 3–5, which m4 waits for."),
        (
            part(
                handover("m1", "m4", 3, told=True),
                handover("m1", "m5", 4, told=True),
                handover("m1", "m5", 0, told=True, topic="u"),
                giving_up=3,
            ),
            "m1 still has to give up t 3, 4 and u 0, which m4 and m5 wait for; 2 others have to give up partitions"
            " too.",
        ),
        (part(handover("m1", None, 3, told=True)), "m1 still has to give up t 3."),
        (
            part(handover("m1", "m4", 3, 4), handover(None, "m5", 9)),
            "m1 learns with its next heartbeat that it must give up t 3, 4 for m4.",
        ),
        (part(handover(None, "m5", 9), handover(None, "m6", 8)), "t 9 is free for m5 to take with its next heartbeat."),
        (part(handover(None, "m5", 8, 9)), "t 8, 9 are free for m5 to take with its next heartbeat."),
        (
            part(replace(handover("m1", "m4", 3), holder_epoch=DEPARTED_EPOCH)),
            "m1 left temporarily and keeps t 3 until it returns or its session ends.",
        ),
    ],
)
def test_a_reconciling_group_names_who_holds_it_up(given: ConsumerPart, text: str) -> None:
    assert explain(page("Reconciling"), given) == f"2 of 5 members are not at their target of epoch 7 yet: {text}"


@pytest.mark.parametrize(
    ("given", "shown", "text"),
    [
        (part(unsettled=1, giving_up=0, waiting=0, behind=1), (member(1), member(2, 6)), "c@h (m2) learns of it with"),
        (
            part(unsettled=1, giving_up=0, waiting=0, away=1),
            (member(3, DEPARTED_EPOCH),),
            "c@h (m3) left temporarily; its partitions",
        ),
        (
            part(unsettled=40, giving_up=0, waiting=0, away=40),
            (member(3, DEPARTED_EPOCH),),
            "40 members left temporarily; their partitions are kept until they return or their sessions end.",
        ),
        (part(unsettled=40, giving_up=0, waiting=0, behind=40), (member(2, 6),), "40 members learn of it with"),
    ],
)
def test_a_reconciling_group_without_handovers_names_who_is_behind_or_away(
    given: ConsumerPart, shown: tuple[Member, ...], text: str
) -> None:
    assert f" of epoch 7 yet: {text}" in (explain(page("Reconciling", shown=shown), given) or "")


@pytest.mark.parametrize(
    ("computation", "target", "text"),
    [
        (
            Computation(NOW, None, None, failed=False),
            6,
            "it is computed with the next heartbeat; until then members keep",
        ),
        (Computation(None, None, None, failed=False), 0, "heartbeat; until then no member has partitions yet."),
        (Computation(NOW, NOW - 2_300, NOW, failed=False), 6, "the assignor is computing it; until"),
        (Computation(NOW, NOW, NOW + 8_000, failed=True), 6, "the assignor failed and will be tried again; until"),
    ],
)
def test_an_assigning_group_says_what_its_target_waits_for(computation: Computation, target: int, text: str) -> None:
    event = Event(1, NOW, "group_epoch_bumped", 7, "m5", {"cause": "member_joined"})
    said = explain(page("Assigning", target=target, events=(event,)), part(computation=computation))
    assert said is not None
    assert said.startswith("Epoch 7 (m5 joined) has no target yet: ")
    assert text in said


def test_how_long_it_waits_is_no_part_of_the_sentence() -> None:
    """Pages say that by the instant since which the group is in its state, once."""
    failed = Computation(NOW, NOW, NOW + 8_000, failed=True)
    assert wait_ends(page("Assigning"), part(computation=failed)) == NOW + 8_000
    assert wait_ends(page("Stable"), part(computation=failed)) is None
    for waits in (failed, Computation(NOW, NOW - 2_300, NOW, failed=False)):
        assert not re.search(r"\d s\b", explain(page("Assigning"), part(computation=waits)) or "")


def test_other_states_are_said_as_of_any_group() -> None:
    assert explain(page("Empty"), part()) is None
    assert (explain(page("Stable"), part()) or "").startswith("All members have their target assignment of epoch 7.")


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (member(1), "Active"),
        (member(1, 6), "Behind"),
        (member(1, 6, MemberState.UNREVOKED_PARTITIONS), "Giving up"),
        (member(1, 7, MemberState.UNRELEASED_PARTITIONS), "Waiting"),
        (member(1, 7, MemberState.UNKNOWN), "Unknown"),
        (member(1, DEPARTED_EPOCH, MemberState.UNRELEASED_PARTITIONS), "Away"),
        (replace(member(1), session_deadline=NOW), "Overdue"),
    ],
)
def test_member_states(given: Member, label: str) -> None:
    assert member_state(given, 7, NOW).label == label


@pytest.mark.parametrize(
    ("votes", "said"),
    [
        ({}, ("uniform", "the default")),
        ({"range": 1}, ("range", "1 member asks for it")),
        ({"range": 2, "uniform": 2}, ("uniform", "2 members ask for it")),
        ({"range": 3, "gone": 9}, ("range", "3 members ask for it")),
    ],
)
def test_the_assignor_is_the_one_with_the_most_votes(votes: dict[str, int], said: tuple[str, str]) -> None:
    context = consumer(page("Stable"), replace(part(), votes=votes), {}, ("uniform", "range"))
    assert (context["assignor"], context["assignor_why"]) == said


@pytest.mark.parametrize(
    ("move", "stand", "at"),
    [
        (handover("m1", "m2", 1, told=True), "Must give up", NOW + 38_000),
        (replace(handover("m1", "m2", 1, told=True), deadline=None), "Must give up", None),
        (handover("m1", "m2", 1), "Not told yet", NOW - 3_000),
        (replace(handover("m1", "m2", 1), holder_epoch=DEPARTED_EPOCH), "Holder away", NOW + 9_000),
        (handover(None, "m2", 1), "Free", NOW),
        (replace(handover(None, "m2", 1), heir_epoch=DEPARTED_EPOCH), "Free", None),
    ],
)
def test_where_partitions_stand_on_their_way(move: Handover, stand: str, at: int | None) -> None:
    lines = consumer(page("Reconciling"), part(move), {}, ("uniform",))["handovers"]
    assert [(line.stand, line.at) for line in lines] == [(stand, at)]


def test_a_member_of_the_classic_protocol_is_marked() -> None:
    detail = Detail("m1", None, ("t",), 30, "", None, None, True, None, NOW + 4_000)
    given = replace(page("Stable", shown=(member(1),)), consumer=replace(part(), details={"m1": detail}))
    line = member_line(given, given.members[0], {})
    assert line.detail
    assert line.detail.classic
    assert line.more_names == 29
