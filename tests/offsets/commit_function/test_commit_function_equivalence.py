"""The equivalence of `kcoord.commit_offsets`: it accepts what the coordinator would accept, and writes the same rows.

Random groups of both protocols, in all states, with timers that are overdue or not; random callers.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from groups.configs import CONSUMER_PROTOCOL
from groups.core.machine import decide
from groups.core.model.commands import ForceState
from groups.core.model.consumer_group import ConsumerGroup, TimerKind
from groups.core.model.group import Group, wake_at
from groups.core.model.types import ClassicGroup, Env, GroupState, Topic, TopicView
from groups.engine.service import GroupService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.service import OffsetService
from tests.support.commands import INSTANCES, random_command
from tests.support.commit_function import Refusal, commit
from tests.support.commits import OffsetCommit, PartitionCommit, Reply, take
from tests.support.consumer_commands import random_consumer_command
from tests.support.offsets import reply_to
from tests.support.steady import wait_out_stalls

pytestmark = pytest.mark.whole("random histories; the other tests of the function have its rules")

COUNTS = {"a": 3, "b": 5}
IDS = {name: str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in COUNTS}
TOPICS = [Topic(IDS[name], name, count) for name, count in COUNTS.items()]
VIEW = TopicView(1, {topic.name: topic for topic in TOPICS}, {topic.topic_id: topic for topic in TOPICS})

PAUSES_MS = (0, 1, 500, 3_000, 12_000)
GAPS_MS = (0, 2_000, 9_000, 25_000, 40_000, 3_600_000)
"""How long nobody looked at the group before the commit."""

SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

COLUMNS = """
select at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp, member_id,
       generation_id, client_id, transactional_id, plan_id
from offset_commit_log where group_name = %(name)s order by topic, partition
"""
VIEW_COLUMNS = """
select o.topic, o.partition, o.committed_offset, o.leader_epoch, o.metadata, o.commit_timestamp, o.expire_timestamp,
       o.member_id, o.generation_id
from offsets_committedoffset o join groups_group g on g.id = o.group_id
where g.group_id = %(name)s order by o.topic, o.partition
"""
# The function does not know how many coordinator partitions there are; the next write of the coordinator says which.
GROUP_COLUMNS = """
select to_jsonb(g) - 'id' - 'version_tag' - 'created_at' - 'updated_at' - 'state_since' - 'partition' as header,
       (select jsonb_agg(jsonb_build_array(e.kind, e.generation_id, e.member_id, e.detail) order by e.id)
        from groups_event e where e.group_name = g.group_id) as events
