"""The state diagrams of `docs/specification/states.md`, taken from the code that decides.

- Classic groups have a transition table, `TRANSITIONS` of the core: the diagram is that table.
- A consumer group has none: its state is computed from its epochs and members. The diagram has the transitions that
  were seen when the conformance cases and a fixed sequence of random requests ran through the core, comparing the
  group before and after every decision.
- A member of a consumer group has none either. `reconcile` is called with every combination of small inputs that
  satisfies the invariants of consumer.md 1.5, and the diagram has the steps that came out.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

from frontend.pages.group.machine import CLASSIC, NOWHERE, Edge
from groups.core import machine
from groups.core.consumer.heartbeat import reconcile
from groups.core.model.commands import Command
from groups.core.model.consumer_group import Assigned, ConsumerGroup, ConsumerMember, ConsumerMembers, MemberState
from groups.core.model.group import Group
from groups.core.model.turn import Decision
from groups.core.model.types import TRANSITIONS, Env, GroupConfig, GroupState, Topic, TopicView
from kcoord.protocol.errors import ProtocolError
from tests.conformance.cases import read_cases
from tests.conformance.core_driver import CoreBackend
from tests.conformance.runner import run_case
from tests.groups.core.consumer.classic_client import join_classic
from tests.groups.core.consumer.world import World

LIVES, STEPS_OF_A_LIFE = 100, 25

CASES = Path(__file__).resolve().parents[1] / "conformance"
CONSUMER_FILES = (CASES / "cases" / "consumer.jsonl", CASES / "own" / "consumer.jsonl")


@cache
def classic_edges() -> set[Edge]:
    """Changes of state of a classic group; to Dead only ever by being unloaded, which diagrams leave out."""
    edges = {
        (before.value, after.value)
        for before, followers in TRANSITIONS.items()
        for after in followers
        if GroupState.DEAD not in (before, after)
    }
    return {(NOWHERE, GroupState.EMPTY.value), (GroupState.EMPTY.value, NOWHERE), *edges}


def group_edges() -> frozenset[Edge]:
    """Changes of state of consumer groups, by the conformance cases and by members that join, beat and go at random."""
    return frozenset(_edges_of_cases() | _edges_of_traffic())


def _edges_of_cases() -> set[Edge]:
    seen: set[Edge] = set()
    decide = machine.decide

    def noting(group: Group | None, command: Command, env: Env) -> Decision:
        decision = decide(group, command, env)
        _note(seen, group, decision.group)
        return decision

    async def run() -> None:
        for path in CONSUMER_FILES:
            for case in read_cases(path):
                await run_case(case, CoreBackend())

    with mock.patch.object(machine, "decide", noting):
        asyncio.run(run())
    return seen


def _edges_of_traffic() -> set[Edge]:
    """A hundred short lives of a group; the numbers come from one seed, so they are the same in every run."""
    seen: set[Edge] = set()
    chance = random.Random(848)
    for _ in range(LIVES):
        world = World(config=GroupConfig(consumer_assignment_interval_ms=chance.choice((0, 1_000))))
        world.set_topics(foo=3)
        for _ in range(STEPS_OF_A_LIFE):
            before = world.group
            _one_step(world, chance)
            _note(seen, before, world.group)
    return seen


def _one_step(world: World, chance: random.Random) -> None:
    """A request of some member, or some time."""
    name = chance.choice(("one", "two", "three"))
    group = world.group if isinstance(world.group, ConsumerGroup) else None
    member = group.members[name] if group and name in group.members else None
    instance = "three" if name == "three" else None
    match chance.randrange(9):
        case 0:
            world.set_topics(foo=world.topics.by_name["foo"].partitions + 1)
        case 1:
            world.advance(chance.choice((500, 1_000, 46_000)))
        case 2 if member:
            world.heartbeat(name, -2 if instance else -1, instance_id=instance)
        case 3 if member:
            world.heartbeat(name, -1, instance_id=instance)
        case 4 if group and not group.members:
            join_classic(world, "", ["foo"])
        case _ if member and member.member_epoch > 0:
            held = {"foo": [p for partitions in member.assigned.values() for p in partitions]}
            world.heartbeat(name, member.member_epoch, chance.choice((None, held)), instance_id=instance)
        case _:
            fields = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": frozenset({"foo"})}
            world.heartbeat(name, 0, {}, instance_id=instance, **fields)


def _note(seen: set[Edge], before: Group | None, after: Group | None) -> None:
    """Changes between two lives as a classic group are not these groups'."""
    edge = _named(before), _named(after)
    if edge[0] != edge[1] and set(edge) != {NOWHERE, CLASSIC}:
        seen.add(edge)


