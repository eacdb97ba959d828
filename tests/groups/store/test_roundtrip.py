"""`load . persist = fold`: what the store reads back is what the fold computed (invariant 5), for both protocols."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groups.configs import CONSUMER_PROTOCOL, regex_error
from groups.core.machine import decide
from groups.core.model.commands import Command
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup, Env, TopicView
from groups.store.rows import MISSING, Change, Stored
from groups.store.store import GroupStore
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from tests.support.commands import random_command
from tests.support.consumer_commands import random_consumer_command, random_resolution, random_topics
from tests.support.steady import wait_out_stalls

pytestmark = pytest.mark.whole("random groups; conformance has each kind of group")

STEPS = 40

Choose = Callable[[Random, str, Group | None], Command]

SETTINGS = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(random=st.randoms(use_true_random=False))
def test_classic_groups_are_read_back_as_they_were_folded(database: str, random: Random) -> None:
    def choose(random: Random, group_id: str, group: Group | None) -> Command:
        assert group is None or isinstance(group, ClassicGroup)
        return random_command(random, group_id, group)

    with asyncio.Runner() as runner:
        runner.run(walk(database, random, choose))


@SETTINGS
@given(random=st.randoms(use_true_random=False))
def test_consumer_groups_are_read_back_as_they_were_folded(database: str, random: Random) -> None:
    def choose(random: Random, group_id: str, group: Group | None) -> Command:
        if isinstance(group, ConsumerGroup) and group.members.regexes and random.random() < 0.2:
            return random_resolution(random, group, random.randint(1, 1_000_000))
        return random_consumer_command(random, group_id, group)

    with asyncio.Runner() as runner:
        runner.run(walk(database, random, choose))


async def walk(database: str, random: Random, choose: Choose) -> None:
    clock = VirtualClock(1_000_000)
    runtime = wait_out_stalls(Runtime(Config({"cache.max.groups": 0}), database, clock))
    await runtime.db.open()
    store = GroupStore(runtime)
    group_id = f"walk-{uuid.uuid4()}"  # the rows of an earlier example are still there
    serial = itertools.count(1)
    stored = MISSING
    group: Group | None = None
    topics = TopicView()
    try:
        for step in range(STEPS):
            clock.advance(random.choice((0, 1, 500, 3_000, 12_000)))
            if random.random() < 0.1 or step == 0:
                topics = random_topics(random, step + 1)
            env = Env(
                clock.now_ms(),
                lambda prefix: f"{prefix}-{next(serial)}",
                topics=topics,
                regex_error=regex_error,
                consumer_protocol=CONSUMER_PROTOCOL,
            )
            group = decide(group, choose(random, group_id, group), env).group
            stored = await persist(runtime, store, group_id, stored, group)
            assert_same((await store.read(group_id)).group, group)
    finally:
        await runtime.db.close()


def assert_same(loaded: Group | None, folded: Group | None) -> None:
    assert loaded == folded
    if isinstance(loaded, ClassicGroup) and isinstance(folded, ClassicGroup):
        assert list(loaded.members) == list(folded.members), "the order of arrival"
        assert list(loaded.pending_join) == list(folded.pending_join)


async def persist(runtime: Runtime, store: GroupStore, group_id: str, before: Stored, group: Group | None) -> Stored:
    async def work(connection: Connection) -> Stored:
        locked, found = (await store.lock(connection, [group_id]))[group_id]
        assert (locked.pk, locked.version) == (before.pk, before.version)
        (kept,) = await store.persist(connection, [Change(locked, group, found.now)])
        assert kept is not None
        return kept

    return await runtime.db.transaction(work)
