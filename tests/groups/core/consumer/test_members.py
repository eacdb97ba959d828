"""What is derived from members is kept up to date change by change, and never in place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.assignors import Partitions
from groups.core.consumer.members import check_epoch
from groups.core.model.consumer_group import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    ConsumerMembers,
    MemberState,
)
from groups.core.model.consumer_records import (
    ConsumerGroupCreated,
    ConsumerMemberJoined,
    ConsumerMemberRemoved,
    ConsumerMemberReplaced,
    ConsumerMemberUpdated,
    ConsumerRecord,
    GroupEpochBumped,
    MemberReconciled,
    MetadataChecked,
    StaticMemberDeparted,
    TargetComputed,
)
from groups.core.model.fold import IllegalRecord, IllegalTransition
from groups.core.model.fold import apply as apply_any
from groups.core.model.fold import apply_to_members as apply
from groups.core.model.records import GroupConverted, GroupHeld, SyncTimerCleared
from groups.core.model.types import Cause, ClassicGroup, Hold, Protocol
from kcoord.protocol.errors import Error, ProtocolError
from tests.groups.core.consumer.invariants import _check_derived

members = st.builds(
    lambda number, static, names, regex, vote, classic, state, epoch, assigned, pending: ConsumerMember(
        f"m{number}",
        instance_id=f"i{number}" if static else None,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        server_assignor=vote,
        classic=ClassicMetadata(1, tuple(Protocol(name, b"") for name in sorted(classic))) if classic else None,
        state=state,
        member_epoch=epoch,
        assigned={"f": {10 * number + p: 1 for p in assigned}} if assigned else {},
        pending_revocation={"f": {10 * number + 5 + p: 1 for p in pending}} if pending else {},
    ),
    st.integers(0, 4),
    st.booleans(),
    st.frozensets(st.sampled_from("abc")),
    st.sampled_from(["", "a.*", "b.*"]),
    st.sampled_from([None, "range", "uniform"]),
    st.frozensets(st.sampled_from(["range", "sticky"])),
    st.sampled_from(list(MemberState)),
    st.integers(0, 3),
    st.frozensets(st.integers(0, 4)),
    st.frozensets(st.integers(0, 4)),
)


@given(st.lists(st.one_of(members, st.integers(0, 4)), max_size=30))
def test_derived_values_follow_every_change(changes: list[ConsumerMember | int]) -> None:
    kept, plain = ConsumerMembers(), dict[str, ConsumerMember]()
    for change in changes:
        before, seen = kept, dict(plain)
        if isinstance(change, ConsumerMember):
            kept = kept.put(change)
            plain[change.member_id] = change
        elif f"m{change}" in plain:
            kept = kept.drop(f"m{change}")
            del plain[f"m{change}"]
        assert dict(before) == seen, "the old map is as it was"
        assert list(kept) == sorted(plain)
        assert dict(kept) == plain
        _check_derived(kept)


def test_dropping_a_stranger_is_a_bug() -> None:
    with pytest.raises(KeyError):
        ConsumerMembers().drop("nobody")
    assert repr(ConsumerMembers()) == "ConsumerMembers([])"


def test_who_does_not_vote_has_no_vote() -> None:
    """consumer.md 5.2: null does not vote."""
    some = ConsumerMembers([ConsumerMember("m1"), ConsumerMember("m2", server_assignor="range")])
    assert some.votes == {"range": 1}
    assert some.put(ConsumerMember("m2")).votes == {}


@pytest.mark.parametrize("state", MemberState)
@pytest.mark.parametrize("epoch", [4, 5, 6])
def test_only_a_stable_member_at_an_epoch_is_reconciled_to_it(state: MemberState, epoch: int) -> None:
    """consumer.md 1.3."""
    expected = state is MemberState.STABLE and epoch == 5
    assert ConsumerMember("m", state=state, member_epoch=5).reconciled_to(epoch) is expected


def test_changes_are_told_by_member() -> None:
    before = ConsumerMembers([ConsumerMember("same"), ConsumerMember("changed"), ConsumerMember("gone")])
    changed, new = ConsumerMember("changed", member_epoch=1), ConsumerMember("new")
    after = before.drop("gone").put(changed).put(new)
    assert after.changes_since(before) == ({"gone"}, {"changed": changed, "new": new})


MEMBER = ConsumerMember("m1")
GROUP = ConsumerGroup("g", members=ConsumerMembers([MEMBER]))
BUGS: dict[str, tuple[ConsumerGroup | None, ConsumerRecord]] = {
    "created twice": (GROUP, ConsumerGroupCreated("g", 0)),
    "no group": (None, ConsumerMemberJoined(MEMBER, 0)),
    "joined twice": (GROUP, ConsumerMemberJoined(MEMBER, 0)),
    "a stranger goes": (GROUP, ConsumerMemberRemoved("x", None, Cause.MEMBER_LEFT, 0, "", "")),
    "a stranger changes": (GROUP, ConsumerMemberUpdated(ConsumerMember("x"), 0)),
    "a stranger is replaced": (GROUP, ConsumerMemberReplaced("x", ConsumerMember("y"), 0)),
    "a stranger departs": (GROUP, StaticMemberDeparted("x", 0)),
    "a stranger takes a step": (GROUP, MemberReconciled("x", 0, 0, MemberState.STABLE, {}, {}, False, 0)),
    "a target of a stranger": (GROUP, TargetComputed(0, "range", {"x": {}}, 0)),
    "an epoch left out": (GROUP, GroupEpochBumped(2, Cause.MEMBER_LEFT, None, "", 0, 0)),
    "a target of the future": (GROUP, TargetComputed(1, "range", {}, 0)),
}


@pytest.mark.parametrize(("group", "record"), BUGS.values(), ids=BUGS)
def test_records_that_do_not_fit_are_bugs(group: ConsumerGroup | None, record: ConsumerRecord) -> None:
    with pytest.raises(IllegalRecord):
        apply(group, record)


def test_records_of_the_other_protocol_are_bugs() -> None:
    for group, record in (
        (ClassicGroup("g"), ConsumerMemberJoined(MEMBER, 0)),
        (GROUP, SyncTimerCleared()),
        (GROUP, GroupConverted(GROUP, 0)),
    ):
        with pytest.raises(IllegalTransition):
            apply_any(group, record)


HELD = ConsumerGroup("g", hold=Hold(1_000, "ann", ""))


def test_a_held_group_has_no_members() -> None:
    with pytest.raises(IllegalTransition, match="held"):
        apply_any(HELD, ConsumerMemberJoined(MEMBER, 0))
    with pytest.raises(IllegalTransition, match="cannot be held"):
        apply_any(GROUP, GroupHeld(Hold(1_000, "ann", ""), 0, 0))
    assert apply_any(HELD, MetadataChecked(7, 0)) == replace(HELD, metadata_version=7)


@pytest.mark.parametrize("epoch", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("owns", [None, {}, {"f": frozenset({0})}, {"f": frozenset({0, 1})}])
def test_only_the_epoch_before_is_told_what_it_missed(epoch: int, owns: Partitions | None) -> None:
    """consumer.md 2.4: a member at 5 that came from 3, and owns f 0."""
    member = ConsumerMember("m", member_epoch=5, previous_member_epoch=3, assigned={"f": {0: 5}})
    if epoch == 3 and owns is not None and set(owns.get("f", ())) <= {0}:
        check_epoch(member, epoch, owns)
        return
    with pytest.raises(ProtocolError) as raised:
        check_epoch(member, epoch, owns)
    assert raised.value.error is Error.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize("epoch", [0, 5])
def test_a_member_may_always_join_again_and_speak_of_its_epoch(epoch: int) -> None:
    member = ConsumerMember("m", member_epoch=5, previous_member_epoch=3, assigned={"f": {0: 5}})
    check_epoch(member, epoch, {"f": frozenset({0, 1})})