def _named(group: Group | None) -> str:
    if group is None:
        return NOWHERE
    return group.state.value if isinstance(group, ConsumerGroup) else CLASSIC


@dataclass(frozen=True, slots=True)
class _Inputs:
    """One call of `reconcile`, over two partitions of one topic."""

    state: MemberState
    at_target: bool
    assigned: frozenset[int]
    pending: frozenset[int]
    target: frozenset[int]
    others: frozenset[int]
    reported: frozenset[int] | None
    subscribed: bool
    changed: bool

    def can_be(self) -> bool:
        """The invariants of consumer.md 1.5, and that who does not subscribe any more changed that at some time."""
        if self.assigned & self.pending or self.others & (self.assigned | self.pending):
            return False
        if bool(self.pending) != (self.state is MemberState.UNREVOKED_PARTITIONS):
            return False
        if self.state is MemberState.STABLE and self.at_target:
            return self.assigned == self.target
        return self.state is not MemberState.UNRELEASED_PARTITIONS or not self.at_target or self.assigned <= self.target


SETS = tuple(frozenset(numbers) for size in range(3) for numbers in itertools.combinations((0, 1), size))
EPOCH = 5


@cache
def member_edges() -> frozenset[Edge]:
    """Steps of members of consumer groups towards their target."""
    edges: set[Edge] = set()
    for inputs in _all_inputs():
        try:
            after = _reconciled(inputs)
        except ProtocolError as refusal:
            edges.add((inputs.state.name, refusal.error.name))
            continue
        if after is not None and after is not inputs.state:
            edges.add((inputs.state.name, after.name))
    return frozenset(edges)


def _all_inputs() -> Iterator[_Inputs]:
    product = itertools.product(
        MemberState, (True, False), SETS, SETS, SETS, SETS, (None, *SETS), (True, False), (True, False)
    )
    return (inputs for values in product if (inputs := _Inputs(*values)).can_be())


def _reconciled(inputs: _Inputs) -> MemberState | None:
    topic = Topic("f", "foo", 2)
    me = ConsumerMember(
        "me",
        subscribed_topic_names=frozenset({"foo"} if inputs.subscribed else ()),
        member_epoch=EPOCH if inputs.at_target else EPOCH - 1,
        previous_member_epoch=EPOCH - 2,
        state=inputs.state,
        assigned=_assigned(inputs.assigned),
        pending_revocation=_assigned(inputs.pending),
        target={"f": inputs.target} if inputs.target else {},
    )
    other = ConsumerMember("other", member_epoch=EPOCH - 1, assigned=_assigned(inputs.others))
    group = ConsumerGroup("g", group_epoch=EPOCH, assignment_epoch=EPOCH, members=ConsumerMembers().put(me).put(other))
    reported = None if inputs.reported is None else ({"f": inputs.reported} if inputs.reported else {})
    view = TopicView(1, {"foo": topic}, {"f": topic})
    record = reconcile(group, me, reported, view, 0, subscription_changed=inputs.changed)
    return None if record is None else record.state


def _assigned(numbers: Iterable[int]) -> Assigned:
    partitions = dict.fromkeys(sorted(numbers), 1)
    return {"f": partitions} if partitions else {}
