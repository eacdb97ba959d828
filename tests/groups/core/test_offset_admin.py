"""What a group allows operators to do with its offsets, and what it is subscribed to (offsets.md 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groups.core.classic.rebalance import topics_of_generation
from groups.core.machine import decide
from groups.core.model.commands import DeleteOffsets, ResetOffsets
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers
from groups.core.model.group import Group
from groups.core.model.records import GroupCreated
from groups.core.model.replies import DeleteOffsetsReply, Done
from groups.core.model.types import ClassicGroup, ClassicMember, ConsumerProtocol, Env, GroupState, Members, Protocol
from groups.core.subscription import subscribed_topics
from kcoord.protocol import consumer_protocol as wire
from kcoord.protocol.errors import Error
from tests.groups.core.world import START

CODEC = ConsumerProtocol(wire.decode_subscription, wire.decode_assignment, lambda partitions, version: b"")
ENV = Env(now=START, fresh_id=lambda prefix: f"{prefix}-1", consumer_protocol=CODEC)
READS_ORDERS = wire.encode_subscription(wire.Subscription(("orders",)))
READS_BILLS = wire.encode_subscription(wire.Subscription(("bills",)))


def member(member_id: str, *protocols: Protocol, protocol_type: str = "consumer") -> ClassicMember:
    return ClassicMember(member_id, None, "client", "host", 10_000, 30_000, protocol_type, protocols, is_new=False)


def classic(
    state: GroupState = GroupState.STABLE,
    *,
    protocol_type: str | None = "consumer",
    metadata: bytes = READS_ORDERS,
    codec: ConsumerProtocol | None = CODEC,
) -> ClassicGroup:
    """A group with one member, none where it is Empty."""
    one = member("m", Protocol("other", READS_BILLS), Protocol("range", metadata), protocol_type=protocol_type or "")
    empty = state is GroupState.EMPTY
    group = ClassicGroup(
        "g",
        state=state,
        state_since=START,
        generation_id=1,
        protocol_type=protocol_type,
        protocol_name=None if empty else "range",
        leader_id=None if empty else "m",
        members=Members(() if empty else (one,)),
    )
    return replace(group, generation_topics=topics_of_generation(group, group.protocol_name, codec))


def consumer(*topics: str) -> ConsumerGroup:
    members = ConsumerMembers()
    for index, topic in enumerate(topics):
        members = members.put(ConsumerMember(f"m{index}", subscribed_topic_names=frozenset({topic}), member_epoch=1))
    return ConsumerGroup("g", group_epoch=1, assignment_epoch=1, members=members)


def asked(group: Group | None, *topics: str) -> DeleteOffsetsReply:
    decision = decide(group, DeleteOffsets("g", frozenset(topics)), ENV)
    assert isinstance(decision.reply, DeleteOffsetsReply)
    assert (decision.group, decision.records) == (group, ()), "asking changes nothing"
    return decision.reply


class TestSubscribedTopics:
    def test_the_chosen_protocol_counts_not_the_others_of_a_member(self) -> None:
        found = subscribed_topics(classic())
        assert (found.known, "orders" in found, "bills" in found) == (True, True, False)

    @pytest.mark.parametrize(
        "group",
        [None, classic(GroupState.EMPTY), classic(protocol_type="connect"), classic(protocol_type=None), consumer()],
        ids=["unknown", "empty", "another protocol type", "simple", "consumer group without members"],
    )
    def test_nothing(self, group: Group | None) -> None:
        found = subscribed_topics(group)
        assert (found.known, "orders" in found) == (True, False)

    def test_a_group_whose_members_left_during_a_rebalance_reads_what_they_read_before(self) -> None:
        """Somebody who was given an id may still come: the next generation decides."""
        group = replace(classic(GroupState.PREPARING_REBALANCE), leader_id=None, members=Members())
        assert subscribed_topics(group).names == {"orders"}

    def test_metadata_that_cannot_be_read_may_name_any_topic(self) -> None:
        found = subscribed_topics(classic(metadata=b"\x00"))
        assert (found.known, "orders" in found, "whatever" in found) == (False, True, True)

    def test_without_a_way_to_read_metadata_it_may_be_any_topic(self) -> None:
        assert "whatever" in subscribed_topics(classic(codec=None))

    def test_a_consumer_group_reads_what_any_member_lists(self) -> None:
        found = subscribed_topics(consumer("orders", "bills"))
        assert found.names == {"orders", "bills"}


class TestDeleteOffsets:
    @pytest.mark.parametrize("state", [GroupState.STABLE, GroupState.PREPARING_REBALANCE])
    def test_subscribed_topics_are_named(self, state: GroupState) -> None:
        reply = asked(classic(state), "orders", "bills")
        assert (reply.error, reply.subscribed) == (Error.NONE, {"orders"})

    def test_an_empty_group_is_subscribed_to_nothing(self) -> None:
        assert asked(classic(GroupState.EMPTY), "orders") == DeleteOffsetsReply(Error.NONE)

    def test_a_group_of_another_protocol_type_must_be_empty(self) -> None:
        assert asked(classic(protocol_type="connect"), "orders").error is Error.NON_EMPTY_GROUP
        assert asked(classic(GroupState.EMPTY, protocol_type="connect"), "orders").error is Error.NONE

    def test_what_does_not_exist(self) -> None:
        assert asked(None, "orders").error is Error.GROUP_ID_NOT_FOUND
        assert asked(classic(GroupState.DEAD), "orders").error is Error.GROUP_ID_NOT_FOUND

    def test_the_empty_id_is_none(self) -> None:
        reply = decide(None, DeleteOffsets("", frozenset({"orders"})), ENV).reply
        assert isinstance(reply, DeleteOffsetsReply)
        assert reply.error is Error.INVALID_GROUP_ID

    def test_a_consumer_group_is_asked_in_every_state(self) -> None:
        assert asked(consumer("orders"), "orders", "bills").subscribed == {"orders"}


class TestResetOffsets:
    @pytest.mark.parametrize("group", [classic(), consumer("orders")], ids=["classic", "consumer"])
    def test_a_group_with_members_is_refused(self, group: Group) -> None:
        reply = decide(group, ResetOffsets("g"), ENV).reply
        assert isinstance(reply, Done)
        assert reply.error is Error.NON_EMPTY_GROUP
        assert "1 members" in reply.detail

    @pytest.mark.parametrize("group", [classic(GroupState.EMPTY), consumer()], ids=["classic", "consumer"])
    def test_a_group_without_members_is_not_changed(self, group: Group) -> None:
        decision = decide(group, ResetOffsets("g", create=True), ENV)
        assert (decision.reply, decision.records) == (Done(), ())

    def test_a_missing_group_is_made_on_request_only(self) -> None:
        refused = decide(None, ResetOffsets("g"), ENV)
        made = decide(None, ResetOffsets("g", create=True), ENV)
        assert isinstance(refused.reply, Done)
        assert refused.reply.error is Error.GROUP_ID_NOT_FOUND
        assert (made.reply, made.records) == (Done(), (GroupCreated("g", START),))
