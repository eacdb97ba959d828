"""No partition is read by two members of a consumer group, in whatever order requests, answers and the user's work go.

The state machine of the client against the core of the service. Nobody is removed here: time stands still.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from groups.core.model.commands import ConsumerHeartbeat
from groups.core.model.types import GroupConfig
from kcoord.client import ConsumerConfig
from kcoord.client.core.consumer_group.membership import (
    ConsumerMembership,
    Reconciliation,
    Sent,
    TopicIdPartition,
)
from kcoord.client.core.consumer_group.request import HeartbeatRequest, Subscribed
from kcoord.client.core.consumer_group.states import State
from kcoord.client.core.http import Disconnected
from kcoord.protocol.errors import Error, ProtocolError
from tests.groups.core.consumer.world import GROUP, World
from tests.support.selection import sample

CONFIG = ConsumerConfig.of({"group_id": GROUP, "group_protocol": "consumer"})
TOPICS = Subscribed(frozenset({"foo"}))
MEMBERS = ("a", "b", "c")
PARTITIONS = 5


@dataclass
class Client:
    """One member: its state, what its user holds, the assignment in progress, and the request in flight."""

    membership: ConsumerMembership
    request: HeartbeatRequest = field(default_factory=lambda: HeartbeatRequest(CONFIG))
    held: frozenset[TopicIdPartition] = frozenset()
    work: Reconciliation | None = None
    flight: tuple[Sent, dict[str, Any]] | None = None
    reply: Any = None

    def poll(self) -> None:
        """One step of the user's lane, as `ConsumerGroupCoordinator.poll` takes them."""
        membership = self.membership
        if membership.state is State.FENCED:
            self.held, self.work = frozenset(), None
            membership.join()
        elif self.work is None:
            self.work = membership.reconciliation()
            if self.work is not None:
                self.held &= self.work.target.partitions
        else:
            if membership.stands(self.work):
                self.held = self.work.target.partitions
                membership.reconciled(self.work)
            self.work = None

    def send(self) -> None:
        body = self.request.body(self.membership, TOPICS, 0)
        self.flight, self.reply = (self.membership.sending(), body), None

    def told(self) -> None:
        assert self.flight is not None
        (sent, _), reply = self.flight, self.reply
        self.flight = None
        if reply is None or reply.error is not Error.NONE:
            failure = Disconnected("lost") if reply is None else ProtocolError(reply.error)
            self.membership.failed(sent, failure)
            self.request.forget()
            return
        found = None
        if reply.assignment is not None:
            found = [TopicIdPartition(i, "foo", p) for i, numbers in reply.assignment.items() for p in numbers]
        self.membership.answered(sent, reply.member_epoch, found)


class Walk:
    """Members come and go; requests and answers are delayed and lost."""

    def __init__(self) -> None:
        self.world = World(config=GroupConfig())
        self.world.set_topics(foo=PARTITIONS)
        self.clients: dict[str, Client] = {}
        for name in MEMBERS[:2]:
            self.joins(name)
        self.come_to_rest()

    def joins(self, name: str) -> None:
        client = self.clients[name] = Client(ConsumerMembership(name))
        client.membership.join()

    def a_client(self, number: int) -> tuple[str, Client]:
        return sorted(self.clients.items())[number % len(self.clients)]

    def comes(self, _: int = 0) -> None:
        if len(self.clients) == len(MEMBERS):
            return
        name = next(name for name in MEMBERS if name not in self.clients)
        self.joins(name)
        self.exchanges(sorted(self.clients).index(name))

    def goes(self, number: int) -> None:
        """Only with no request in flight: a leave that is overtaken is the business of `check_order`."""
        name, client = self.a_client(number)
        if client.flight is None and len(self.clients) > 1:
            del self.clients[name]
            self.world.heartbeat(name, -1)
            self.everybody_exchanges()

    def sends(self, number: int) -> None:
        _, client = self.a_client(number)
        if client.flight is None and client.membership.heartbeating:
            client.send()

    def arrives(self, number: int) -> None:
        name, client = self.a_client(number)
        if client.flight is not None and client.reply is None:
            client.reply = self.world.send(_command(name, client.flight[1])).reply

    def is_told(self, number: int) -> None:
        """The answer, or, if the request has not arrived, that there will be none."""
        _, client = self.a_client(number)
        if client.flight is not None:
            client.told()

    def loses_the_answer(self, number: int) -> None:
        _, client = self.a_client(number)
        if client.flight is not None:
            client.reply = None
            client.told()

    def exchanges(self, number: int) -> None:
        self.sends(number)
        self.arrives(number)
        self.is_told(number)

    def fails(self, number: int) -> None:
        """Its next heartbeat says everything."""
        self.sends(number)
        self.loses_the_answer(number)

    def everybody_exchanges(self, _: int = 0) -> None:
        for number in range(len(self.clients)):
            self.exchanges(number)

    def polls(self, number: int) -> None:
        self.a_client(number)[1].poll()

    def nobody_shares(self) -> None:
        held = [partition for client in self.clients.values() for partition in client.held]
        assert len(held) == len(set(held)), {name: sorted(client.held) for name, client in self.clients.items()}

    def come_to_rest(self) -> None:
        for _ in range(30):
            for number in range(len(self.clients)):
                self.exchanges(number)
                self.polls(number)


def _command(name: str, body: dict[str, Any]) -> ConsumerHeartbeat:
    owned, names = body.get("topic_partitions"), body.get("subscribed_topic_names")
    return ConsumerHeartbeat(
        GROUP,
        name,
        body["member_epoch"],
        client_id="client",
        rebalance_timeout_ms=body.get("rebalance_timeout_ms", -1),
        subscribed_topic_names=None if names is None else frozenset(names),
        topic_partitions=None
        if owned is None
        else {topic["topic_id"]: frozenset(topic["partitions"]) for topic in owned},
    )


STEPS = (
    Walk.sends,
    Walk.arrives,
    Walk.is_told,
    Walk.loses_the_answer,
    Walk.exchanges,
    Walk.everybody_exchanges,
    Walk.fails,
    Walk.polls,
    Walk.polls,
    Walk.comes,
    Walk.goes,
)


@pytest.mark.parametrize("seed", sample(range(15), "random changes of a group again"))
def test_no_partition_is_held_by_two(seed: int) -> None:
    """Long walks, since it takes many steps to get into trouble: of 650 walks 42 found a client that reports only what
    is in place."""
    random = Random(seed)
    for _ in range(10):
        walk = Walk()
        for _ in range(200):
            random.choice(STEPS)(walk, random.randrange(len(MEMBERS)))
            walk.nobody_shares()
        walk.come_to_rest()
        held = [partition.partition for client in walk.clients.values() for partition in client.held]
        assert sorted(held) == list(range(PARTITIONS)), "everything is held in the end"


def test_what_is_assigned_while_a_full_heartbeat_is_under_way_is_not_given_away() -> None:
    walk = Walk()
    walk.goes(1)
    walk.exchanges(0)  # a is told to take everything
    walk.comes()
    walk.fails(0)
    walk.sends(0)
    walk.arrives(0)
    walk.polls(0)
    walk.polls(0)  # takes it
    walk.exchanges(1)
    walk.polls(1)
    walk.polls(1)
    walk.nobody_shares()
