"""`kcoord.commit_offsets` and `kcoord.fetch_offsets`: errors, transactions, locks, isolation levels."""

from __future__ import annotations

import threading
import time
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg

from groups.core.model.types import ClassicGroup, ClassicMember, GroupState, Members
from groups.engine.service import GroupService
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from kcoord.setting_table import BY_NAME
from tests.support.commit_function import Refusal, commit
from tests.support.commits import PartitionCommit
from tests.support.journal import assert_journal_agrees, journal_lines

HOUR_MS = 3_600_000
GENERATION = 4
ORDERS_0 = [PartitionCommit("orders", 0, 42)]
BY_M1 = {"member_id": "m1", "generation_id": GENERATION}
LOCK_GROUP = "select id from groups_group where group_id = 'g' for update nowait"

Connection = psycopg.Connection[tuple[Any, ...]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def member(member_id: str, *, instance_id: str | None = None, session_in_ms: int = HOUR_MS) -> ClassicMember:
    """A member of a Stable group."""
    return ClassicMember(
        member_id,
        instance_id,
        "client of " + member_id,
        "127.0.0.1",
        10_000,
        30_000,
        "consumer",
        (),
        is_new=False,
        session_deadline=now_ms() + session_in_ms,
    )


async def put(runtime: Runtime, *members: ClassicMember, state: GroupState = GroupState.STABLE) -> None:
    """Group g with these members."""
    await runtime.get(GroupService).put(
        ClassicGroup("g", state, generation_id=GENERATION, protocol_type="consumer", members=Members(members))
    )


async def test_a_commit_of_a_member_is_a_row_and_a_line(connection: Connection, runtime: Runtime) -> None:
    await put(runtime, member("m1"))
    before = now_ms()
    committed = commit(
        connection,
        [PartitionCommit("orders", 0, 42, 3, "note"), PartitionCommit("orders", 1, 7)],
        **BY_M1,
        retention_time_ms=60_000,
    )
    assert committed == 2
    connection.commit()
    first, second = journal_lines(runtime.db.conninfo)
    assert (first["kind"], first["group_name"], first["topic"], first["partition"]) == ("commit", "g", "orders", 0)
    assert (first["committed_offset"], first["leader_epoch"], first["metadata"]) == (42, 3, "note")
    assert (first["member_id"], first["generation_id"], first["client_id"]) == ("m1", GENERATION, "client of m1")
    assert first["principal"] == connection.info.user
    assert before <= first["at"] <= now_ms() + 1
    assert first["expire_timestamp"] == first["at"] + 60_000
    assert second["committed_offset"] == 7
    assert_journal_agrees(runtime.db.conninfo)


async def test_the_service_reads_what_the_function_wrote(connection: Connection, api: Any, database: str) -> None:
    assert commit(connection, ORDERS_0) == 1
    connection.commit()
    answer = await api.post("/v1/groups/g/offsets/fetch", json={"topics": None})
    assert answer.json()["topics"][0]["partitions"][0]["committed_offset"] == 42
    assert connection.execute("select * from kcoord.fetch_offsets('g')").fetchone()[:5] == ("orders", 0, 42, -1, "")


async def test_results_and_offsets_are_one_transaction(connection: Connection, runtime: Runtime) -> None:
    await put(runtime, member("m1"))
    connection.execute("create temporary table results (n integer)")
    connection.commit()
    for generation, results in ((GENERATION, 1), (GENERATION - 1, 1)):
        connection.execute("insert into results values (1)")
        answer = commit(connection, ORDERS_0, member_id="m1", generation_id=generation)
        if isinstance(answer, Refusal):
            with pytest.raises(pg.InFailedSqlTransaction):
                connection.execute("select 1")
        connection.commit()  # of a transaction that failed it is a rollback
        assert connection.execute("select count(*) from results").fetchone() == (results,)
    assert len(journal_lines(runtime.db.conninfo)) == 1


REFUSED = [
    (None, "offsets: give a list"),
    ("{}", "offsets: give a list"),
    ('"orders"', "offsets: give a list"),
    ("[7]", "offsets[0] is no object"),
    ('[{"partition":0,"committed_offset":1}]', "offsets[0].topic: name the topic"),
    ('[{"topic":null,"partition":0,"committed_offset":1}]', "offsets[0].topic: name the topic"),
    ('[{"topic":"orders","committed_offset":1}]', "offsets[0].partition is missing"),
    ('[{"topic":"orders","partition":0}]', "offsets[0].committed_offset is missing"),
    ('[{"topic":"orders","partition":"0","committed_offset":1}]', 'offsets[0].partition: "0" is no integer'),
    ('[{"topic":"orders","partition":0.5,"committed_offset":1}]', "offsets[0].partition: 0.5 is no integer"),
    ('[{"topic":"orders","partition":2147483648,"committed_offset":1}]', "offsets[0].partition: 2147483648 is not"),
    ('[{"topic":"orders","partition":0,"committed_offset":"1"}]', 'offsets[0].committed_offset: "1" is no integer'),
    ('[{"topic":"orders","partition":0,"committed_offset":true}]', "offsets[0].committed_offset: true is no integer"),
    ('[{"topic":"orders","partition":0,"committed_offset":9223372036854775808}]', "offsets[0].committed_offset: 922"),
    ('[{"topic":"orders","partition":0,"committed_offset":1e400}]', "offsets[0].committed_offset: 1000"),
    ('[{"topic":"orders","partition":0,"committed_offset":1,"committed_metadata":5}]', "committed_metadata is no text"),
    ('[{"topic":"orders","partition":0,"committed_offset":1,"committed_leader_epoch":"x"}]', "committed_leader_epoch"),
    ('[{"topic":"orders","partition":0,"committed_offset":1,"offset":2}]', "offsets[0].offset: there is no such field"),
    ('[{"topic":"orders","partition":0,"committed_offset":1},{"topic":"orders"}]', "offsets[1].partition is missing"),
]


@pytest.mark.parametrize(("offsets", "detail"), REFUSED)
def test_what_is_no_list_of_offsets_is_refused_by_field(connection: Connection, offsets: str, detail: str) -> None:
    answer = commit(connection, offsets)
    assert isinstance(answer, Refusal)
    assert (answer.sqlstate, answer.name) == ("KC042", "INVALID_REQUEST")
    assert detail in answer.detail


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group_id": None}, Error.INVALID_GROUP_ID),
        ({"group_id": "a/b"}, Error.INVALID_GROUP_ID),
        ({"group_id": "a\nb"}, Error.INVALID_GROUP_ID),
        ({"group_id": "g" * 256}, Error.INVALID_GROUP_ID),
        ({"generation_id": None}, Error.INVALID_REQUEST),
        ({"member_id": "m" * 301}, Error.INVALID_REQUEST),
        ({"generation_id": 0}, Error.GROUP_ID_NOT_FOUND),
        ({"member_id": "m1", "generation_id": 1}, Error.GROUP_ID_NOT_FOUND),
    ],
)
def test_callers_that_make_no_sense_are_refused(connection: Connection, changes: dict[str, Any], error: Error) -> None:
    answer = commit(connection, ORDERS_0, **changes)
    assert isinstance(answer, Refusal)
    assert (answer.sqlstate, answer.name) == (f"KC{error.code:03}", error.name)