from groups_group g where g.group_id = %(name)s
"""


@dataclass(frozen=True)
class Written:
    """What a commit left behind."""

    journal: list[tuple[Any, ...]]
    view: list[tuple[Any, ...]]
    made: list[tuple[Any, ...]]

    @property
    def at(self) -> int | None:
        """When it was written."""
        return self.journal[0][0] if self.journal else None


@pytest.fixture
def catalogue(database: str) -> str:
    """A database with the topics."""
    with psycopg.connect(database) as connection:
        connection.cursor().executemany(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at) values (%s, %s, %s, '{}', 0)",
            [(topic.name, topic.topic_id, topic.partitions) for topic in TOPICS],
        )
    return database


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_function_accepts_what_the_coordinator_accepts_and_writes_the_same(catalogue: str, protocol: str) -> None:
    seen: Counter[str] = Counter()
    usual = {"accepted", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "UNKNOWN_TOPIC_OR_PARTITION"}
    usual.add("STALE_MEMBER_EPOCH" if protocol == "consumer" else "ILLEGAL_GENERATION")

    with asyncio.Runner() as runner:
        with psycopg.connect(catalogue) as connection:
            clock = VirtualClock(clock_of(connection))
        runtime = wait_out_stalls(Runtime(Config({}), catalogue, clock))
        runner.run(runtime.start())

        @SETTINGS
        @given(seed=st.integers(0, 2**63))
        def examples(seed: int) -> None:
            runner.run(example(runtime, clock, Random(seed), protocol == "consumer", seen))

        try:
            examples()
            # A hundred leave one out once in a while.
            for seed in itertools.takewhile(lambda _: not usual <= set(seen), range(1_000)):
                with contextlib.suppress(UnsatisfiedAssumption):
                    runner.run(example(runtime, clock, Random(seed), protocol == "consumer", seen))
        finally:
            runner.run(runtime.stop())
    print(dict(seen))
    assert usual <= set(seen), "the examples are too tame"


async def example(runtime: Runtime, clock: VirtualClock, random: Random, consumer: bool, seen: Counter[str]) -> None:
    """One group, one caller: the function in a transaction that is rolled back, then the service."""
    group_id = f"equivalence-{uuid.uuid4()}"
    with psycopg.connect(runtime.db.conninfo) as connection:
        began = clock_of(connection)
        group = random_group(random, group_id, began, consumer)
        command = random_commit(random, group_id, group)
        clock.move_to(began)
        if group is not None:
            await runtime.get(GroupService).put(group)
        connection.commit()
        answer, written = call(connection, command)
        ended = clock_of(connection)
        connection.rollback()
        # The function reads the real clock: nothing may have come due while it ran.
        assume(not any(began < at <= ended for at in deadlines(group)))
        clock.move_to(written.at or ended)
        reply = await reply_to(runtime.get(OffsetService), command)
        compare(command, group, answer, reply, ended)
        if not isinstance(answer, Refusal):
            later = read(connection, group_id, group is None)
            assert later == written
    seen["accepted" if not isinstance(answer, Refusal) else answer.name] += 1


def compare(command: OffsetCommit, group: Group | None, answer: int | Refusal, reply: Reply, now: int) -> None:
    """The same answer; where timers are overdue the function may ask to try again."""
    accepted = reply.error is Error.NONE and all(error is Error.NONE for _, _, error in reply.results)
    due = wake_at(group)
    overdue = due is not None and due <= now
    if not isinstance(answer, Refusal):
        assert accepted, reply
        assert answer == len({(entry.topic, entry.partition) for entry in command.partitions})
        return
    if answer.name == Error.COORDINATOR_LOAD_IN_PROGRESS.name:
        assert overdue or reply.error is Error.COORDINATOR_LOAD_IN_PROGRESS, "only timers and holds make it wait"
        return
    assert not accepted, answer
    if overdue:
        return  # refused is refused: under which name depends on what came due first
    if any(error is Error.UNKNOWN_TOPIC_OR_PARTITION for error in take(command, COUNTS).errors):
        assert answer.name == Error.UNKNOWN_TOPIC_OR_PARTITION.name
    elif reply.error is not Error.NONE:
        assert answer.name == reply.error.name
    elif isinstance(group, ConsumerGroup) and answer.name == Error.STALE_MEMBER_EPOCH.name:
        # An older epoch must cover all partitions for the function, which stores all or none of them, but for the
        # coordinator only those that it stores: here some have too long metadata.
        assert command.generation_id < group.members[command.member_id].member_epoch
    else:
        assert answer.name == Error.OFFSET_METADATA_TOO_LARGE.name


def call(connection: psycopg.Connection[Any], command: OffsetCommit) -> tuple[int | Refusal, Written]:
    """Call the function; a refusal has written nothing."""
    made = connection.execute("select 1 from groups_group where group_id = %s", (command.group_id,)).fetchone() is None
    answer = commit(
        connection,
        command.partitions,
        group_id=command.group_id,
        member_id=command.member_id,
        generation_id=command.generation_id,
        group_instance_id=command.group_instance_id,
        retention_time_ms=command.retention_time_ms,
    )
    if isinstance(answer, Refusal):
        connection.rollback()
        return answer, Written([], [], [])
    return answer, read(connection, command.group_id, made)


def read(connection: psycopg.Connection[Any], group_id: str, made: bool) -> Written:
    """Everything about the group's offsets, and the group itself where the commit made it."""
    journal, view, header = (
        connection.execute(query, {"name": group_id}).fetchall() for query in (COLUMNS, VIEW_COLUMNS, GROUP_COLUMNS)
    )
    return Written(journal, view, header if made else [])


