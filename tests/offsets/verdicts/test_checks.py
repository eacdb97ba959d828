"""Judging and storing: what is left alone, what keeps its beginning, and one group at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from groups.core.model.types import VerdictKind
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.database.sql import queries
from kcoord.process.runtime import Runtime
from offsets.core.types import Millis
from offsets.core.verdicts import Verdict
from offsets.lag.samples import GroupsFailed
from offsets.verdicts import ACTIVITY_KEPT_MS, CHECKS, LAST_KEY, Check, VerdictChecks, thresholds
from tests.conftest import START_MS
from tests.frontend.seed import Seed, now_ms
from tests.offsets.verdicts.rows import LONG_AGO, Rows
from tests.support.api_consumers import Consumers
from tests.support.database import cloned_database

SILENT = START_MS - 30_000
"""The last heartbeat of a member with a session of 45 s that is late."""

READ_BY_GROUP = (
    "groups_group", "groups_member", "groups_assignment", "groups_event", "offsets_committedoffset",
    "offsets_watermarksample",
)  # fmt: skip


async def judged(runtime: Runtime, group: int, checks: tuple[Check, ...] = tuple(Check)) -> list[Verdict]:
    """The verdicts on one group now."""
    async with runtime.db.snapshot() as connection:
        now = await runtime.db.now_ms(connection)
        return await runtime.get(VerdictChecks).of_group(connection, group, now, checks)


def stored(rows: Rows) -> list[tuple[Any, ...]]:
    """Everything that is stored."""
    return rows.connection.execute(
        "select group_id, kind, topic, since, number, names from offsets_groupverdict order by 1, 2, 3"
    ).fetchall()


@pytest.mark.parametrize(
    ("state", "gap", "expires_in", "is_judged"),
    [("ACTIVE", 0, 3_000, True), ("ACTIVE", 1, 3_000, False), ("ACTIVE", 0, 0, False), ("LOADING", 0, 3_000, False)],
)
async def test_nobody_is_late_where_nobody_counts_sessions(
    rows: Rows, runtime: Runtime, state: str, gap: int, expires_in: int, is_judged: bool
) -> None:
    """After an outage every session starts over, so what rows say of the time before is nobody's fault."""
    node = rows.node(flushed_until=START_MS, expires_at=START_MS + expires_in)
    rows.coordinator_partition(7, node, state, gap)
    group = rows.group("g", partition=7)
    rows.member(group, "m", SILENT)
    assert [verdict.kind for verdict in await judged(runtime, group)] == [VerdictKind.LATE] * is_judged


async def test_a_group_that_cannot_be_judged_spares_the_others(rows: Rows, runtime: Runtime) -> None:
    groups = [rows.group(name) for name in ("a", "b", "c", "d", "e")]
    for group in groups:
        rows.member(group, "m", SILENT)
    rows.connection.execute("update groups_member set session_deadline = 2^62 where group_id = %s", [groups[2]])
    with pytest.raises(GroupsFailed, match=rf"1 groups.*groups_group\.id {groups[2]}: bigint out of range"):
        await runtime.get(VerdictChecks).check_members()
    assert [row[0] for row in stored(rows)] == [group for group in groups if group != groups[2]]
    assert rows.connection.execute("select at from offsets_verdictrun where name = 'members'").fetchall()


async def test_a_server_that_is_frozen_makes_nobody_late(rows: Rows, runtime: Runtime) -> None:
    """It may have answered heartbeats from memory that it could not store."""
    rows.node(flushed_until=SILENT + 1_000)
    rows.node(flushed_until=None)
    rows.node(flushed_until=0, ended_at=START_MS)
    group = rows.group("g")
    rows.member(group, "m", SILENT)
    assert await judged(runtime, group) == []


async def test_a_member_that_left_temporarily_is_not_late(rows: Rows, runtime: Runtime) -> None:
    group = rows.group("g", type="consumer")
    rows.consumer_member(group, "away", SILENT, SILENT + 45_000, member_epoch=-2, instance_id="i")
    assert await judged(runtime, group) == []


async def test_a_member_that_stops_is_late_until_it_is_heard_again(
    api: Any, runtime: Runtime, rows: Rows, clock: VirtualClock, checks: VerdictChecks
) -> None:
    consumers = Consumers(api, runtime)
    await consumers.topic("orders", 2)
    joined = await consumers.join()
    clock.advance(20_000)
    await checks.check_members()
    assert stored(rows) == []
    clock.advance(3_000)
    await checks.check_members()
    row = rows.connection.execute("select id from groups_group").fetchone()
    assert row is not None
    assert stored(rows) == [(row[0], "late", "", START_MS, 1, [joined["member_id"]])]
    late = (await judged(runtime, row[0]))[0]
    assert (late.due_at, late.names) == (START_MS + 45_000, [joined["member_id"]])
    await consumers.go_on(joined)
    assert await judged(runtime, row[0]) == []
    await checks.check_members()
    assert stored(rows) == []


