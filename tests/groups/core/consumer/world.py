"""One consumer group in virtual time: sends commands to `decide`, keeps its topics, its background work and the
heartbeats that wait, and checks after every decision what must hold.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from groups.core.assignors import BUILT_IN, Assignor
from groups.core.consumer.target import compute
from groups.core.machine import answer_for, decide
from groups.core.model.commands import (
    AbandonWait,
    ApplyRegexResolution,
    Command,
    CommitOffsets,
    ConsumerHeartbeat,
    HoldGroup,
    KickMember,
    ParkKind,
    ReleaseHold,
    Tick,
)
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember
from groups.core.model.group import Group, wake_at
from groups.core.model.replies import Parked
from groups.core.model.turn import ComputeTarget, Decision, ResolveRegexes
from groups.core.model.types import ConsumerProtocol, Env, GroupConfig, Topic, TopicView
from kcoord.protocol import consumer_protocol as wire
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.invariants import check
from tests.groups.core.renewals import check_commits, check_renewal

START = 1_700_000_000_000
GROUP = "orders"
MOST_TIMERS = 10_000
CODEC = ConsumerProtocol(
    wire.decode_subscription,
    wire.decode_assignment,
    lambda partitions, version: wire.encode_assignment(wire.Assignment(partitions, version=version)),
)

Owned = Mapping[str, Iterable[int]]
"""Topic name -> partitions."""


def regex_error(pattern: str) -> str | None:
    """Python's syntax stands in for RE2's."""
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return None


@dataclass(slots=True, eq=False)
class Call:
    """One request: `parked` while it waits, `reply` once it is answered; `reruns` counts how often it was woken."""

    command: Command
    parked: Parked | None = None
    reply: Any = None
    reruns: int = 0

    @property
    def error(self) -> Error:
        assert self.reply is not None, f"{self.command} is not answered"
        error: Error = self.reply.error
        return error

    @property
    def epoch(self) -> int:
        assert self.error is Error.NONE, self.reply
        epoch: int = self.reply.member_epoch
        return epoch

    @property
    def assignment(self) -> dict[str, list[int]] | None:
        """By topic name."""
        assert self.error is Error.NONE, self.reply
        if self.reply.assignment is None:
            return None
        return {topic_id.split("#")[0]: sorted(numbers) for topic_id, numbers in self.reply.assignment.items()}


@dataclass(slots=True)
class World:
    """A group that may not exist yet, the clock, the topics, and what is under way."""

    config: GroupConfig = field(default_factory=GroupConfig)
    assignors: Mapping[str, Assignor] = field(default_factory=lambda: {"range": BUILT_IN["range"]})
    now: int = START
    group: Group | None = None
    topics: TopicView = field(default_factory=TopicView)
    waiting: list[Call] = field(default_factory=list)
    targets: list[ComputeTarget] = field(default_factory=list)
    resolutions: list[ResolveRegexes] = field(default_factory=list)
    last: Decision | None = None
    may_expire: bool = True
    gap: int = 0
    sessions_known_until: int | None = None
    ids: Any = field(default_factory=lambda: itertools.count(1))

    # -- time and topics

    def advance(self, ms: int) -> None:
        """Move the clock; every timer fires at its own deadline."""
        target = self.now + ms
        for _ in range(MOST_TIMERS):
            at = wake_at(self.group)
            if at is None or at > target:
                break
            self._move_to(max(self.now, at))
            self.send(Tick(GROUP))
        else:
            raise AssertionError("the timers of the group do not come to rest")
        self._move_to(target)

    def jump(self, ms: int) -> None:
        """Move the clock without a tick: timers are late until the next command."""
        self._move_to(self.now + ms)

    def _move_to(self, instant: int) -> None:
        self.now = instant
        self.waiting = [call for call in self.waiting if call.parked is not None and call.parked.parked_until > instant]

    def set_topics(self, **partitions: int | None) -> None:
        """Create, grow or (None) delete topics. One that comes back has another id."""
        by_name = dict(self.topics.by_name)
        for name, count in partitions.items():
            if count is None:
                del by_name[name]
            else:
                topic_id = by_name[name].topic_id if name in by_name else f"{name}#{next(self.ids)}"
                by_name[name] = Topic(topic_id, name, count)
        by_id = {topic.topic_id: topic for topic in by_name.values()}
        self.topics = TopicView(self.topics.version + 1, by_name, by_id)

    def by_id(self, owned: Owned) -> dict[str, frozenset[int]]:
        """Partitions by topic id. A topic that does not exist is unknown to the group too."""
        known = self.topics.by_name
        return {known[name].topic_id if name in known else name: frozenset(numbers) for name, numbers in owned.items()}

    # -- requests

    @property
    def env(self) -> Env:
        return Env(
            self.now,
            lambda prefix: f"{prefix}-{next(self.ids)}",
            self.config,
            self.topics,
            self.assignors,
            regex_error,
            CODEC,
            may_expire=self.may_expire,
            gap=self.gap,
            sessions_known_until=self.sessions_known_until,
        )

    def send(self, command: Command) -> Call:
        call = Call(command)
        self._decide(call)
        return call

    def _decide(self, call: Call) -> None:
        decision = decide(self.group, call.command, self.env)
        check(self.group, call.command, decision, self.env)
        check_renewal(self.group, call.command, decision, self.env)
        check_commits(decision.group, self.env)
        self.group, self.last = decision.group, decision
        self.targets += [effect for effect in decision.effects if isinstance(effect, ComputeTarget)]
        self.resolutions += [effect for effect in decision.effects if isinstance(effect, ResolveRegexes)]
        if isinstance(decision.reply, Parked):
            call.parked = decision.reply
            self.waiting.append(call)
        else:
            call.reply = decision.reply
        for answer in decision.answers:
            for parked in [call for call in self.waiting if call.parked is not None]:
                if (parked.parked.kind, parked.parked.member_id) == (answer.kind, answer.member_id):
                    self.waiting.remove(parked)
                    parked.reply = answer.reply
        self._wake()

    def _wake(self) -> None:
        """Run the heartbeats again whose wait is over."""
        for call in tuple(self.waiting):
            if call not in self.waiting or call.parked is None or call.parked.kind is not ParkKind.HEARTBEAT:
                continue
            if answer_for(self.group, call.parked) is not None:
                self.waiting.remove(call)
                assert isinstance(call.command, ConsumerHeartbeat)
                left = call.parked.parked_until - self.now
                call.command = replace(call.command, max_wait_ms=left, resumes=call.parked)
                call.parked = None
                call.reruns += 1
                self._decide(call)

    def heartbeat(self, member_id: str, epoch: int, owned: Owned | None = None, **fields: Any) -> Call:
        partitions = self.by_id(owned) if owned is not None else None
        command = ConsumerHeartbeat(
            GROUP, member_id, epoch, client_id="client", client_host="10.0.0.1", topic_partitions=partitions
        )
        return self.send(replace(command, **fields))

    def join(self, member_id: str, *names: str, **fields: Any) -> Call:
        """A heartbeat that joins, with a rebalance timeout of 5 s."""
        given = {"rebalance_timeout_ms": 5_000, "subscribed_topic_names": frozenset(names), **fields}
        return self.heartbeat(member_id, 0, {}, **given)

    def commit(self, member_id: str, epoch: int, owned: Owned | None = None, **fields: Any) -> Call:
        partitions = {name: frozenset(numbers) for name, numbers in (owned or {"foo": [0]}).items()}
        return self.send(replace(CommitOffsets(GROUP, member_id, None, epoch, partitions=partitions), **fields))

    def hold(self, ms: int, principal: str = "ann", reason: str = "reset") -> Call:
        return self.send(HoldGroup(GROUP, ms, principal, reason))

    def release(self, principal: str = "bob") -> Call:
        return self.send(ReleaseHold(GROUP, principal))

    def kick(self, member_id: str, principal: str = "ann", reason: str = "hangs") -> Call:
        return self.send(KickMember(GROUP, member_id, principal, reason))

    def abandon(self, call: Call) -> Call:
        """The connection of a heartbeat that waits went away."""
        assert call.parked is not None
        self.waiting.remove(call)
        return self.send(AbandonWait(GROUP, call.parked.member_id, call.parked.kind, call.parked.parked_until))

    # -- background work

    def resolve_regexes(self) -> None:
        """Run the oldest resolution that was asked for."""
        asked = self.resolutions.pop(0)
        names = [name for name in self.topics.by_name if asked.rights.may_describe(name)]
        topics = {regex: frozenset(name for name in names if re.fullmatch(regex, name)) for regex in asked.patterns}
        self.send(ApplyRegexResolution(GROUP, topics, self.topics.version, asked.started_at, asked.rights.key))

    def compute_target(self) -> None:
        """Run the oldest computation that was asked for."""
        self.send(compute(self.targets.pop(0), self.assignors))

    # -- looking

    @property
    def consumer(self) -> ConsumerGroup:
        assert isinstance(self.group, ConsumerGroup), self.group
        return self.group

    @property
    def epochs(self) -> tuple[int, int]:
        """Of the group and of its target."""
        return self.consumer.group_epoch, self.consumer.assignment_epoch

    def member(self, member_id: str) -> ConsumerMember:
        return self.consumer.members[member_id]

    def assigned(self, member_id: str) -> dict[str, list[int]]:
        """By topic name."""
        member = self.member(member_id)
        return {topic_id.split("#")[0]: sorted(numbers) for topic_id, numbers in member.assigned.items()}

    def stable(self, *member_ids: str, **fields: Any) -> None:
        """A Stable group of these members, all subscribed to foo."""
        for member_id in member_ids:
            assert self.join(member_id, "foo", **fields).error is Error.NONE
        for _ in range(4):
            for member_id in member_ids:
                member = self.member(member_id)
                self.heartbeat(member_id, member.member_epoch, self.assigned(member_id))
        assert self.consumer.state.value == "Stable"
