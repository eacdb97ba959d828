"""Random traffic: members join, sync, beat, leave, crash, lose connections, and timers run on time or late.

After every decision `invariants.check` holds; when the noise ends, the group settles with everybody who still runs.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from groups.core.machine import answer_for
from groups.core.model.types import GroupConfig
from kcoord.protocol.errors import Error
from tests.groups.core.clients import Client, is_settled, settle
from tests.groups.core.world import World

MOST_CLIENTS = 6
SETTLING_SECONDS = 1_200
"""Longer than a new member's limit (300 s), a session, and a few rebalance timeouts after another."""

picks = st.integers(min_value=0, max_value=MOST_CLIENTS - 1)
lists = st.sampled_from(["range", "range sticky", "sticky range", "range other", "sticky"])


class Traffic(RuleBasedStateMachine):
    """A group and its clients."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(config=GroupConfig(initial_rebalance_delay_ms=3_000))
        self.clients: list[Client] = []

    @property
    def running(self) -> list[Client]:
        return [client for client in self.clients if client.running]

    def pick(self, number: int) -> Client:
        return self.running[number % len(self.running)]

    @initialize(size=st.integers(0, 4))
    def begin(self, size: int) -> None:
        for number in range(size):
            self.start("i1" if number == 3 else None, "range sticky", 10_000, 30_000)
        if size:
            assert settle(self.world, self.clients, 60)

    @precondition(lambda self: len(self.running) < MOST_CLIENTS)
    @rule(
        instance_id=st.sampled_from([None, None, "i1", "i2"]),
        names=lists,
        session_ms=st.sampled_from([6_000, 10_000, 45_000]),
        rebalance_ms=st.sampled_from([2_000, 8_000, 60_000]),
    )
    def start(self, instance_id: str | None, names: str, session_ms: int, rebalance_ms: int) -> None:
        client = Client(self.world, instance_id, names, session_ms, rebalance_ms)
        self.clients.append(client)
        client.step()
        client.step()

    @rule(rounds=st.integers(1, 4))
    def everybody_acts(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients:
                client.step()

    @precondition(lambda self: self.running)
    @rule(number=picks, times=st.integers(1, 3))
    def one_acts(self, number: int, times: int) -> None:
        client = self.pick(number)
        for _ in range(times):
            client.step()

    @precondition(lambda self: self.running)
    @rule(number=picks, names=lists)
    def one_rejoins(self, number: int, names: str) -> None:
        client = self.pick(number)
        client.names = names
        client.join()

    @precondition(lambda self: self.running)
    @rule(number=picks, generation=st.integers(-1, 3))
    def one_acts_out_of_turn(self, number: int, generation: int) -> None:
        client = self.pick(number)
        ids = (client.member_id, client.instance_id)
        self.world.heartbeat(*ids, generation)
        self.world.commit(*ids, generation_id=generation)
        self.world.sync(client.member_id, {}, client.instance_id, generation_id=generation)

    @precondition(lambda self: self.running)
    @rule(number=picks)
    def one_reconnects(self, number: int) -> None:
        self.pick(number).reconnect()

    @precondition(lambda self: len(self.running) > 1)
    @rule(number=picks, how=st.sampled_from(["crash", "vanish", "leave"]))
    def one_stops(self, number: int, how: str) -> None:
        client = self.pick(number)
        match how:
            case "crash":
                client.running = False
            case "vanish":
                client.vanish()
            case "leave":
                client.leave()

    @rule(ms=st.sampled_from([1, 500, 3_000, 7_000, 30_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(ms=st.sampled_from([500, 5_000, 40_000]))
    def timers_are_late(self, ms: int) -> None:
        self.world.jump(ms)

    @rule()
    def tick(self) -> None:
        self.world.tick()
        records = self.world.last.records if self.world.last is not None else ()
        self.world.tick()
        assert self.world.last is not None
        assert self.world.last.records == (), f"a second tick did something after {records}"

    @rule()
    def delete(self) -> None:
        self.world.delete()

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
        group = self.world.group
        known = group is not None and client.member_id in {*group.members, *group.pending_join}
        self.world.kick(client.member_id)
        group = self.world.group
        assert group is None or client.member_id not in {*group.members, *group.pending_join}
        if known:
            assert self.world.heartbeat(client.member_id).error is Error.UNKNOWN_MEMBER_ID

    @invariant()
    def nobody_is_in_a_held_group(self) -> None:
        group = self.world.group
        if group is not None and group.hold is not None:
            assert not group.members
            assert not group.pending_join
            assert not self.world.waiting

    @invariant()
    def who_waits_is_still_wanted(self) -> None:
        for call in self.world.waiting:
            assert call.parked is not None
            assert answer_for(self.world.group, call.parked) is None

    @invariant()
    def every_request_is_answered_or_waits_or_ran_out(self) -> None:
        for client in self.clients:
            for call in client.calls:
                assert call.reply is not None or call.ran_out or call in self.world.waiting

    def teardown(self) -> None:
        assert settle(self.world, self.clients, SETTLING_SECONDS), (self.world.group, self.clients)
        generation = self.world.group.generation_id if self.world.group is not None else 0
        for _ in range(120):
            self.world.advance(1_000)
            for client in self.clients:
                client.step()
                client.step()
        assert is_settled(self.world, self.clients), "a group of well-behaved clients stays as it is"
        assert generation == (self.world.group.generation_id if self.world.group is not None else 0)


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=settings.default.max_examples // 2, deadline=None)


def test_a_static_member_restarts_while_a_rebalance_is_overdue() -> None:
    """One decision completes the rebalance, replaces the member, and begins the next: the old protocol is not its."""
    traffic = Traffic()
    traffic.begin(size=2)
    traffic.hold(ms=1)
    traffic.delete()
    traffic.one_rejoins(number=0, names="range sticky")
    traffic.one_acts(number=0, times=2)
    traffic.timers_are_late(ms=5_000)
    traffic.start("i1", "sticky", session_ms=6_000, rebalance_ms=2_000)
    traffic.who_waits_is_still_wanted()
    traffic.teardown()
