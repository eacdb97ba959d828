"""`load . persist = fold`: what the store reads back is what the fold computed (invariant 5)."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groups.core.machine import decide
from groups.core.types import ClassicGroup, Env
from groups.store import MISSING, GroupStore, Stored
from kcoord.clock import VirtualClock
from kcoord.config import Config
from kcoord.db import Connection
from kcoord.runtime import Runtime
from tests.support.commands import random_command

STEPS = 40


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms(use_true_random=False))
def test_what_is_read_back_is_what_was_folded(database: str, random: Random) -> None:
    with asyncio.Runner() as runner:
        runner.run(walk(database, random))


async def walk(database: str, random: Random) -> None:
    clock = VirtualClock(1_000_000)
    runtime = Runtime(Config({"cache.max.groups": 0}), database, clock)
    await runtime.db.open()
    store = GroupStore(runtime)
    group_id = f"walk-{uuid.uuid4()}"  # the rows of an earlier example are still there
    serial = itertools.count(1)
    stored = MISSING
    group: ClassicGroup | None = None
    try:
        for _ in range(STEPS):
            clock.advance(random.choice((0, 1, 500, 3_000, 12_000)))
            env = Env(clock.now_ms(), lambda prefix: f"{prefix}-{next(serial)}")
            group = decide(group, random_command(random, group_id, group), env).group
            stored = await persist(runtime, store, group_id, stored, group)
            loaded = (await store.read(group_id)).group
            assert loaded == group
            if group is not None and loaded is not None:
                assert list(loaded.members) == list(group.members), "the order of arrival"
                assert list(loaded.pending_join) == list(group.pending_join)
    finally:
        await runtime.db.close()


async def persist(
    runtime: Runtime, store: GroupStore, group_id: str, before: Stored, group: ClassicGroup | None
) -> Stored:
    async def work(connection: Connection) -> Stored:
        locked, now = await store.lock(connection, group_id)
        assert (locked.pk, locked.version) == (before.pk, before.version)
        return await store.persist(connection, locked, group, now)

    return await runtime.db.transaction(work)
