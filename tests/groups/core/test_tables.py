"""Every API in every state, asked by every kind of member: the answer, and that an error changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from groups.core.classic.state import ANSWERS, Api
from groups.core.model.commands import CommitOffsets, DeleteGroup, Heartbeat, LeaveGroup, SyncGroup
from groups.core.model.fold import IllegalTransition, apply
from groups.core.model.records import (
    AssignmentsStored,
    GenerationStarted,
    GroupEmptied,
    GroupUnloaded,
    RebalanceStarted,
)
from groups.core.model.types import TRANSITIONS, Cause, ClassicGroup, GroupState
from kcoord.protocol.errors import Error
from tests.groups.core.world import START, Call, World, protocols

STATES = tuple(GroupState)  # Empty, PreparingRebalance, CompletingRebalance, Stable, Dead
PARKED = "parked"
U, F, R, C = "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "REBALANCE_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"
G, M, N = "ILLEGAL_GENERATION", "MEMBER_ID_REQUIRED", "NONE"
L = "COORDINATOR_LOAD_IN_PROGRESS"


@dataclass(slots=True)
class Cast:
    """A group in some state and everybody who may ask it something."""

    world: World
    leader: str
    follower: str
    static: str
    fenced: str
    pending: str


def cast(state: GroupState) -> Cast:
    """A leader, a follower, a static member that was restarted once (its old id is fenced) and a pending id."""
    world = World()
    leader, follower, fenced = world.completed(world.enter(), world.enter(), world.join(instance_id="i"))
    world.synced(leader, follower, fenced)
    static = world.join(instance_id="i").member_id
    match state:
        case GroupState.EMPTY:
            world.leave(leader, follower, static)
        case GroupState.PREPARING_REBALANCE:
            world.join(follower, protocols=protocols("range", metadata=b"new"))
        case GroupState.COMPLETING_REBALANCE:
            world.join(leader)
            world.join(follower)
            world.join(static, "i")
    pending = world.join().member_id
    if state is GroupState.DEAD:
        world.kill()
    assert world.state is state
    return Cast(world, leader, follower, static, fenced, pending)


Ask = Callable[[Cast], Call]


def _same_protocols(cast: Cast, member_id: str) -> Callable[..., Call]:
    group = cast.world.group
    assert group is not None
    member = group.members.get(member_id)
    listed = member.protocols if member is not None else protocols("range")
    return lambda *ids: cast.world.join(*ids, protocols=listed)


JOINS: dict[str, tuple[Ask, tuple[str, ...]]] = {
    "no id, dynamic": (lambda c: c.world.join(), (M, M, M, M, C)),
    "no id, new static": (lambda c: c.world.join("", "other"), (PARKED, PARKED, PARKED, PARKED, C)),
    "no id, mapped static": (lambda c: c.world.join("", "i"), (PARKED, PARKED, PARKED, N, C)),
    "stranger": (lambda c: c.world.join("nobody"), (U, U, U, U, C)),
    "pending": (lambda c: c.world.join(c.pending), (PARKED, PARKED, PARKED, PARKED, C)),
    "follower": (lambda c: _same_protocols(c, c.follower)(c.follower), (U, PARKED, N, N, C)),
    "follower, changed": (lambda c: c.world.join(c.follower, names="range more"), (U, PARKED, PARKED, PARKED, C)),
    "leader": (lambda c: c.world.join(c.leader), (U, PARKED, N, PARKED, C)),
    "static": (lambda c: c.world.join(c.static, "i"), (U, PARKED, N, N, C)),
    "static without instance id": (lambda c: c.world.join(c.static), (U, PARKED, N, N, C)),
    "old id with instance id": (lambda c: c.world.join(c.fenced, "i"), (U, F, F, F, C)),
    "old id without": (lambda c: c.world.join(c.fenced), (U, U, U, U, C)),
    "member with a foreign instance id": (lambda c: c.world.join(c.follower, "other"), (U, U, U, U, C)),
    "protocol nobody has": (
        lambda c: c.world.join("nobody", names="alone"),
        (U, *["INCONSISTENT_GROUP_PROTOCOL"] * 3, C),
    ),
}
SYNCS: dict[str, tuple[Ask, tuple[str, ...]]] = {
    "stranger": (lambda c: c.world.sync("nobody"), (U, U, U, U, C)),
    "pending": (lambda c: c.world.sync(c.pending), (U, U, U, U, C)),
    "follower": (lambda c: c.world.sync(c.follower), (U, R, PARKED, N, C)),
    "leader": (lambda c: c.world.sync(c.leader), (U, R, N, N, C)),
    "static": (lambda c: c.world.sync(c.static, None, "i"), (U, R, PARKED, N, C)),
    "old id with instance id": (lambda c: c.world.sync(c.fenced, None, "i"), (U, F, F, F, C)),
    "old id without": (lambda c: c.world.sync(c.fenced), (U, U, U, U, C)),
    "member with a foreign instance id": (lambda c: c.world.sync(c.follower, None, "other"), (U, U, U, U, C)),
    "older generation": (lambda c: c.world.sync(c.follower, generation_id=0), (U, G, G, G, C)),
    "newer generation": (lambda c: c.world.sync(c.follower, generation_id=99), (U, G, G, G, C)),
    "old id and generation": (lambda c: c.world.sync(c.fenced, None, "i", generation_id=0), (U, F, F, F, C)),
    "other protocol": (
        lambda c: c.world.sync(c.follower, protocol_name="alone"),
        (U, *["INCONSISTENT_GROUP_PROTOCOL"] * 3, C),
    ),
    "other protocol type": (
        lambda c: c.world.sync(c.follower, protocol_type="connect"),
        (U, *["INCONSISTENT_GROUP_PROTOCOL"] * 3, C),
    ),
}
HEARTBEATS: dict[str, tuple[Ask, tuple[str, ...]]] = {
    "stranger": (lambda c: c.world.heartbeat("nobody"), (U, U, U, U, C)),
    "pending": (lambda c: c.world.heartbeat(c.pending), (U, U, U, U, C)),
    "follower": (lambda c: c.world.heartbeat(c.follower), (U, R, N, N, C)),
    "leader": (lambda c: c.world.heartbeat(c.leader), (U, R, N, N, C)),
    "static": (lambda c: c.world.heartbeat(c.static, "i"), (U, R, N, N, C)),
    "static without instance id": (lambda c: c.world.heartbeat(c.static), (U, R, N, N, C)),
    "old id with instance id": (lambda c: c.world.heartbeat(c.fenced, "i"), (U, F, F, F, C)),
    "old id without": (lambda c: c.world.heartbeat(c.fenced), (U, U, U, U, C)),
    "older generation": (lambda c: c.world.heartbeat(c.follower, None, 0), (U, G, G, G, C)),
    "newer generation": (lambda c: c.world.heartbeat(c.follower, None, 99), (U, G, G, G, C)),
    "old id and generation": (lambda c: c.world.heartbeat(c.fenced, "i", 0), (U, F, F, F, C)),
}
COMMITS: dict[str, tuple[Ask, tuple[str, ...]]] = {
    "nobody, no generation": (lambda c: c.world.commit("", generation_id=-1), (N, U, U, U, C)),
    "nobody, generation": (lambda c: c.world.commit(""), (U, U, U, U, C)),
    "stranger": (lambda c: c.world.commit("nobody"), (U, U, U, U, C)),
    "stranger, no generation": (lambda c: c.world.commit("nobody", generation_id=-1), (N, U, U, U, C)),
    "follower": (lambda c: c.world.commit(c.follower), (U, N, R, N, C)),
    "follower, no generation": (lambda c: c.world.commit(c.follower, generation_id=-1), (N, G, G, G, C)),
    "leader": (lambda c: c.world.commit(c.leader), (U, N, R, N, C)),
    "static": (lambda c: c.world.commit(c.static, "i"), (U, N, R, N, C)),
    "old id with instance id": (lambda c: c.world.commit(c.fenced, "i"), (U, F, F, F, C)),
    "older generation": (lambda c: c.world.commit(c.follower, generation_id=0), (U, G, G, G, C)),
    "transaction of nobody": (
        lambda c: c.world.commit("", generation_id=-1, transactional=True),
        (N, N, N, N, C),
    ),
    "transaction of a member": (lambda c: c.world.commit(c.follower, transactional=True), (U, N, N, N, C)),
}
LEAVES: dict[str, tuple[Ask, tuple[str, ...]]] = {
    "stranger": (lambda c: c.world.leave("nobody"), (U, U, U, U, C)),
    "nobody at all": (lambda c: c.world.leave(""), (U, U, U, U, C)),
    "pending": (lambda c: c.world.leave(c.pending), (N, N, N, N, C)),
    "pending with an instance id": (lambda c: c.world.leave(c.pending, instance_id="i"), (N, N, N, N, C)),
    "follower": (lambda c: c.world.leave(c.follower), (U, N, N, N, C)),
    "leader": (lambda c: c.world.leave(c.leader), (U, N, N, N, C)),
    "static": (lambda c: c.world.leave(c.static, instance_id="i"), (U, N, N, N, C)),
    "instance id alone": (lambda c: c.world.leave("", instance_id="i"), (U, N, N, N, C)),
    "unknown instance id alone": (lambda c: c.world.leave("", instance_id="other"), (U, U, U, U, C)),
    "old id with instance id": (lambda c: c.world.leave(c.fenced, instance_id="i"), (U, F, F, F, C)),
    "old id without": (lambda c: c.world.leave(c.fenced), (U, U, U, U, C)),
}
DELETES: dict[str, tuple[Ask, tuple[str, ...]]] = {
    "anybody": (lambda c: c.world.delete(), (N, *["NON_EMPTY_GROUP"] * 3, "GROUP_ID_NOT_FOUND")),
}
PRODUCT = {
    Api.JOIN: JOINS,
    Api.SYNC: SYNCS,
    Api.HEARTBEAT: HEARTBEATS,
    Api.COMMIT: COMMITS,
    Api.LEAVE: LEAVES,
    Api.DELETE: DELETES,
}
ROWS = [
    pytest.param(api, state, ask, answers[position], id=f"{api.value}-{state.value}-{who}")
    for api, table in PRODUCT.items()
    for who, (ask, answers) in table.items()
    for position, state in enumerate(STATES)
]


def answer(call: Call) -> str:
    """The error's name, of a leave the entry's, or that the request waits."""
    if call.waits:
        return PARKED
    members = getattr(call.reply, "members", ())
    if members and hasattr(members[0], "error"):
        return str(members[0].error.name)
    return call.error.name


@pytest.mark.parametrize(("api", "state", "ask", "expected"), ROWS)
def test_answer_of_each_api_in_each_state(api: Api, state: GroupState, ask: Ask, expected: str) -> None:
    situation = cast(state)
    before = situation.world.group
    call = ask(situation)
    assert answer(call) == expected
    if expected in (N, PARKED):
        return
    assert call.reply.detail or api is Api.LEAVE, "an error says what was wrong"
    after = situation.world.group
    assert before is not None
    assert after is not None
    if expected == M:
        assert replace(after, pending_join=before.pending_join) == before
        assert [*after.pending_join] == [*before.pending_join, call.member_id]
    elif api is Api.HEARTBEAT and expected == R:
        assert situation.world.member(call.command.member_id).last_heartbeat_at == situation.world.now
    else:
        assert situation.world.last is not None
        assert situation.world.last.records == ()
        assert after is before


def while_held(api: Api, answers: tuple[str, ...]) -> str:
    """What is answered while the group is held: as in Empty, but nobody gets in or commits, and no id is pending."""
    when_empty = answers[STATES.index(GroupState.EMPTY)]
    match api:
        case Api.JOIN:
            return L
        case Api.COMMIT if when_empty == N:
            return L
        case Api.LEAVE:
            return U
    return when_empty


HELD = [
    pytest.param(api, state, ask, while_held(api, answers), id=f"{api.value}-held-{state.value}-{who}")
    for api, table in PRODUCT.items()
    for who, (ask, answers) in table.items()
    for state in STATES
    if state is not GroupState.DEAD
]


@pytest.mark.parametrize(("api", "state", "ask", "expected"), HELD)
def test_answer_of_each_api_while_the_group_is_held(api: Api, state: GroupState, ask: Ask, expected: str) -> None:
    situation = cast(state)
    assert situation.world.hold(60_000).error is Error.NONE
    held = situation.world.group
    call = ask(situation)
    assert answer(call) == expected
    if expected != N:
        assert situation.world.group is held, "nothing changed"


def test_refused_joins_echo_the_member_id() -> None:
    for state in STATES:
        situation = cast(state)
        for member_id, instance_id in (("nobody", None), (situation.fenced, "i"), (situation.fenced, None)):
            reply = situation.world.join(member_id, instance_id).reply
            assert (reply.member_id, reply.generation_id, reply.leader) == (member_id, -1, "")
            assert (reply.protocol_type, reply.protocol_name, reply.members) == (None, None, ())


def test_tables_cover_the_whole_product() -> None:
    assert set(ANSWERS) == {(api, state) for api in Api for state in STATES}
    assert set(TRANSITIONS) == set(STATES)
    good_standing = {Api.JOIN: "follower", Api.SYNC: "follower", Api.HEARTBEAT: "follower", Api.COMMIT: "leader"}
    for api, who in {**good_standing, Api.LEAVE: "follower", Api.DELETE: "anybody"}.items():
        for state, expected in zip(STATES, PRODUCT[api][who][1], strict=True):
            verdict = ANSWERS[api, state]
            if state is not GroupState.EMPTY or api in (Api.JOIN, Api.SYNC, Api.HEARTBEAT, Api.DELETE):
                assert (PARKED if verdict.parks else verdict.error.name) == expected, (api, state)


LEGAL = {
    ("Empty", "PreparingRebalance"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("PreparingRebalance", "Empty"),
    ("CompletingRebalance", "Stable"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("Stable", "PreparingRebalance"),
    *((state.value, "Dead") for state in STATES),
}


@pytest.mark.parametrize("source", STATES)
@pytest.mark.parametrize("target", STATES)
def test_only_legal_transitions_fold(source: GroupState, target: GroupState) -> None:
    leads_to = {
        GroupState.EMPTY: GroupEmptied(2, START),
        GroupState.PREPARING_REBALANCE: RebalanceStarted(START, Cause.MEMBER_JOINED, "m", "", False),
        GroupState.COMPLETING_REBALANCE: GenerationStarted(2, "m", "range", START + 1, {"m": START}, START),
        GroupState.STABLE: AssignmentsStored({}, {}, START),
        GroupState.DEAD: GroupUnloaded(START),
    }
    group = ClassicGroup("g", state=source)
    if (source.value, target.value) in LEGAL:
        after = apply(group, leads_to[target])
        assert after is not None
        assert (after.state, after.previous_state, after.state_since) == (target, source, START)
    else:
        with pytest.raises(IllegalTransition, match=source.value):
            apply(group, leads_to[target])


def test_unknown_group() -> None:
    def ask(send: Callable[[World], Call]) -> str:
        world = World()
        name = answer(send(world))
        assert world.group is None
        return name

    assert ask(lambda world: world.join("m")) == U
    assert ask(lambda world: world.sync("m")) == U
    assert ask(lambda world: world.heartbeat("m")) == U
    assert ask(lambda world: world.leave("m")) == U
    assert ask(lambda world: world.commit("m", generation_id=1)) == "GROUP_ID_NOT_FOUND"
    assert ask(lambda world: world.commit("m", generation_id=1, transactional=True)) == "GROUP_ID_NOT_FOUND"
    assert ask(lambda world: world.delete()) == "GROUP_ID_NOT_FOUND"
    assert ask(lambda world: world.tick()) == N


def test_empty_group_id() -> None:
    world = World()
    invalid = [
        SyncGroup("", "m", None, 1, None, None, {}),
        Heartbeat("", "m", None, 1),
        LeaveGroup("", ()),
        CommitOffsets("", "m", None, -1, transactional=True),
    ]
    for command in invalid:
        assert answer(world.send(command)) == "INVALID_GROUP_ID"
    assert answer(world.send(DeleteGroup(""))) == "GROUP_ID_NOT_FOUND"
    assert answer(world.send(CommitOffsets("", "", None, -1))) == N


def test_unknown_group_is_created_by_a_join_without_id_and_by_a_simple_commit() -> None:
    for send, expected in (
        (lambda world: world.join(), Error.MEMBER_ID_REQUIRED),
        (lambda world: world.join(protocol_type=""), Error.INCONSISTENT_GROUP_PROTOCOL),
        (lambda world: world.commit("", generation_id=-1), Error.NONE),
    ):
        world = World()
        assert send(world).error is expected
        assert world.group is not None
        assert (world.state, world.group.generation_id, world.group.protocol_type) == (GroupState.EMPTY, 0, None)
