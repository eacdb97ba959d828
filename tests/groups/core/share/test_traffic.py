"""Random traffic: workers join, beat, lose answers, change what they name, leave, crash; topics come and go; background
work is late; timers run on time or late; requests of other protocols get in between.

After every decision `invariants.check` holds; when the noise ends, everybody has its share.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from groups.core.model.commands import CommitOffsets, DeleteGroup
from groups.core.model.consumer_group import ShareGroup, flat
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP
from tests.groups.core.share.test_other_types import CONSUMER, JOIN
from tests.groups.core.share.world import SESSION_MS, ShareWorld, config

MEMBERS = st.sampled_from([f"m{n}" for n in range(5)])
NAMES = st.sets(st.sampled_from(["foo", "bar", "later"]), min_size=1)


class Traffic(RuleBasedStateMachine):
    """A group and its workers."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ShareWorld()

    @initialize(partitions=st.integers(1, 5), interval=st.sampled_from([0, 1_000]), size=st.sampled_from([3, 200]))
    def begin(self, partitions: int, interval: int, size: int) -> None:
        self.world.config = config(assignment_interval_ms=interval, max_size=size)
        self.world.set_topics(foo=partitions, bar=2)

    @rule(member_id=MEMBERS, names=NAMES)
    def join(self, member_id: str, names: set[str]) -> None:
        call = self.world.beat(member_id, 0, *names)
        refusals = {Error.GROUP_MAX_SIZE_REACHED, Error.COORDINATOR_LOAD_IN_PROGRESS}
        assert call.error is Error.NONE or call.error in refusals

    @precondition(lambda self: self.world.group is not None)
    @rule(member_id=MEMBERS, back=st.integers(-2, 1), names=st.none() | NAMES)
    def beat(self, member_id: str, back: int, names: set[str] | None) -> None:
        """With the current epoch, an older one (its answer was lost), or one that does not exist."""
        member = self.world.share.members.get(member_id)
        session = self.world.share.timers.session.get(member_id)
        overdue = session is not None and session.deadline <= self.world.now
        epoch = (member.member_epoch if member else 3) + back
        call = self.world.beat(member_id, max(epoch, 1), *(names or ()))
        if member is not None and max(epoch, 1) == member.member_epoch:
            assert call.error is (Error.UNKNOWN_MEMBER_ID if overdue else Error.NONE)

    @precondition(lambda self: self.world.group is not None)
    @rule(member_id=MEMBERS)
    def leave(self, member_id: str) -> None:
        self.world.advance(0)
        known = member_id in self.world.share.members
        call = self.world.beat(member_id, -1)
        assert call.error is (Error.NONE if known else Error.UNKNOWN_MEMBER_ID)

    @precondition(lambda self: self.world.group is not None)
    @rule(member_id=MEMBERS)
    def kick(self, member_id: str) -> None:
        self.world.kick(member_id)
        assert member_id not in self.world.share.members

    @precondition(lambda self: self.world.group is not None)
    @rule(command=st.sampled_from([JOIN, CONSUMER, CommitOffsets(GROUP, "", None, -1)]))
    def somebody_takes_it_for_another_type(self, command: object) -> None:
        assert self.world.send(command).error is not Error.NONE  # type: ignore[arg-type]
        assert isinstance(self.world.group, ShareGroup)

    @precondition(lambda self: self.world.group is not None)
    @rule()
    def delete(self) -> None:
        self.world.advance(0)
        members = len(self.world.share.members)
        assert self.world.send(DeleteGroup(GROUP)).error is (Error.NON_EMPTY_GROUP if members else Error.NONE)

    @rule(ms=st.sampled_from([1, 20_000]))
    def hold(self, ms: int) -> None:
        self.world.hold(ms)

    @rule(name=st.sampled_from(["foo", "bar", "later"]), more=st.integers(0, 3))
    def topics_change(self, name: str, more: int) -> None:
        topic = self.world.topics.by_name.get(name)
        if topic is None:
            self.world.set_topics(**{name: more + 1})
        else:
            self.world.set_topics(**{name: topic.partitions + more if more else None})

    @rule(ms=st.sampled_from([1, 900, 10_000, SESSION_MS]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(ms=st.sampled_from([5_000, SESSION_MS + 1]))
    def timers_are_late(self, ms: int) -> None:
        self.world.jump(ms)

    @rule(ms=st.sampled_from([1_000, 2 * SESSION_MS]))
    def nobody_runs_the_timers(self, ms: int) -> None:
        before = set(self.world.group.members) if self.world.group else set()
        self.world.may_expire = False
        self.world.jump(ms)
        self.world.may_expire, self.world.gap = True, self.world.gap + 1
        self.world.advance(1)
        assert self.world.group is None or set(self.world.group.members) == before, "an outage removes nobody"

    def teardown(self) -> None:
        """Without noise everybody has its share of what it names."""
        world = self.world
        world.advance(20_001)
        if world.group is None or not world.group.members:
            return
        world.advance(1_000)
        world.settle()
        assert world.share.group_epoch == world.share.assignment_epoch
        users = Counter(key for member in world.share.members.values() for key in flat(member.assigned))
        named = {name for member in world.share.members.values() for name in member.subscribed_topic_names}
        topics = [world.topics.by_name[name] for name in named if name in world.topics.by_name]
        assert set(users) == {(topic.topic_id, p) for topic in topics for p in range(topic.partitions)}


TestTraffic = Traffic.TestCase
