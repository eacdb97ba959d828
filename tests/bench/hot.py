"""Measurement of HOT updates: how many of the updates under heartbeats and commits leave every index alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import psycopg

from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.setting_table import LEASE
from tests.bench.load import start_node
from tests.support.hot_updates import Updates, connected, updates
from tests.support.steady import SteadyGroups

TABLES = ("groups_group", "groups_member", "groups_consumermember", "offsets_committedoffset")
GROUPS, ROUNDS = 100, 60
START_MS = 1_700_000_000_000
SETTINGS = Config({"group.initial.rebalance.delay.ms": 0, LEASE: 60_000})
"""The clock is moved by more than the usual lease between heartbeats."""


async def hot_updates(conninfo: str) -> Mapping[str, Updates]:
    """Updates by table under ROUNDS rounds of heartbeats and commits of GROUPS groups of each protocol."""
    clock = VirtualClock(START_MS)
    runtime = Runtime(SETTINGS, conninfo, clock)
    await start_node(runtime)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        before = updates(connection, TABLES)
        for protocol in ("classic", "consumer"):
            crowd = SteadyGroups(runtime, clock, protocol, GROUPS)
            await crowd.fill()
            for number in range(ROUNDS):
                await crowd.beat()
                await crowd.commit(number)
        await runtime.stop()
        while connected(connection):  # noqa: ASYNC110 - Postgres does not signal it
            await asyncio.sleep(0.01)
        return {table: found.since(before[table]) for table, found in updates(connection, TABLES).items()}
