"""The topics of classic groups that were there before their generation's topics were stored."""

from __future__ import annotations

import asyncio
from importlib import import_module

import psycopg
from django.apps import apps
from django.db import connections

from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Members, Protocol
from groups.store.store import GroupStore
from groups.store.stored import MISSING
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription

FILL = import_module("groups.migrations.0008_generation_topics").fill
READS = {name: encode_subscription(Subscription((name,))) for name in ("foo", "bar", "other")}


def group(group_id: str, *metadata: bytes, generation_id: int = 1, protocol_type: str = "consumer") -> ClassicGroup:
    """Members that prefer a protocol which the group has not chosen."""
    members = [
        ClassicMember(
            member_id=f"m{number}",
            instance_id=None,
            client_id="",
            client_host="",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type=protocol_type,
            protocols=(Protocol("other", READS["other"]), Protocol("range", data)),
        )
        for number, data in enumerate(metadata)
    ]
    return ClassicGroup(
        group_id,
        state=GroupState.STABLE if members else GroupState.EMPTY,
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name="range" if members else None,
        members=Members(members),
    )


GROUPS = {
    "two": (group("two", READS["foo"], READS["bar"]), {"foo", "bar"}),
    "empty": (group("empty"), set()),
    "unreadable": (group("unreadable", READS["foo"], b"\x00"), None),
    "new": (group("new", READS["foo"], generation_id=0), None),
    "connect": (group("connect", READS["foo"], protocol_type="connect"), None),
}


def test_the_migration_fills_in_what_members_say(database: str) -> None:
    async def write() -> None:
        runtime = Runtime(Config({}), database, VirtualClock(1_000))
        await runtime.db.open()
        store = GroupStore(runtime)
        for stored, _ in GROUPS.values():
            await runtime.db.transaction(lambda connection, group=stored: store.persist(connection, MISSING, group, 1))
        await runtime.db.close()

    asyncio.run(write())
    with psycopg.connect(database, autocommit=True) as connection:
        assert connection.execute("select count(*) from groups_generationtopics").fetchone() == (0,)
        try:
            FILL(apps, None)
        finally:
            connections.close_all()
        rows = connection.execute(
            "select g.group_id, t.topics from groups_group g join groups_generationtopics t on t.group_id = g.id"
        ).fetchall()
    assert {name: set(topics) for name, topics in rows} == {
        name: topics for name, (_, topics) in GROUPS.items() if topics is not None
    }
