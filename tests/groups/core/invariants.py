"""What holds after every decision, whatever was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from groups.core.machine import answer_for
from groups.core.model.commands import ParkKind
from groups.core.model.fold import apply
from groups.core.model.group import wake_at
from groups.core.model.records import GroupCreated, GroupDeleted, MemberRemoved, RebalanceStarted, SessionRenewed
from groups.core.model.replies import Parked
from groups.core.model.turn import Decision
from groups.core.model.types import ClassicGroup, Env, GroupState, Members

_COMPLETED = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


def check(before: ClassicGroup | None, waiting: Sequence[Parked], decision: Decision, env: Env) -> None:
    """Raises AssertionError if the decision breaks a promise. `waiting`: the requests that waited before it."""
    assert decision.reply is not None, "every command has a reply"
    history = _history(before, decision)
    at = wake_at(decision.group)
    assert at is None or at > env.sessions_end or not env.may_expire, (
        f"a deadline lies {env.now - (at or 0)} ms in the past"
    )
    _check_releases(decision, history)
    for parked in waiting:
        _check_waiter(parked, decision, history)
    if isinstance(decision.reply, Parked):
        assert answer_for(decision.group, decision.reply) is None, f"{decision.reply} need not wait"
    for group in history:
        if group is not None:
            check_group(group)
    after = decision.group
    if after is not None and after.state in _COMPLETED:
        # Between the records of one decision a restarted static member may be in the way.
        supporters = after.members.support.get(after.protocol_name or "")
        assert supporters == len(after.members), "every member supports the protocol"


def _history(before: ClassicGroup | None, decision: Decision) -> list[ClassicGroup | None]:
    """The group after each record, the first entry before all. Folding them gives the decision's group."""
    history = [before]
    for record in decision.records:
        previous, group = history[-1], apply(history[-1], record)
        history.append(group)
        if previous is not None and group is not None:
            assert group.generation_id >= previous.generation_id, f"{record} lowered the generation"
        else:
            assert isinstance(record, GroupCreated | GroupDeleted), f"{record} made or unmade the group"
    assert history[-1] == decision.group
    if decision.group is not None and history[-1] is not None:
        assert list(history[-1].members) == list(decision.group.members), "the order of arrival"
    return history


def _check_releases(decision: Decision, history: list[ClassicGroup | None]) -> None:
    """A member that stops waiting is answered, exactly once; nobody else is."""
    released = Counter(
        key for group, after in pairwise(history) for key in _waiting_keys(group) if key not in _waiting_keys(after)
    )
    assert Counter((answer.kind, answer.member_id) for answer in decision.answers) == released


def _waiting_keys(group: ClassicGroup | None) -> set[tuple[ParkKind, str]]:
    members = group.members.values() if group is not None else ()
    joins = {(ParkKind.JOIN, member.member_id) for member in members if member.awaiting_join}
    return joins | {(ParkKind.SYNC, member.member_id) for member in members if member.awaiting_sync}


def _check_waiter(parked: Parked, decision: Decision, history: list[ClassicGroup | None]) -> None:
    """Whoever looks at the group alone tells a waiter what the decision tells it.

    Nobody looks between two records. After the one that answers, the group may be one that no process ever sees: a
    restarted static member does not support the protocol of the generation that it is about to end.
    """
    key = (parked.kind, parked.member_id)
    reply = next((answer.reply for answer in decision.answers if (answer.kind, answer.member_id) == key), None)
    last = answer_for(history[-1], parked)
    if reply is None:
        assert last is None, f"{parked} waits on, but the group says {last}"
        return
    told = ((index, answer_for(group, parked)) for index, group in enumerate(history))
    fallen, first = next((index, answer) for index, answer in told if answer is not None)
    assert first == reply, f"{parked} is answered {reply}, the group said {first}"
    if last != reply:
        # The group moved on in the same decision: who looks only now joins again, or waits with a newer request.
        later = decision.records[fallen:]
        moved = any(isinstance(record, RebalanceStarted | MemberRemoved | SessionRenewed) for record in later)
        assert moved, f"{parked}: {reply} became {last} for no reason"


def check_group(group: ClassicGroup) -> None:
    """What holds for every group that a fold made."""
    members = group.members
    assert Members(members.values()) == members
    _check_counts(group)
    if members:
        assert group.leader_id in members, "the leader is a member"
    else:
        assert group.leader_id is None, "nobody leads a group without members"
    assert not set(members) & set(group.pending_join), "a pending id is no member"
    if group.hold is not None:
        assert group.state is GroupState.EMPTY, "nobody is in a held group"
        assert not members
        assert not group.pending_join
        assert wake_at(group) == group.hold.until
    if group.state in _COMPLETED:
        assert group.generation_id > 0
        assert group.join_timer is None
    if group.state is GroupState.EMPTY:
        assert group.protocol_name is None
        assert group.sync_deadline is None
    if group.state is GroupState.PREPARING_REBALANCE:
        assert members.pending_sync == 0
        assert group.sync_deadline is None
        assert not any(member.awaiting_sync for member in members.values())
    if group.state is GroupState.DEAD:
        assert wake_at(group) is None
    else:
        assert all(member.session_deadline is not None for member in members.values())


def _check_counts(group: ClassicGroup) -> None:
    members = group.members
    assert members.awaiting_join == sum(member.awaiting_join for member in members.values())
    assert members.pending_sync == sum(member.pending_sync for member in members.values())
    assert members.static == {
        member.instance_id: member.member_id for member in members.values() if member.instance_id is not None
    }
    support = Counter(name for member in members.values() for name in {entry.name for entry in member.protocols})
    assert {name: count for name, count in members.support.items() if count} == support