def test_an_empty_list_is_refused_because_it_would_fence_nothing(connection: Connection) -> None:
    """Differs from Kafka, which answers a commit of nothing with success and asks nobody."""
    answer = commit(connection, [])
    assert isinstance(answer, Refusal)
    assert (answer.name, answer.detail) == (
        "INVALID_REQUEST",
        "offsets: 0 partitions; 1 to 10000 can be committed at once",
    )


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (PartitionCommit("orders", 4, 1), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionCommit("orders", -1, 1), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionCommit("bills", 0, 1), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionCommit("orders", 1, 1, metadata="x" * 4_097), Error.OFFSET_METADATA_TOO_LARGE),
        (PartitionCommit("orders", 1, 1, metadata="\U0001f600" * 2_048 + "x"), Error.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_all_partitions_are_committed_or_none(connection: Connection, bad: PartitionCommit, error: Error) -> None:
    """Differs from Kafka, which answers each partition on its own."""
    answer = commit(connection, [*ORDERS_0, bad])
    assert isinstance(answer, Refusal)
    assert (answer.sqlstate, answer.name) == (f"KC{error.code:03}", error.name)
    connection.commit()
    assert journal_lines(connection.info.dsn) == []


def test_metadata_up_to_the_limit_is_stored(connection: Connection) -> None:
    for metadata in ("x" * 4_096, "\U0001f600" * 2_048, "é" * 4_096):
        assert commit(connection, [PartitionCommit("orders", 0, 1, metadata=metadata)]) == 1
        row = connection.execute("select committed_metadata from kcoord.fetch_offsets('g')").fetchone()
        assert row == (metadata,)


def test_the_limit_is_the_settings_default_and_can_be_replaced(connection: Connection) -> None:
    limit = connection.execute("select kcoord.offset_metadata_max_bytes()").fetchone()
    assert limit == (BY_NAME["offset.metadata.max.bytes"].default,)
    connection.execute(
        "create or replace function kcoord.offset_metadata_max_bytes() returns integer language sql immutable"
        " set search_path = pg_catalog, pg_temp as $$ select 3 $$"
    )
    answer = commit(connection, [PartitionCommit("orders", 0, 1, metadata="four")])
    assert isinstance(answer, Refusal)
    assert "more than 3 UTF-16" in answer.detail


def test_no_member_id_is_an_empty_one(connection: Connection) -> None:
    assert commit(connection, ORDERS_0, member_id=None) == 1
    connection.commit()
    assert [line["member_id"] for line in journal_lines(connection.info.dsn)] == [""]


def test_a_partition_named_twice_keeps_its_last_offset(connection: Connection) -> None:
    assert commit(connection, [PartitionCommit("orders", 0, 9), PartitionCommit("orders", 0, 5)]) == 1
    assert connection.execute("select committed_offset from kcoord.fetch_offsets('g')").fetchall() == [(5,)]


def test_errors_have_the_numbers_of_the_registry(connection: Connection) -> None:
    raised = {}
    for error in Error:
        try:
            connection.execute("select kcoord.refuse(%s, 'why')", (error.name,))
        except pg.NoDataFound:
            pass  # none that the functions raise
        except psycopg.Error as refusal:
            raised[error] = refusal
        connection.rollback()
    assert len(raised) == 15
    for error, refusal in raised.items():
        assert refusal.sqlstate == f"KC{error.code:03}"
        assert refusal.diag.message_primary == f"{error.name}: why"
        assert (refusal.diag.message_hint or "").startswith("Roll back")


async def test_whose_session_is_over_is_refused_before_any_timer_ran(connection: Connection, runtime: Runtime) -> None:
    await put(runtime, member("m1", session_in_ms=-1), member("m2"))
    answer = commit(connection, ORDERS_0, **BY_M1)
    assert isinstance(answer, Refusal)
    assert answer.name == "UNKNOWN_MEMBER_ID"
    connection.rollback()
    # The end of m1 leaves m2's generation as it is.
    assert commit(connection, ORDERS_0, member_id="m2", generation_id=GENERATION) == 1


async def test_no_session_is_renewed(connection: Connection, runtime: Runtime) -> None:
    """Differs from Kafka, where a commit to a Stable group renews the session: here only heartbeats do."""
    await put(runtime, member("m1"))
    query = "select session_deadline, last_heartbeat_at from groups_member"
    before = connection.execute(query).fetchall()
    assert commit(connection, ORDERS_0, **BY_M1) == 1
    connection.commit()
    assert connection.execute(query).fetchall() == before


async def test_a_static_member_is_fenced_by_whoever_took_its_place(connection: Connection, runtime: Runtime) -> None:
    await put(runtime, member("m1"), member("m2", instance_id="worker-1"))
    answer = commit(connection, ORDERS_0, **BY_M1, group_instance_id="worker-1")
    assert isinstance(answer, Refusal)
    assert (answer.sqlstate, answer.name) == ("KC082", "FENCED_INSTANCE_ID")
    assert "stop" in answer.hint
    connection.rollback()
    owner = {"member_id": "m2", "generation_id": GENERATION}
    assert commit(connection, ORDERS_0, **owner, group_instance_id="worker-1") == 1


async def test_a_commit_waits_for_the_bump_and_is_refused_after_it(connection: Connection, runtime: Runtime) -> None:
    await put(runtime, member("m1"))
    answers: list[int | Refusal] = []
    with psycopg.connect(runtime.db.conninfo) as service:
        service.execute("select id from groups_group where group_id = 'g' for update")
        service.execute("update groups_group set generation_id = generation_id + 1, version = version + 1")
        late = threading.Thread(target=lambda: answers.append(commit(connection, ORDERS_0, **BY_M1)))
        late.start()
        wait_until_blocked(runtime.db.conninfo, connection.info.backend_pid)
        service.commit()
        late.join(10)
    assert [isinstance(answer, Refusal) and answer.name for answer in answers] == ["ILLEGAL_GENERATION"]


async def test_the_group_waits_until_the_transaction_ends(connection: Connection, runtime: Runtime) -> None:
    await put(runtime, member("m1"), member("m2"))
    with psycopg.connect(runtime.db.conninfo) as other:
        assert commit(connection, ORDERS_0, **BY_M1) == 1
        for lock in (LOCK_GROUP, LOCK_GROUP.replace("update", "no key update")):
            with pytest.raises(pg.LockNotAvailable):
                other.execute(lock.encode())
            other.rollback()
        connection.commit()
        assert other.execute(LOCK_GROUP).fetchone() is not None


async def test_who_waited_for_the_group_to_be_made_writes_after_its_maker(
    connection: Connection, runtime: Runtime
) -> None:
    answers: list[int | Refusal] = []
    with psycopg.connect(runtime.db.conninfo) as maker:
        assert commit(maker, ORDERS_0) == 1
        late = threading.Thread(target=lambda: answers.append(commit(connection, ORDERS_0)))
        late.start()
        wait_until_blocked(runtime.db.conninfo, connection.info.backend_pid)
        maker.execute("select pg_sleep(0.01)")  # lines bear milliseconds
        assert commit(maker, ORDERS_0) == 1
        maker.commit()
        late.join(10)
    connection.commit()
    assert answers == [1]
    assert_journal_agrees(runtime.db.conninfo)


def wait_until_blocked(conninfo: str, pid: int) -> None:
    """Wait until that backend waits for a lock."""
    deadline = time.monotonic() + 10
    with psycopg.connect(conninfo, autocommit=True) as watching:
        while watching.execute("select cardinality(pg_blocking_pids(%s))", (pid,)).fetchone() == (0,):
            assert time.monotonic() < deadline, "it did not wait"
            time.sleep(0.01)


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
async def test_a_snapshot_from_before_a_change_of_the_group_cannot_commit(
    connection: Connection, runtime: Runtime, level: psycopg.IsolationLevel
) -> None:
    await put(runtime, member("m1"))
    connection.isolation_level = level
    connection.execute("select 1 from groups_group")  # takes the snapshot
    with psycopg.connect(runtime.db.conninfo) as service:
        service.execute("update groups_group set generation_id = generation_id + 1, version = version + 1")
    with pytest.raises(pg.SerializationFailure):
        commit(connection, ORDERS_0, **BY_M1)
    connection.rollback()
    assert commit(connection, ORDERS_0, member_id="m1", generation_id=GENERATION + 1) == 1
    connection.commit()
    assert_journal_agrees(runtime.db.conninfo)


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
async def test_a_snapshot_from_before_another_commit_cannot_overwrite_it(
    connection: Connection, runtime: Runtime, level: psycopg.IsolationLevel
) -> None:
    assert commit(connection, ORDERS_0) == 1
    connection.commit()
    connection.isolation_level = level
    connection.execute("select 1 from groups_group")
    with psycopg.connect(runtime.db.conninfo) as other:
        assert commit(other, [PartitionCommit("orders", 0, 43)]) == 1
    with pytest.raises(pg.SerializationFailure):
        commit(connection, [PartitionCommit("orders", 0, 44)])
    connection.rollback()
    assert_journal_agrees(runtime.db.conninfo)


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
async def test_a_group_made_since_the_snapshot_is_not_made_twice(
    connection: Connection, runtime: Runtime, level: psycopg.IsolationLevel
) -> None:
    connection.isolation_level = level
    connection.execute("select 1 from groups_group")
    with psycopg.connect(runtime.db.conninfo) as other:
        assert commit(other, ORDERS_0) == 1
    with pytest.raises(pg.SerializationFailure):
        commit(connection, ORDERS_0)


def test_two_that_make_one_group_at_once(connection: Connection, database: str) -> None:
    answers: list[int | Refusal] = []
    with psycopg.connect(database) as other:
        assert commit(connection, ORDERS_0) == 1
        late = threading.Thread(target=lambda: answers.append(commit(other, [PartitionCommit("orders", 1, 5)])))
        late.start()
        wait_until_blocked(database, other.info.backend_pid)
        connection.commit()
        late.join(10)
    assert answers == [1]
    assert connection.execute("select count(*) from groups_group").fetchone() == (1,)
    assert connection.execute("select kind from groups_event").fetchall() == [("group_created",)]
    assert_journal_agrees(database)


def test_fetch_reads_all_topics_or_those_named(connection: Connection) -> None:
    connection.execute(
        "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
        " values ('bills', gen_random_uuid(), 1, '{}', 0)"
    )
    commit(connection, [PartitionCommit("orders", 1, 5, 2, "n"), *ORDERS_0, PartitionCommit("bills", 0, 7)])
    everything = connection.execute("select * from kcoord.fetch_offsets('g')").fetchall()
    assert [row[:5] for row in everything] == [
        ("bills", 0, 7, -1, ""),
        ("orders", 0, 42, -1, ""),
        ("orders", 1, 5, 2, "n"),
    ]
    named = connection.execute(
        "select topic, partition from kcoord.fetch_offsets('g', array['bills', 'none'])"
    ).fetchall()
    assert named == [("bills", 0)]
    assert connection.execute("select * from kcoord.fetch_offsets('nobody')").fetchall() == []
    assert connection.execute("select * from kcoord.fetch_offsets(null)").fetchall() == []


def test_fetch_refuses_offsets_of_open_transactions_unless_told_otherwise(connection: Connection) -> None:
    commit(connection, ORDERS_0)
    connection.execute(
        "insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset, leader_epoch,"
        " metadata, commit_timestamp, record_offset, opened_at, member_id, generation_id, client_id,"
        " principal) select 1, id, 'orders', 1, 5, -1, '', 0, 9, 0, '', -1, '', '' from groups_group"
    )
    connection.commit()
    with pytest.raises(psycopg.Error) as raised:
        connection.execute("select * from kcoord.fetch_offsets('g')")
    assert raised.value.sqlstate == f"KC{Error.UNSTABLE_OFFSET_COMMIT.code:03}"
    connection.rollback()
    unstable = "select partition from kcoord.fetch_offsets('g', require_stable => false)"
    assert connection.execute(unstable).fetchall() == [(0,)]
    assert connection.execute("select * from kcoord.fetch_offsets('g', array['bills'])").fetchall() == []