def clock_of(connection: psycopg.Connection[Any]) -> int:
    """The database's clock in ms."""
    row = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    return int(row[0])


def random_group(random: Random, group_id: str, now: int, consumer: bool) -> Group | None:
    """A group with a past, at which nobody has looked for a while before `now`."""
    pauses = [random.choice(PAUSES_MS) for _ in range(random.randrange(24))]
    at = now - sum(pauses) - random.choice(GAPS_MS)
    serial = itertools.count(1)
    group: Group | None = None
    for pause in pauses:
        at += pause
        env = Env(at, lambda prefix: f"{prefix}-{next(serial)}", topics=VIEW, consumer_protocol=CONSUMER_PROTOCOL)
        if consumer:
            command = random_consumer_command(random, group_id, group)
        else:
            assert group is None or isinstance(group, ClassicGroup)
            command = random_command(random, group_id, group)
        group = decide(group, command, env).group
    if isinstance(group, ClassicGroup) and random.random() < 0.03:
        group = decide(group, ForceState(group_id, GroupState.DEAD), env).group
    return group


def random_commit(random: Random, group_id: str, group: Group | None) -> OffsetCommit:
    """A commit by a member, a former one, a stranger, or nobody."""
    members = list(group.members.values()) if group else []
    member = random.choice(members) if members and random.random() < 0.85 else None
    member_id = member.member_id if member else random.choice(("", "", "stranger"))
    instance_id = member.instance_id if member and random.random() < 0.7 else None
    if random.random() < 0.1:
        instance_id = random.choice(("", "nobody", *INSTANCES))
    return OffsetCommit(
        group_id,
        member_id,
        instance_id,
        random_epoch(random, group, member),
        tuple(random_partition(random) for _ in range(random.choice((1, 1, 2, 4)))),
        retention_time_ms=random.choice((-1, -1, 0, -2, 60_000, 2**63 - 1)),
        principal="",
    )


def random_epoch(random: Random, group: Group | None, member: Any) -> int:
    """The generation or epoch that is right, or one that is not."""
    if group is None or member is None:
        return random.choice((-1, -1, 0, 1))
    current: int = member.member_epoch if isinstance(group, ConsumerGroup) else group.generation_id
    if random.random() < 0.6:
        return current
    return random.choice((-2, -1, 0, 1, current - 1, current - 1, current + 1))


def random_partition(random: Random) -> PartitionCommit:
    """A partition that mostly exists."""
    topic = random.choice(("a", "b")) if random.random() < 0.98 else "c"
    partition = random.randrange(COUNTS.get(topic, 1)) if random.random() < 0.97 else random.choice((-1, 9))
    metadata = random.choice((None, "", "note", "x" * 4_096, "\U0001f600" * 2_048))
    if random.random() < 0.03:
        metadata = random.choice(("x" * 4_097, "\U0001f600" * 2_048 + "x"))
    offset = random.choice((0, 1, 7, 1_000, -1, 2**63 - 1, -(2**63)))
    return PartitionCommit(topic, partition, offset, random.choice((-1, 0, 5)), metadata)


def deadlines(group: Group | None) -> list[int]:
    """Every instant at which a timer of the group fires."""
    if group is None:
        return []
    if group.hold is not None:
        return [group.hold.until]
    if isinstance(group, ConsumerGroup):
        armed = (group.timers.of(kind).get(member_id) for kind in TimerKind for member_id in group.members)
        return [timer.deadline for timer in armed if timer is not None]
    found = [member.session_deadline for member in group.members.values()]
    found += [*group.pending_join.values(), group.sync_deadline, group.join_timer and group.join_timer.deadline]
    return [at for at in found if at is not None]
