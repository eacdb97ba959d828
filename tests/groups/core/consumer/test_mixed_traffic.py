"""Members of both protocols in one group, which changes its own as they come and go.

After every decision `invariants.check` holds; when the noise ends, everybody who runs has its share, whatever the
protocol of the group is then.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from groups.core.model.types import GroupConfig, MigrationPolicy
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.classic_client import ClassicClient
from tests.groups.core.consumer.clients import Client
from tests.groups.core.consumer.world import World

MOST_CLIENTS = 5
SETTLING_ROUNDS = 180
"""One a second: longer than a session and a few rebalance timeouts."""

picks = st.integers(min_value=0, max_value=MOST_CLIENTS - 1)


class Traffic(RuleBasedStateMachine):
    """A group and its members of two kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.modern: list[Client] = []
        self.classic: list[ClassicClient] = []
        self.started = 0

    @property
    def running(self) -> list[Client | ClassicClient]:
        return [client for client in [*self.modern, *self.classic] if client.running]

    @initialize(policy=st.sampled_from([MigrationPolicy.BIDIRECTIONAL] * 3 + list(MigrationPolicy)))
    def begin(self, policy: MigrationPolicy) -> None:
        self.world.config = GroupConfig(
            consumer_migration_policy=policy, consumer_session_timeout_ms=20_000, initial_rebalance_delay_ms=0
        )
        self.world.set_topics(foo=5)

    @precondition(lambda self: len(self.running) < MOST_CLIENTS)
    @rule(instance_id=st.sampled_from([None, None, "i1"]))
    def start_modern(self, instance_id: str | None) -> None:
        if self._is_taken(instance_id):
            return
        self.started += 1
        client = Client(self.world, f"m{self.started}", instance_id=instance_id)
        self.modern.append(client)
        client.beat()

    @precondition(lambda self: len(self.running) < MOST_CLIENTS)
    @rule(cooperative=st.booleans(), instance_id=st.sampled_from([None, None, "i1"]))
    def start_classic(self, cooperative: bool, instance_id: str | None) -> None:
        if self._is_taken(instance_id):
            return
        client = ClassicClient(self.world, cooperative, instance_id)
        self.classic.append(client)
        for _ in range(4):
            client.step()

    def _is_taken(self, instance_id: str | None) -> bool:
        return instance_id is not None and any(client.instance_id == instance_id for client in self.running)

    @rule(rounds=st.integers(1, 3))
    def everybody_acts(self, rounds: int) -> None:
        for _ in range(rounds):
            self._round()

    @precondition(lambda self: self.running)
    @rule(number=picks, crashes=st.booleans())
    def one_stops(self, number: int, crashes: bool) -> None:
        client = self.running[number % len(self.running)]
        if crashes:
            client.running = False
        else:
            client.leave()

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
        client = self.running[number % len(self.running)]
        self.world.kick(client.member_id)
        assert self.world.group is None or client.member_id not in self.world.group.members

    @invariant()
    def nobody_is_in_a_held_group(self) -> None:
        group = self.world.group
        if group is not None and group.hold is not None:
            assert not group.members
            assert not self.world.waiting

    @rule(ms=st.sampled_from([1, 3_000, 11_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(ms=st.sampled_from([5_000, 21_000]))
    def timers_are_late(self, ms: int) -> None:
        self.world.jump(ms)

    def _round(self) -> None:
        for client in self.modern:
            client.beat()
        for client in self.classic:
            for _ in range(4):
                client.step()

    def teardown(self) -> None:
        for _ in range(SETTLING_ROUNDS):
            self._round()
            self.world.advance(1_000)
        group = self.world.group
        running = {client.member_id for client in self.running}
        if group is None or not running:
            return
        if any(client.epoch == 0 for client in self.modern if client.running):
            assert not self.world.config.consumer_migration_policy.upgrades, "kept out by the policy alone"
            running = {client.member_id for client in self.classic if client.running}
        assert set(group.members) == running
        owned = [p for client in self.classic if client.running for p in (client.owned or {}).get("foo", ())]
        for client in self.modern:
            owned += [p for numbers in client.owned.values() for p in numbers if client.running]
        assert sorted(owned) == [0, 1, 2, 3, 4], (group, self.running)


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=settings.default.max_examples // 2, deadline=None)
