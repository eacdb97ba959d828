"""Random traffic: members join, beat, lose answers, repeat requests, restart, leave, crash; topics come and go;
background work is late; timers run on time or late.

After every decision `invariants.check` holds; when the noise ends, everybody reconciles.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from groups.core.assignors import BUILT_IN
from groups.core.machine import answer_for
from groups.core.model.consumer_group import ConsumerGroup, flat
from groups.core.model.types import UNLIMITED, GroupConfig, TopicRights
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.clients import Client, assert_complete, assert_permitted, is_settled
from tests.groups.core.consumer.world import World

MOST_CLIENTS = 5
SETTLING_ROUNDS = 120
"""One a second: longer than a session after a held heartbeat, and than lost background work counts as running."""

picks = st.integers(min_value=0, max_value=MOST_CLIENTS - 1)
subscriptions = st.sampled_from([("foo",), ("foo", "bar"), ("bar",), ("later",), ()])
regexes = st.sampled_from(["", "", "", "fo.*", ".*"])
RIGHTS = {
    rights.key: rights
    for rights in (
        UNLIMITED,
        TopicRights("no foo", lambda name: name != "foo"),
        TopicRights("later", lambda name: name == "later"),
    )
}
some_rights = st.sampled_from([UNLIMITED, *RIGHTS.values()])


class Traffic(RuleBasedStateMachine):
    """A group and its members."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(assignors=BUILT_IN)
        self.clients: list[Client] = []
        self.started = 0

    @property
    def running(self) -> list[Client]:
        return [client for client in self.clients if client.running]

    def pick(self, number: int) -> Client:
        return self.running[number % len(self.running)]

    @initialize(inline=st.sampled_from([None, 0, 20]), partitions=st.integers(1, 7))
    def begin(self, inline: int | None, partitions: int) -> None:
        self.world.config = GroupConfig(
            consumer_assignment_inline_limit=inline,
            consumer_session_timeout_ms=20_000,
            consumer_regex_refresh_interval_ms=30_000,
        )
        self.world.set_topics(foo=partitions, bar=2)

    @precondition(lambda self: len(self.running) < MOST_CLIENTS)
    @rule(
        names=subscriptions,
        regex=regexes,
        instance_id=st.sampled_from([None, None, "i1", "i2"]),
        assignor=st.sampled_from([None, "range", "uniform"]),
        max_wait_ms=st.sampled_from([0, 0, 5_000]),
        rights=some_rights,
    )
    def start(
        self,
        names: tuple[str, ...],
        regex: str,
        instance_id: str | None,
        assignor: str | None,
        max_wait_ms: int,
        rights: TopicRights,
    ) -> None:
        if instance_id is not None and any(client.instance_id == instance_id for client in self.running):
            return
        self.started += 1
        client = Client(self.world, f"m{self.started}", names, regex, instance_id, assignor, max_wait_ms, rights)
        self.clients.append(client)
        client.beat()

    @rule(rounds=st.integers(1, 3))
    def everybody_beats(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                client.beat()

    @precondition(lambda self: self.running)
    @rule(number=picks, lost=st.booleans(), silent=st.booleans())
    def one_beats(self, number: int, lost: bool, silent: bool) -> None:
        self.pick(number).beat(lost=lost, silent=silent)

    @precondition(lambda self: self.running)
    @rule(number=picks, epoch=st.integers(-3, 9), instance_id=st.sampled_from([None, "i1", "i2"]))
    def somebody_else_speaks_for_one(self, number: int, epoch: int, instance_id: str | None) -> None:
        client = self.pick(number)
        self.world.commit(client.member_id, epoch)
        if epoch > client.epoch:
            self.world.heartbeat(client.member_id, epoch, instance_id=instance_id)
        self.world.heartbeat("stranger", max(epoch, 1), instance_id=instance_id)

    @precondition(lambda self: self.running)
    @rule(number=picks)
    def one_restarts(self, number: int) -> None:
        client = self.pick(number)
        client.restart()
        client.beat()

    @precondition(lambda self: self.running)
    @rule(number=picks, names=subscriptions, regex=regexes)
    def one_subscribes(self, number: int, names: tuple[str, ...], regex: str) -> None:
        self.pick(number).subscribe(names, regex)
        self.pick(number).beat()

    @precondition(lambda self: self.running)
    @rule(number=picks, rights=some_rights)
    def rights_of_one_change(self, number: int, rights: TopicRights) -> None:
        client = self.pick(number)
        client.rights = rights
        client.beat()

    @precondition(lambda self: self.running)
    @rule(number=picks, how=st.sampled_from(["leave", "crash", "depart"]))
    def one_stops(self, number: int, how: str) -> None:
        client = self.pick(number)
        if how == "crash":
            client.running = False
        elif how == "depart" and client.instance_id is not None:
            client.leave(-2)
        else:
            client.leave()

    @precondition(lambda self: self.world.waiting)
    @rule(number=picks)
    def one_loses_its_connection(self, number: int) -> None:
        call = self.world.waiting[number % len(self.world.waiting)]
        self.world.abandon(call)

    @rule(ms=st.sampled_from([1, 2_000, 20_000]))
    def hold(self, ms: int) -> None:
        existed = self.world.group is not None
        call = self.world.hold(ms)
        assert call.error is (Error.NONE if existed else Error.GROUP_ID_NOT_FOUND)
        assert not existed or (self.world.group is not None and self.world.group.hold is not None)

    @rule()
    def release(self) -> None:
        self.world.release()
        assert self.world.group is None or self.world.group.hold is None

    @precondition(lambda self: self.running)
    @rule(number=picks)
    def kick(self, number: int) -> None:
        client = self.pick(number)
        self.world.kick(client.member_id)
        if self.world.group is not None:
            assert client.member_id not in self.world.group.members
            # A heartbeat that it holds has been answered: it does not wait until it is missed.
            assert all(call.command.member_id != client.member_id for call in self.world.waiting)

    @rule(name=st.sampled_from(["foo", "bar", "later"]), more=st.integers(0, 3))
    def topics_change(self, name: str, more: int) -> None:
        topic = self.world.topics.by_name.get(name)
        if topic is None:
            self.world.set_topics(**{name: more + 1})
        elif more:
            self.world.set_topics(**{name: topic.partitions + more})
        else:
            self.world.set_topics(**{name: None})

    @precondition(lambda self: self.world.targets)
    @rule()
    def a_target_is_computed(self) -> None:
        self.world.compute_target()

    @precondition(lambda self: self.world.resolutions)
    @rule(lost=st.booleans())
    def regexes_are_resolved(self, lost: bool) -> None:
        if lost:
            self.world.resolutions.pop(0)
        else:
            self.world.resolve_regexes()

    @rule(ms=st.sampled_from([1, 3_000, 8_000, 21_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(ms=st.sampled_from([5_000, 21_000]))
    def timers_are_late(self, ms: int) -> None:
        self.world.jump(ms)

    @invariant()
    def nobody_works_on_what_it_does_not_have(self) -> None:
        """A member that the group knows holds no partition that another may get."""
        group = self.world.group
        if not isinstance(group, ConsumerGroup):
            return
        for client in self.running:
            member = group.members.get(client.member_id)
            if member is not None and client.epoch > 0 and client.call is None:
                mine = {*flat(member.assigned), *flat(member.pending_revocation)}
                if client.epoch in (member.member_epoch, member.previous_member_epoch):
                    assert set(flat(client.owned)) <= mine

    @invariant()
    def no_expression_matches_what_its_members_may_not_describe(self) -> None:
        group = self.world.group
        if not isinstance(group, ConsumerGroup):
            return
        for rights, resolution in group.resolutions.items():
            for matched in resolution.topics.values():
                assert all(RIGHTS[rights].may_describe(name) for name in matched)

    @invariant()
    def nobody_is_in_a_held_group(self) -> None:
        group = self.world.group
        if group is not None and group.hold is not None:
            assert not group.members
            assert not self.world.waiting

    @invariant()
    def who_waits_has_no_news(self) -> None:
        for call in self.world.waiting:
            assert call.parked is not None
            assert answer_for(self.world.group, call.parked) is None

    def teardown(self) -> None:
        for client in self.clients:
            client.max_wait_ms = 0
        for _ in range(SETTLING_ROUNDS):
            while self.world.targets:
                self.world.compute_target()
            while self.world.resolutions:
                self.world.resolve_regexes()
            for client in self.clients:
                client.beat()
            self.world.advance(1_000)
        assert is_settled(self.world, self.clients), (self.world.group, self.clients)
        epochs = self.world.epochs if self.world.group is not None else None
        for client in self.clients:
            client.beat()
        assert epochs == (self.world.epochs if self.world.group is not None else None), "at rest nothing moves"
        if self.running:
            assert_complete(self.world, self.clients)
            assert_permitted(self.world, self.clients)


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=settings.default.max_examples // 2, deadline=None)
