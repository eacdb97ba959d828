"""Members that behave as the protocol asks, one heartbeat at a time; a test may lose their answers, repeat their
requests, restart or stop them.

Source: consumer.md 11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from groups.core.assignors import Partitions
from groups.core.model.consumer_group import ConsumerGroupState, flat, plain
from groups.core.model.types import UNLIMITED, TopicRights
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import Call, World

_REJOIN = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.GROUP_ID_NOT_FOUND)
_WAIT = (
    Error.UNRELEASED_INSTANCE_ID,
    Error.UNKNOWN_SERVER_ERROR,
    Error.GROUP_MAX_SIZE_REACHED,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass(slots=True, eq=False)
class Client:
    """A member, or somebody who wants to be one. `owned` is what it works on, by topic id."""

    world: World
    member_id: str
    names: tuple[str, ...] = ("foo",)
    regex: str = ""
    instance_id: str | None = None
    assignor: str | None = None
    max_wait_ms: int = 0
    rights: TopicRights = UNLIMITED
    running: bool = True
    epoch: int = 0
    owned: Partitions = field(default_factory=dict)
    full: bool = True
    call: Call | None = None

    def beat(self, *, lost: bool = False, silent: bool = False) -> None:
        """One heartbeat. `lost`: its answer never arrives. `silent`: it does not report what it owns."""
        if not self.running:
            return
        self._receive()
        # A held heartbeat that is given up may have had an answer: as after any that failed, everything is sent again.
        self.full = self.full or self.call is not None
        fields: dict[str, object] = {
            "max_wait_ms": self.max_wait_ms,
            "instance_id": self.instance_id,
            "rights": self.rights,
        }
        full = self.full or self.epoch == 0
        if full:
            fields |= {
                "rebalance_timeout_ms": 8_000,
                "subscribed_topic_names": frozenset(self.names),
                "subscribed_topic_regex": self.regex,
                "server_assignor": self.assignor,
            }
        owned = self.owned if full or not silent else None
        call = self.world.heartbeat(self.member_id, self.epoch, owned, **fields)
        self.full = lost
        if not lost:
            self.call = call
            self._receive()

    def _receive(self) -> None:
        """Handle the answer, if there is one."""
        if self.call is None or self.call.reply is None:
            return
        call, self.call = self.call, None
        if call.error in _REJOIN:
            self.restart()
        elif call.error in _WAIT:
            self.full = True
        else:
            self.epoch = call.epoch
            if call.reply.assignment is not None:
                self.owned = call.reply.assignment

    def restart(self) -> None:
        """Give up everything; the next heartbeat joins."""
        self.epoch, self.owned, self.full, self.call = 0, {}, True, None

    def leave(self, epoch: int = -1) -> None:
        """Leave, for good or, with -2, for a while."""
        self.world.heartbeat(self.member_id, epoch, instance_id=self.instance_id)
        self.restart()
        self.running = False

    def subscribe(self, names: tuple[str, ...], regex: str = "") -> None:
        """Subscribe to something else from the next heartbeat on."""
        self.names, self.regex, self.full = names, regex, True


def is_settled(world: World, clients: list[Client]) -> bool:
    """The group is Stable with exactly the running clients, and each has exactly what the group thinks it has."""
    running = {client.member_id: client for client in clients if client.running}
    if world.group is None:
        return not running
    group = world.consumer
    if set(group.members) != set(running):
        return False
    if group.state not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
        return False
    return all(
        client.epoch == group.assignment_epoch and client.owned == plain(group.members[member_id].assigned)
        for member_id, client in running.items()
    )


def assert_complete(world: World, clients: list[Client]) -> None:
    """Every partition of every topic that a running client subscribes to is worked on by one that subscribes to it."""
    group = world.consumer
    wanted = {
        (topic.topic_id, p)
        for topic in world.topics.by_name.values()
        if topic.name in group.subscribed_topics()
        for p in range(topic.partitions)
    }
    owned = [key for client in clients if client.running for key in flat(client.owned)]
    assert sorted(owned) == sorted(wanted)
    for client in clients:
        if client.running:
            subscription = group.subscription_of(group.members[client.member_id])
            assert {world.topics.by_id[topic_id].name for topic_id in client.owned} <= subscription


def assert_permitted(world: World, clients: list[Client]) -> None:
    """What a running client works on without having named it, it may describe; and it is given all that it may have."""
    for client in clients:
        if client.running:
            own = frozenset(client.names) | {
                name
                for name in world.topics.by_name
                if client.regex and re.fullmatch(client.regex, name) and client.rights.may_describe(name)
            }
            assert world.consumer.subscription_of(world.consumer.members[client.member_id]) == own
