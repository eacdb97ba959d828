"""Which offsets expire and when (offsets.md 7.3), as tables and as promises."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.classic.rebalance import topics_of_generation
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers, RegexResolution
from groups.core.model.group import Group
from groups.core.model.types import (
    ClassicGroup,
    ClassicMember,
    ConsumerProtocol,
    GroupState,
    Hold,
    Members,
    PendingIds,
    Protocol,
)
from groups.core.subscription import ANY, NONE, SubscribedTopics
from kcoord.protocol import consumer_protocol as wire
from offsets.core.retention import NO_PINS, Fate, Kept, Pins, RetentionRule, StoredOffset, may_go, rule_of

CODEC = ConsumerProtocol(wire.decode_subscription, wire.decode_assignment, lambda partitions, version: b"")
READS_ORDERS = wire.encode_subscription(wire.Subscription(("orders",)))
UNREADABLE = b"\x00"
RETENTION = 60_000
SINCE, COMMITTED = 500_000, 100_000


def classic(state: GroupState, protocol_type: str | None, metadata: bytes = READS_ORDERS) -> ClassicGroup:
    """A group with one member, that reads `orders`; with none where it is Empty or simple."""
    one = ClassicMember("m", None, "c", "h", 10_000, 30_000, protocol_type or "", (Protocol("range", metadata),))
    members = () if state is GroupState.EMPTY or protocol_type is None else (one,)
    group = ClassicGroup(
        "g",
        state=state,
        state_since=SINCE,
        generation_id=1,
        protocol_type=protocol_type,
        protocol_name="range" if members else None,
        members=Members(members),
    )
    return replace(group, generation_topics=topics_of_generation(group, group.protocol_name, CODEC))


def consumer(*members: ConsumerMember, resolved: RegexResolution | None = None) -> ConsumerGroup:
    """A consumer group, in epoch 2 with the target of epoch 1: Assigning, unless it is Empty."""
    found = ConsumerMembers()
    for member in members:
        found = found.put(member)
    resolutions = {"": resolved} if resolved is not None else {}
    return ConsumerGroup(
        "g", state_since=SINCE, group_epoch=2, assignment_epoch=1, members=found, resolutions=resolutions
    )


def fate(group: Group, topic: str = "bills", pins: Pins = NO_PINS, **offset: object) -> Fate:
    """What becomes of an offset of that topic, committed at COMMITTED."""
    stored = StoredOffset(topic, 0, COMMITTED, **offset)  # type: ignore[arg-type]
    return rule_of(group, pins, RETENTION).fate(stored)


BY_COMMIT = Fate(COMMITTED + RETENTION)
BY_EMPTY = Fate(SINCE + RETENTION)
BUSY = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE, GroupState.DEAD)


@pytest.mark.parametrize(
    ("state", "protocol_type", "expected"),
    [
        *((state, None, BY_COMMIT) for state in GroupState),
        (GroupState.EMPTY, "consumer", BY_EMPTY),
        (GroupState.EMPTY, "connect", BY_EMPTY),
        (GroupState.STABLE, "consumer", BY_COMMIT),
        (GroupState.PREPARING_REBALANCE, "consumer", Fate(None, Kept.REBALANCING)),
        (GroupState.COMPLETING_REBALANCE, "consumer", Fate(None, Kept.REBALANCING)),
        (GroupState.DEAD, "consumer", Fate(None, Kept.REBALANCING)),
        *((state, "connect", Fate(None, Kept.MEMBERS)) for state in BUSY),
    ],
)
def test_base_time_of_a_classic_group_by_protocol_type_and_state(
    state: GroupState, protocol_type: str | None, expected: Fate
) -> None:
    assert fate(classic(state, protocol_type)) == expected


def test_a_classic_group_keeps_what_its_members_read_and_all_if_that_cannot_be_told() -> None:
    stable = classic(GroupState.STABLE, "consumer")
    assert fate(stable, "orders") == Fate(None, Kept.SUBSCRIBED)
    assert fate(stable, "bills") == BY_COMMIT
    assert fate(classic(GroupState.STABLE, "consumer", UNREADABLE), "bills") == Fate(None, Kept.SUBSCRIBED)
    assert rule_of(classic(GroupState.STABLE, "consumer", UNREADABLE), NO_PINS, RETENTION).keeps_all
    assert rule_of(replace(stable, generation_topics=None), NO_PINS, RETENTION).keeps_all


def test_a_consumer_group_counts_from_the_commit_also_when_it_is_empty() -> None:
    assert fate(consumer()) == BY_COMMIT
    busy = consumer(ConsumerMember("m", subscribed_topic_names=frozenset({"orders"}), member_epoch=1))
    assert fate(busy, "bills") == BY_COMMIT
    assert fate(busy, "orders") == Fate(None, Kept.SUBSCRIBED)


def test_retention_differs_from_kafka_in_keeping_all_until_a_regular_expression_is_resolved() -> None:
    member = ConsumerMember("m", subscribed_topic_regex="b.*", member_epoch=1)
    assert fate(consumer(member), "orders") == Fate(None, Kept.SUBSCRIBED)
    resolved = RegexResolution({"b.*": frozenset({"bills"})}, topics_version=1, started_at=0)
    assert fate(consumer(member, resolved=resolved), "orders") == BY_COMMIT
    assert fate(consumer(member, resolved=resolved), "bills") == Fate(None, Kept.SUBSCRIBED)


@pytest.mark.parametrize("expire_at", [COMMITTED + 1, SINCE + RETENTION * 10])
def test_an_explicit_time_replaces_retention_in_both_directions_but_no_other_rule(expire_at: int) -> None:
    assert fate(classic(GroupState.EMPTY, None), expire_timestamp=expire_at) == Fate(expire_at)
    assert fate(classic(GroupState.EMPTY, "consumer"), expire_timestamp=expire_at) == Fate(expire_at)
    stable = classic(GroupState.STABLE, "consumer")
    assert fate(stable, "orders", expire_timestamp=expire_at) == Fate(None, Kept.SUBSCRIBED)
    rebalancing = classic(GroupState.PREPARING_REBALANCE, "consumer")
    assert fate(rebalancing, expire_timestamp=expire_at) == Fate(None, Kept.REBALANCING)
    assert fate(classic(GroupState.EMPTY, None), pending=True, expire_timestamp=expire_at) == Fate(None, Kept.PENDING)


def test_pins_keep_a_topic_or_everything() -> None:
    simple = classic(GroupState.EMPTY, None)
    assert fate(simple, "bills", Pins(topics=frozenset({"bills"}))) == Fate(None, Kept.PINNED)
    assert fate(simple, "bills", Pins(topics=frozenset({"orders"}))) == BY_COMMIT
    assert fate(simple, "bills", Pins(group=True)) == Fate(None, Kept.PINNED)
    assert not rule_of(simple, Pins(topics=frozenset({"bills"})), RETENTION).keeps_all
    assert rule_of(simple, Pins(group=True), RETENTION).keeps_all


@pytest.mark.parametrize(("now", "expired"), [(-1, False), (0, True), (1, True)])
def test_the_instant_itself_counts(now: int, expired: bool) -> None:
    rule = rule_of(classic(GroupState.EMPTY, None), NO_PINS, RETENTION)
    assert rule.expired(StoredOffset("bills", 0, COMMITTED), COMMITTED + RETENTION + now) is expired
    assert rule.expired(StoredOffset("bills", 0, COMMITTED, expire_timestamp=7), 7 + now) is expired


@pytest.mark.parametrize(
    ("group", "goes"),
    [
        (classic(GroupState.EMPTY, None), True),
        (classic(GroupState.EMPTY, "consumer"), True),
        (ClassicGroup("g", pending_join=PendingIds({"m": SINCE})), True),
        (ClassicGroup("g", hold=Hold(SINCE, "ops", "")), False),
        (ConsumerGroup("g", hold=Hold(SINCE, "ops", "")), False),
        *((classic(state, "consumer"), False) for state in BUSY),
        (consumer(), True),
        (consumer(ConsumerMember("m", member_epoch=1)), False),
    ],
)
def test_a_group_goes_when_it_is_empty_with_nothing_left_and_no_pin(group: Group, goes: bool) -> None:
    assert may_go(group, NO_PINS, offsets_left=False) is goes
    assert not may_go(group, NO_PINS, offsets_left=True)
    assert not may_go(group, Pins(group=True), offsets_left=False)
    assert not may_go(group, Pins(topics=frozenset({"t"})), offsets_left=False)


TOPICS = ("a", "b", "c")
INSTANTS = st.integers(0, 300_000)
NAMES = st.frozensets(st.sampled_from(TOPICS))
RULES = st.builds(
    RetentionRule,
    retention_ms=st.integers(1, 200_000),
    since=st.none() | INSTANTS,
    kept=st.none() | st.sampled_from([Kept.REBALANCING, Kept.MEMBERS]),
    subscribed=st.sampled_from([NONE, ANY]) | st.builds(SubscribedTopics, NAMES),
    pins=st.builds(Pins, st.booleans(), NAMES),
)
OFFSETS = st.builds(
    StoredOffset, st.sampled_from(TOPICS), st.integers(0, 3), INSTANTS, st.none() | INSTANTS, st.booleans()
)


@given(RULES, OFFSETS, INSTANTS)
def test_subscribed_pending_and_pinned_offsets_never_expire(
    rule: RetentionRule, offset: StoredOffset, now: int
) -> None:
    if offset.topic in rule.subscribed or offset.topic in rule.pins or offset.pending or rule.kept is not None:
        assert not rule.expired(offset, now)


@given(RULES, OFFSETS)
def test_what_is_shown_is_what_a_run_does(rule: RetentionRule, offset: StoredOffset) -> None:
    shown = rule.fate(offset)
    assert (shown.expires_at is None) is (shown.kept is not None), "there is an instant, or a reason why not"
    if shown.expires_at is None:
        assert not rule.expired(offset, 10**15)
    else:
        assert not rule.expired(offset, shown.expires_at - 1)
        assert rule.expired(offset, shown.expires_at)


@given(RULES, OFFSETS)
def test_the_topics_and_the_switch_that_statements_go_by_say_what_the_rule_says(
    rule: RetentionRule, offset: StoredOffset
) -> None:
    kept_by_topic = rule.keeps_all or offset.topic in rule.kept_topics
    assert (rule.fate(offset).expires_at is None) is (kept_by_topic or offset.pending)
