"""Postgres goes back under a running process and is written again: no copy in memory is believed, no fence falls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest

from groups.configs import HEARTBEAT_INTERVAL, GroupConfigs
from groups.core.model.commands import CommitOffsets, ConsumerHeartbeat
from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.access.rights import Access
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.members import eventually, heartbeat, join, leave, parked_join, stable_member, sync
from tests.support.went_back import Backup, backup

ROW = "select version, generation_id from groups_group where group_id = 'g'"
POOL, LISTENER = "kcoord", "kcoord-listener"


@pytest.fixture
def config() -> Config:
    """Neither copies nor tokens are looked up again by themselves while a test runs."""
    return Config({"notifications.repair.interval.ms": 60_000, "token.cache.ms": 600_000})


@pytest.fixture
async def other_runtime(database: str, clock: VirtualClock, config: Config) -> AsyncIterator[Runtime]:
    """Another process on the same database."""
    running = Runtime(config, database, clock)
    await running.start()
    await running.notifications.wait_listening()
    yield running
    await running.stop()


@pytest.fixture
def other(other_runtime: Runtime) -> GroupService:
    """The group service of the other process."""
    return other_runtime.get(GroupService)


async def lose_connections(rows: Backup, *runtimes: Runtime) -> None:
    """End every connection of the processes, and let them find that out."""
    lost = [asyncio.Event() for _ in runtimes]
    for runtime, event in zip(runtimes, lost, strict=True):
        runtime.notifications.on_connection_lost(event.set)
    rows.cut_connections(POOL)
    rows.cut_connections(LISTENER)
    for runtime, event in zip(runtimes, lost, strict=True):
        await asyncio.wait_for(event.wait(), 30)
        await runtime.notifications.wait_listening()
        await eventually(partial(serves, runtime), "the pool has connections again")


async def serves(runtime: Runtime) -> bool:
    try:
        for _ in range(runtime.config.int("database.pool.size") + 1):  # a pool gives each of its own in turn
            async with runtime.db.connection() as connection:
                await connection.execute("select 1")
            await runtime.db.transaction(lambda connection: connection.execute("select 1"))
    except ProtocolError:
        return False
    return True


@pytest.mark.parametrize("cut", [False, True], ids=["silently", "with connections cut"])
async def test_classic_commit_that_is_fenced_in_the_rows_is_refused(
    database: str,
    runtime: Runtime,
    service: GroupService,
    other_runtime: Runtime,
    other: GroupService,
    clock: VirtualClock,
    cut: bool,
) -> None:
    member = await stable_member(service, clock)
    with backup(database) as rows:
        assert (await service.join(join())).error is Error.MEMBER_ID_REQUIRED
        known = rows.execute(ROW)
        rows.restore()
        if cut:
            await lose_connections(rows, runtime, other_runtime)
        assert (await other.leave(leave(member.member_id))).members[0].error is Error.NONE
        assert rows.execute(ROW)[0][0] == known[0][0], "the row has come to the same version with other content"
        commit = CommitOffsets("g", member.member_id, None, member.generation_id)
        assert (await service.execute(commit)).error is Error.UNKNOWN_MEMBER_ID
        assert (await settled(service.heartbeat(heartbeat(member)))).error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("cut", [False, True], ids=["silently", "with connections cut"])
async def test_consumer_group_has_one_owner_of_each_partition(
    database: str,
    runtime: Runtime,
    service: GroupService,
    other_runtime: Runtime,
    other: GroupService,
    clock: VirtualClock,
    cut: bool,
) -> None:
    topic_id = str((await runtime.get(TopicService).create("t", 4)).topic_id)
    everything = {topic_id: frozenset(range(4))}
    arriving = ConsumerHeartbeat(
        "g",
        "a",
        0,
        client_id="c",
        client_host="127.0.0.1",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=frozenset({"t"}),
        topic_partitions={},
    )
    first = await settled(service.consumer_heartbeat(arriving))
    assert first.assignment == everything
    with backup(database) as rows:
        clock.advance(1_000)
        assert (
            await settled(service.consumer_heartbeat(ConsumerHeartbeat("g", "a", first.member_epoch)))
        ).error is Error.NONE
        known = rows.execute(ROW)
        rows.restore()
        if cut:
            await lose_connections(rows, runtime, other_runtime)
        await settled(other.consumer_heartbeat(ConsumerHeartbeat("g", "a", -1)))
        assert rows.execute(ROW)[0][0] == known[0][0], "the row has come to the same version with other content"
        stale = CommitOffsets("g", "a", None, first.member_epoch)
        assert (await service.execute(stale)).error is Error.UNKNOWN_MEMBER_ID
        second = await settled(other.consumer_heartbeat(replace(arriving, member_id="b")))
        assert second.assignment == everything
        assert (await service.execute(stale)).error is Error.UNKNOWN_MEMBER_ID
        assert (await service.execute(CommitOffsets("g", "b", None, second.member_epoch))).error is Error.NONE
        owners = rows.execute("select distinct member_id from groups_assignment")
        assert owners == [("b",)]


async def test_generations_that_were_handed_out_do_not_come_again(
    database: str, service: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    with backup(database) as rows:
        assert (await service.leave(leave(member.member_id))).members[0].error is Error.NONE
        lost = await stable_member(service, clock)
        assert lost.generation_id > member.generation_id
        rows.restore()
        for handed_out in (lost.generation_id, member.generation_id):
            stale = CommitOffsets("g", member.member_id, None, handed_out)
            assert (await service.execute(stale)).error is Error.ILLEGAL_GENERATION
        assert (await settled(service.heartbeat(heartbeat(lost)))).error is Error.UNKNOWN_MEMBER_ID
        again = await service.join(join(member_id=member.member_id))
        assert again.error is Error.NONE
        assert again.generation_id > lost.generation_id
        assert (await service.sync(sync(again, {again.member_id: b"a"}))).error is Error.NONE
        assert (await service.execute(replace(stale, generation_id=lost.generation_id))).error is (
            Error.ILLEGAL_GENERATION
        )
        assert (await settled(service.heartbeat(heartbeat(again)))).error is Error.NONE
        assert rows.execute(ROW)[0][1] == again.generation_id


async def test_consumer_epochs_that_were_handed_out_do_not_come_again(
    database: str, runtime: Runtime, service: GroupService, clock: VirtualClock
) -> None:
    await runtime.get(TopicService).create("t", 4)
    values = {"client_id": "c", "client_host": "127.0.0.1", "rebalance_timeout_ms": 30_000, "topic_partitions": {}}
    names = frozenset({"t"})
    first = await settled(
        service.consumer_heartbeat(
            ConsumerHeartbeat("g", "a", 0, subscribed_topic_names=names, **values)  # type: ignore[arg-type]
        )
    )
    with backup(database) as rows:
        second = await settled(
            service.consumer_heartbeat(
                ConsumerHeartbeat("g", "b", 0, subscribed_topic_names=names, **values)  # type: ignore[arg-type]
            )
        )
        assert second.member_epoch > first.member_epoch
        rows.restore()
        third = await settled(
            service.consumer_heartbeat(
                ConsumerHeartbeat("g", "c", 0, subscribed_topic_names=names, **values)  # type: ignore[arg-type]
            )
        )
        assert third.member_epoch > second.member_epoch
        group = (await service.describe("g")).group
        assert group is not None
        assert set(group.members) == {"a", "c"}


async def test_group_that_was_created_after_the_backup_and_again_after_the_restore(
    database: str, runtime: Runtime, service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    await stable_member(service, clock, "first")
    with backup(database) as rows:
        lost = await stable_member(service, clock)
        known = rows.execute("select id, version from groups_group where group_id = 'g'")
        rows.restore()
        sequence = "pg_get_serial_sequence('groups_group', 'id')"
        rows.execute(f"select setval({sequence}, (select max(id) from groups_group))")
        again = await stable_member(other, clock)
        assert rows.execute("select id, version from groups_group where group_id = 'g'") == known
        assert (await settled(service.heartbeat(heartbeat(lost)))).error is Error.UNKNOWN_MEMBER_ID
        assert again.member_id in (await members(service))


async def test_waiting_join_is_answered_when_its_group_went_back(
    database: str, service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    member = await stable_member(service, clock)
    with backup(database) as rows:
        waiting = await parked_join(service)
        rows.restore()
        assert (await other.leave(leave(member.member_id))).members[0].error is Error.NONE
        rows.cut_connections(LISTENER)
        reply = await asyncio.wait_for(waiting, 30)
        assert reply.error is Error.UNKNOWN_MEMBER_ID, "the restored group does not know who waits"


@pytest.mark.parametrize("application", [POOL, LISTENER])
async def test_copies_of_groups_are_dropped_when_a_connection_was_lost(
    database: str, runtime: Runtime, service: GroupService, clock: VirtualClock, application: str
) -> None:
    member = await stable_member(service, clock)
    with backup(database) as rows:
        rows.execute("delete from groups_member")  # no version changes: only the loss of a connection tells
        assert (await settled(service.heartbeat(heartbeat(member)))).error is Error.NONE
        dropped: list[str] = []
        runtime.on_connection_lost(lambda: dropped.append(application))
        rows.cut_connections(application)

        async def asked() -> bool:
            return not await serves(runtime) or bool(dropped)

        await eventually(asked, "somebody noticed that a connection was lost")
        await eventually(partial(serves, runtime), "the pools have connections again")
        assert (await settled(service.heartbeat(heartbeat(member)))).error is Error.UNKNOWN_MEMBER_ID


async def test_copies_of_the_catalogue_and_of_settings_do_not_outlive_a_restore(
    database: str, runtime: Runtime, other_runtime: Runtime
) -> None:
    here, there = runtime.get(TopicService), other_runtime.get(TopicService)
    configs, other_configs = runtime.get(GroupConfigs), other_runtime.get(GroupConfigs)
    await here.create("first", 1)
    await configs.alter("g", {HEARTBEAT_INTERVAL: 6_000}, "ann")
    with backup(database) as rows:
        await here.create("lost", 1)
        await configs.alter("g", {HEARTBEAT_INTERVAL: 7_000}, "ann")
        assert "lost" in (await here.view()).by_name
        assert (await configs.resolved("g"))[HEARTBEAT_INTERVAL] == 7_000
        rows.restore()
        await there.create("other", 1)
        await other_configs.alter("g", {HEARTBEAT_INTERVAL: 8_000}, "ann")

        async def told() -> bool:
            return "other" in (await here.view()).by_name and (await configs.resolved("g"))[HEARTBEAT_INTERVAL] == 8_000

        await eventually(told, "the copies have what was written after the restore")
        assert set((await here.view()).by_name) == {"first", "other"}


async def test_copies_are_read_in_full_when_a_connection_was_lost(
    database: str, runtime: Runtime, service: GroupService, token: str
) -> None:
    topics, configs, access = runtime.get(TopicService), runtime.get(GroupConfigs), runtime.get(Access)
    await topics.create("lost", 1)
    await configs.alter("g", {HEARTBEAT_INTERVAL: 7_000}, "ann")
    await topics.view()
    await configs.resolved("g")
    await access.authenticate(token)
    with backup(database) as rows:
        for table in ("groups_topic", "groups_groupconfigoverride", "kcoord_accessrule", "kcoord_apitoken"):
            rows.execute(f"delete from {table}")  # no revision changes: only the loss of a connection tells
        await lose_connections(rows, runtime)
        assert set((await topics.view()).by_name) == set()
        assert (await configs.resolved("g"))[HEARTBEAT_INTERVAL] == 5_000
        with pytest.raises(ProtocolError, match="unknown token"):
            await access.authenticate(token)


async def members(service: GroupService) -> set[str]:
    group = (await service.describe("g")).group
    assert isinstance(group, ClassicGroup)
    return set(group.members)


async def test_change_of_the_protocol_is_not_taken_for_a_restore(
    database: str, runtime: Runtime, service: GroupService, other: GroupService, clock: VirtualClock
) -> None:
    await runtime.get(TopicService).create("t", 1)
    member = await stable_member(service, clock)
    await service.leave(leave(member.member_id))
    arriving = ConsumerHeartbeat(
        "g",
        "a",
        0,
        client_id="c",
        client_host="127.0.0.1",
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=frozenset({"t"}),
        topic_partitions={},
    )
    first = await settled(other.consumer_heartbeat(arriving))
    assert first.member_epoch <= member.generation_id, "epochs of an empty group begin again, as in Kafka"
    assert (
        await settled(service.consumer_heartbeat(ConsumerHeartbeat("g", "a", first.member_epoch)))
    ).error is Error.NONE