async def test_what_lasts_keeps_its_beginning(
    rows: Rows, runtime: Runtime, clock: VirtualClock, checks: VerdictChecks
) -> None:
    rows.topic("orders", 3)
    group = rows.group("g")
    rows.generation_topics(group, ["orders"])
    rows.owner(group, "orders", 0)
    await checks.check_offsets()
    clock.advance(600_000)
    await checks.check_offsets()
    assert stored(rows) == [(group, "uncovered", "orders", START_MS, 2, ["1", "2"])]
    assert (await judged(runtime, group))[0].since == START_MS
    rows.owner(group, "orders", 1)
    await checks.check_offsets()
    assert stored(rows) == [(group, "uncovered", "orders", START_MS, 1, ["2"])]
    rows.owner(group, "orders", 2)
    assert await judged(runtime, group) == [], "as of now, not as stored"
    await checks.check_offsets()
    assert stored(rows) == []


async def test_of_checks_that_are_left_out_a_group_has_what_is_stored(
    rows: Rows, runtime: Runtime, checks: VerdictChecks
) -> None:
    rows.topic("orders", 1)
    group = rows.group("g")
    rows.generation_topics(group, ["orders"])
    rows.owner(group, "other", 0)
    await checks.check_offsets()
    rows.member(group, "m", SILENT)
    rows.owner(group, "orders", 0)
    kinds = [verdict.kind for verdict in await judged(runtime, group, (Check.MEMBERS,))]
    assert kinds == [VerdictKind.UNCOVERED, VerdictKind.LATE]


async def test_a_row_that_stays_the_same_is_not_written_again(rows: Rows, checks: VerdictChecks) -> None:
    rows.group("g", "PreparingRebalance", LONG_AGO)
    await checks.check_members()
    before = rows.connection.execute("select xmin::text from offsets_groupverdict").fetchall()
    await checks.check_members()
    assert rows.connection.execute("select xmin::text from offsets_groupverdict").fetchall() == before


async def test_a_deleted_group_has_no_verdicts(rows: Rows, checks: VerdictChecks, runtime: Runtime) -> None:
    topic = rows.topic("orders", 1)
    rows.watermark(topic, 0, 5, at=LONG_AGO)
    for name in ("a", "b"):
        rows.owner(rows.group(name, "PreparingRebalance", LONG_AGO), "orders", 0)
    await checks.check_members()
    await checks.check_offsets()
    assert [row[1] for row in stored(rows)] == ["stale", "stuck"] * 2
    rows.connection.execute("delete from groups_group")
    await checks.check_members()
    await checks.check_offsets()
    assert stored(rows) == []
    assert await runtime.get(GroupService).describe("a") is not None


async def test_how_busy_groups_are_is_noted_each_minute_for_a_day(
    rows: Rows, checks: VerdictChecks, clock: VirtualClock
) -> None:
    rows.group("g")
    await checks.check_members()
    rows.events("g", "rebalance_started", START_MS, START_MS)
    rows.events("g", "member_joined", START_MS)
    clock.advance(59_000)
    await checks.check_members()
    clock.advance(1_000)
    await checks.check_members()
    noted = rows.connection.execute("select at, rebalances from offsets_activity order by at").fetchall()
    assert noted == [(START_MS, 0), (START_MS + 60_000, 2)]
    clock.advance(ACTIVITY_KEPT_MS + 1)
    await checks.check_members()
    row = rows.connection.execute("select count(*) from offsets_activity").fetchone()
    assert row == (1,)


async def test_the_lag_of_all_groups_is_noted_unless_it_is_old(
    rows: Rows, checks: VerdictChecks, clock: VirtualClock
) -> None:
    def sampled(group: int, lag: int | None, at: int) -> None:
        rows.connection.execute(
            "insert into offsets_grouplag (group_id, at, lag) values (%s, %s, %s)"
            " on conflict (group_id) do update set at = excluded.at, lag = excluded.lag",
            [group, at, lag],
        )

    first, second, third = (rows.group(name) for name in "abc")
    await checks.check_members()
    for at in (START_MS + 59_000, START_MS + 59_500):
        sampled(first, 40, START_MS)
        sampled(second, 2, at)
        sampled(third, None, at)
    sampled(10**9, 1_000, START_MS + 59_000)  # deleted, and not forgotten yet
    for _ in range(4):
        clock.advance(60_000)
        await checks.check_members()
    noted = rows.connection.execute("select lag from offsets_activity order by at").fetchall()
    assert noted[:2] == [(None,), (42,)]
    assert noted[-1] == (None,), "nobody has sampled for three minutes"


