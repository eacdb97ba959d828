"""One step of one member: consumer.md 6 as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from groups.core.assignors import Partitions
from groups.core.consumer.heartbeat import reconcile
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers, MemberState, OwnedTwice
from groups.core.model.consumer_records import MemberReconciled
from groups.core.model.types import Topic, TopicView
from kcoord.protocol.errors import Error, ProtocolError

STABLE, UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
UNRELEASED, UNKNOWN = MemberState.UNRELEASED_PARTITIONS, MemberState.UNKNOWN
TOPICS = [Topic("f", "foo", 9), Topic("b", "bar", 9)]
VIEW = TopicView(1, {topic.name: topic for topic in TOPICS}, {topic.topic_id: topic for topic in TOPICS})


def numbers(text: str) -> dict[str, frozenset[int]]:
    """ "f012 b3" -> f 0, 1 and 2, b 3."""
    return {word[0]: frozenset(map(int, word[1:])) for word in text.split()}


def owned(text: str) -> dict[str, dict[int, int]]:
    """The same, assigned in epoch 1."""
    return {topic: dict.fromkeys(sorted(partitions), 1) for topic, partitions in numbers(text).items()}


@dataclass(frozen=True)
class Step:
    """A member at `epoch` in a group whose target is of epoch 5; another has `taken`. Then what becomes of it."""

    state: MemberState
    epoch: int
    assigned: str
    target: str
    becomes: tuple[MemberState, int, str, str] | None
    pending: str = ""
    reports: str | None = None
    taken: str = ""
    names: str = "foo bar"
    changed: bool = False


STEPS: Mapping[str, Step] = {
    "stable, at the target": Step(STABLE, 5, "f01", "f01", None),
    "stable, at the target, reports less": Step(STABLE, 5, "f01", "f01", None, reports="f0"),
    "new target, the same": Step(STABLE, 4, "f01", "f01", (STABLE, 5, "f01", "")),
    "new target, more and free": Step(STABLE, 4, "f01", "f012", (STABLE, 5, "f012", "")),
    "new target, more and taken": Step(STABLE, 4, "f01", "f012", (UNRELEASED, 5, "f01", ""), taken="f2"),
    "new target, some of it taken": Step(STABLE, 4, "f0", "f012", (UNRELEASED, 5, "f01", ""), taken="f2"),
    "new target, less, silent": Step(STABLE, 4, "f012", "f01", (UNREVOKED, 4, "f01", "f2")),
    "new target, less, has it": Step(STABLE, 4, "f012", "f01", (UNREVOKED, 4, "f01", "f2"), reports="f012"),
    "new target, less, gave it up": Step(STABLE, 4, "f012", "f01", (STABLE, 5, "f01", ""), reports="f01"),
    "revokes before it gets": Step(STABLE, 4, "f01", "f1 b0", (UNREVOKED, 4, "f1", "f0")),
    "everything else": Step(STABLE, 4, "f01", "b01", (UNREVOKED, 4, "", "f01")),
    "unrevoked, silent": Step(UNREVOKED, 4, "f0", "f0", None, pending="f1"),
    "unrevoked, has some": Step(UNREVOKED, 4, "f0", "f0", None, pending="f12", reports="f02"),
    "unrevoked, gave all up": Step(UNREVOKED, 4, "f0", "f0", (STABLE, 5, "f0", ""), pending="f12", reports="f0"),
    "unrevoked, and gets": Step(UNREVOKED, 4, "f0", "f03", (STABLE, 5, "f03", ""), pending="f1", reports="f0"),
    "unrevoked, gets it back": Step(UNREVOKED, 4, "f0", "f01", (STABLE, 5, "f01", ""), pending="f1", reports="f0"),
    "unrevoked, must give up more": Step(
        UNREVOKED, 3, "f01", "f0", (UNREVOKED, 3, "f0", "f1"), pending="f2", reports="f01"
    ),
    "unreleased, still taken": Step(UNRELEASED, 5, "f0", "f01", None, taken="f1"),
    "unreleased, free now": Step(UNRELEASED, 5, "f0", "f01", (STABLE, 5, "f01", "")),
    "unreleased, some free": Step(UNRELEASED, 5, "f0", "f012", (UNRELEASED, 5, "f01", ""), taken="f2"),
    "unreleased, newer target": Step(UNRELEASED, 4, "f0", "f0", (STABLE, 5, "f0", "")),
    "unreleased, must give up": Step(UNRELEASED, 4, "f01", "f0", (UNREVOKED, 4, "f0", "f1")),
    "unknown, owns nothing": Step(UNKNOWN, 4, "f0", "f0", (STABLE, 5, "f0", ""), reports=""),
    "target of a topic not subscribed": Step(STABLE, 4, "f0", "f0 b0", (STABLE, 5, "f0", ""), names="foo"),
    "shrinks, has it": Step(STABLE, 5, "f0 b0", "f0 b0", (UNREVOKED, 5, "f0", "b0"), names="foo", changed=True),
    "shrinks, gave it up": Step(
        STABLE, 5, "f0 b0", "f0 b0", (STABLE, 5, "f0", ""), names="foo", changed=True, reports="f0"
    ),
    "stable, at the target, a topic is gone": Step(STABLE, 5, "f0 x0", "f0 x0", None),
    "unrevoked, a topic is gone": Step(UNREVOKED, 4, "f0 x0", "f0", None, pending="f1"),
    "shrinks, nothing to": Step(STABLE, 5, "f0", "f0", None, names="foo", changed=True),
    "unrevoked, shrinks": Step(
        UNREVOKED, 4, "f0 b0", "f0 b0", (UNREVOKED, 4, "f0", "f1 b0"), pending="f1", names="foo", changed=True
    ),
}


def run(case: Step, previous_epoch: int) -> tuple[ConsumerMember, MemberReconciled | None]:
    member = ConsumerMember(
        "m",
        subscribed_topic_names=frozenset(case.names.split()),
        member_epoch=case.epoch,
        previous_member_epoch=previous_epoch,
        state=case.state,
        assigned=owned(case.assigned),
        pending_revocation=owned(case.pending),
        target=numbers(case.target),
    )
    other = ConsumerMember("other", assigned=owned(case.taken))
    group = ConsumerGroup("g", group_epoch=5, assignment_epoch=5, members=ConsumerMembers([member, other]))
    reports: Partitions | None = numbers(case.reports) if case.reports is not None else None
    return member, reconcile(group, member, reports, VIEW, 1_000, subscription_changed=case.changed)


def plain(assigned: Mapping[str, Mapping[int, int]]) -> dict[str, frozenset[int]]:
    return {topic: frozenset(partitions) for topic, partitions in assigned.items()}


@pytest.mark.parametrize("case", STEPS.values(), ids=STEPS)
def test_steps(case: Step) -> None:
    member, step = run(case, previous_epoch=case.epoch)
    if case.becomes is None:
        assert step is None
        return
    assert step is not None
    state, epoch, assigned, pending = case.becomes
    assert (step.state, step.member_epoch) == (state, epoch)
    assert (plain(step.assigned), plain(step.pending_revocation)) == (numbers(assigned), numbers(pending))
    assert step.previous_member_epoch == case.epoch
    had = {*((t, p) for t, ps in member.assigned.items() for p in ps)}
    had |= {(t, p) for t, ps in member.pending_revocation.items() for p in ps}
    has = {(t, p) for parts in (step.assigned, step.pending_revocation) for t, ps in parts.items() for p in ps}
    assert step.releases == bool(had - has)


@pytest.mark.parametrize("reports", [None, "f0"])
def test_an_unknown_state_with_partitions_is_fenced(reports: str | None) -> None:
    with pytest.raises(ProtocolError) as raised:
        run(Step(UNKNOWN, 4, "f0", "f0", None, reports=reports), 4)
    assert raised.value.error is Error.FENCED_MEMBER_EPOCH


def test_a_second_look_moves_the_previous_epoch_and_a_third_nothing() -> None:
    waits = Step(UNRELEASED, 5, "f0", "f01", None, taken="f1")
    _, step = run(waits, previous_epoch=4)
    assert step is not None
    assert (step.member_epoch, step.previous_member_epoch) == (5, 5)
    assert run(waits, previous_epoch=5)[1] is None


@pytest.mark.parametrize("name", ["shrinks, has it", "shrinks, gave it up", "unrevoked, shrinks"])
def test_a_member_that_shrinks_keeps_both_epochs(name: str) -> None:
    """consumer.md 6.3."""
    case = STEPS[name]
    _, step = run(case, previous_epoch=case.epoch - 1)
    assert step is not None
    assert (step.member_epoch, step.previous_member_epoch) == (case.epoch, case.epoch - 1)


def test_kept_partitions_keep_their_epoch_and_new_ones_have_the_targets() -> None:
    _, step = run(STEPS["new target, more and free"], 4)
    assert step is not None
    assert step.assigned == {"f": {0: 1, 1: 1, 2: 5}}


def test_a_topic_that_is_gone_is_revoked() -> None:
    case = replace(STEPS["new target, the same"], assigned="f0 x0", target="f0 x0")
    _, step = run(case, 4)
    assert step is not None
    assert (plain(step.assigned), plain(step.pending_revocation)) == (numbers("f0"), numbers("x0"))


def test_two_owners_are_a_bug() -> None:
    one, two = ConsumerMember("one", assigned=owned("f0")), ConsumerMember("two", pending_revocation=owned("f0"))
    with pytest.raises(OwnedTwice):
        ConsumerMembers([one, two])
    with pytest.raises(OwnedTwice):
        ConsumerMembers([one]).put(two)


def test_states_that_are_not_known_read_as_unknown() -> None:
    assert MemberState(7) is UNKNOWN
    assert [state.value for state in MemberState] == [0, 1, 2, 127]