@pytest.fixture(scope="module")
def crowded(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A database with many groups, offsets and samples."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        fill(connection)
        yield connection


@pytest.mark.parametrize("check", Check)
@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_one_group_is_judged_without_reading_the_others(
    crowded: psycopg.Connection[Any], runtime: Runtime, check: Check
) -> None:
    parameters = {
        **thresholds(runtime.config).at(START_MS), "after": 1_699, "upto": 1_700, "named": 5,
        "rebalance_kinds": ["rebalance_started"], "retention_ms": 1,
    }  # fmt: skip
    for text in CHECKS[check].texts:
        explained = crowded.execute(f"explain {text}".encode(), parameters)
        plan = "\n".join(str(row[0]) for row in explained)
        for table in READ_BY_GROUP:
            assert f"Seq Scan on {table}" not in plan, plan


def test_a_batch_of_groups_is_judged_by_index(crowded: psycopg.Connection[Any], runtime: Runtime) -> None:
    """Of the tables that grow with the number of groups only the members are read as a whole, for `late`."""
    parameters = {
        **thresholds(runtime.config).at(START_MS), "after": 0, "upto": 20, "named": 5, "retention_ms": 1,
        "rebalance_kinds": ["rebalance_started"],
    }  # fmt: skip
    for text in CHECKS[Check.OFFSETS].texts:
        plan = "\n".join(str(row[0]) for row in crowded.execute(f"explain {text}".encode(), parameters))
        for table in READ_BY_GROUP:
            assert f"Seq Scan on {table}" not in plan, plan
    text = queries("offsets").judge_rebalances
    explained = crowded.execute(f"explain {text}".encode(), {**parameters, "upto": LAST_KEY})
    assert "groups_event_pkey" in "\n".join(str(row[0]) for row in explained)


def test_the_partitions_of_one_large_group_are_not_compared_with_each_other(database: str, runtime: Runtime) -> None:
    """Planned for the average group, each of its partitions met each watermark of its topic: 8 s with 10,000."""
    partitions = 1_000
    with psycopg.connect(database, autocommit=True) as connection:
        seed = Seed(connection)
        for number in range(100):
            seed.group(f"small-{number}")
        pk = seed.group("large")
        for number in range(200):
            seed.topic(f"z-{number}", 5, [9_000] * 5)
        seed.topic("wide", partitions, [9_000] * partitions)
        seed.assign(pk, {("wide", partition): "m" for partition in range(partitions)})
        seed.commit(pk, {("wide", partition): 8_000 for partition in range(partitions)})
        connection.execute("vacuum analyze")
        parameters = {**thresholds(runtime.config).at(now_ms()), "after": pk - 1, "upto": pk, "named": 5}
        text = f"explain (analyze, timing off) {queries('offsets').judge_owned}"
        plan = "\n".join(str(row[0]) for row in connection.execute(text.encode(), parameters))
    removed = [int(count) for count in re.findall(r"Rows Removed by (?:Join )?Filter: (\d+)", plan)]
    assert max(removed, default=0) <= 2 * partitions, plan


def fill(connection: psycopg.Connection[Any]) -> None:
    """Enough rows that reading all of them is not the cheapest way."""
    at: Millis = START_MS
    for statement in (
        "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
        " select 't' || n, gen_random_uuid(), 20, '{}', 0 from generate_series(1, 50) n",
        "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
        f" select t.id, p, 0, 1000, {at} from groups_topic t, generate_series(0, 19) p",
        "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
        f" select t.id, p, {at} - 60000 * k, {at} - 60000 * k, 0, 1000 - k"
        " from groups_topic t, generate_series(0, 19) p, generate_series(0, 39) k",
        "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,"
        " new_member_added, version, created_at, updated_at)"
        " select 'g' || n, 'classic', 'Stable', 'Empty', 0, 0, 'consumer', false, 1, 0, 0"
        " from generate_series(1, 4000) n",
        "insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms,"
        " rebalance_timeout_ms, protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync)"
        " select g.id, 'm' || n, 'c', 'h', 1, 1, 'consumer', '{}', '{}', '', false, false"
        " from groups_group g, generate_series(1, 3) n",
        "insert into groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id)"
        " select g.id, 't1', 't1', p, 'm1', 1 from groups_group g, generate_series(0, 9) p",
        "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
        " commit_timestamp, member_id, generation_id)"
        " select g.id, 't1', p, 980, -1, '', 0, '', -1 from groups_group g, generate_series(0, 9) p",
        "insert into groups_generationtopics (group_id, topics) select id, '{t1}' from groups_group",
        "insert into groups_event (group_name, at, kind, generation_id, detail)"
        " select 'g' || (n % 4000 + 1), n, 'rebalance_started', 1, '{}' from generate_series(1, 40000) n",
        f"insert into offsets_activity values ({at} - 660000, 0, 39900, 0)",
        "analyze",
    ):
        connection.execute(statement.encode())
