"""The chain of the audit: the database and Python compute the same hash, and any single change is found."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors as pg

from kcoord.access.audit.chain import TRIM_BATCH, Audit, Chain, Head, Problem, Verifier, verify_lines
from kcoord.access.audit.encoding import GENESIS, HIDDEN, Record, canonical, digest, from_json, to_json
from kcoord.access.audit.recording import Act, record
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.requests.current import Caller, Door, Kind, calling
from tests.conftest import START_MS

MARA = Caller(Door.DASHBOARD, Kind.PERSON, "mara", "7", "10.1.2.3", "req-1")
DAY_MS = 86_400_000


async def act(runtime: Runtime, *acts: Act) -> None:
    """Some acts in one transaction."""

    async def work(connection: Any) -> None:
        for one in acts:
            await record(runtime.db, connection, one, MARA)

    await runtime.db.transaction(work)


async def records(runtime: Runtime) -> list[Record]:
    return [one async for some in runtime.get(Audit).export() for one in some]


async def problems(runtime: Runtime, *heads: Head) -> list[str]:
    return [str(problem) for problem in (await runtime.get(Audit).verify(heads)).problems]


async def test_a_record_has_who_where_what_before_after_and_why(runtime: Runtime) -> None:
    text = "naïve \u2028 \0 " + "\ud800"
    await act(runtime, Act("group.config", "group", text, {"b": 1, "a": None}, {"a": "ü"}, "bug 17"))
    (found,) = await records(runtime)
    assert (found.seq, found.prev, found.at) == (1, GENESIS, START_MS)
    assert (found.kind, found.principal, found.principal_id) == ("person", "mara", "7")
    assert (found.door, found.address, found.request_id) == ("dashboard", "10.1.2.3", "req-1")
    assert (found.act, found.resource, found.name) == ("group.config", "group", "naïve \u2028 \ufffd ?")
    assert (found.before, found.after) == ('{"a":null,"b":1}', '{"a":"ü"}')
    assert (found.reason, found.result, found.error, found.count) == ("bug 17", "done", "", 1)
    assert found.hash == digest(found)
    assert await problems(runtime) == []


async def test_what_is_rolled_back_leaves_no_record(runtime: Runtime) -> None:
    async def work(connection: Any) -> None:
        await record(runtime.db, connection, Act("topic.create", "topic", "a"))
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await runtime.db.transaction(work)
    await act(runtime, Act("topic.create", "topic", "b"))
    assert [(one.seq, one.name) for one in await records(runtime)] == [(1, "b")]
    assert await problems(runtime) == []


def test_secrets_and_what_is_too_long_are_not_recorded() -> None:
    assert canonical({"password": "x", "rules": [{"secret": "y"}]}) == (
        f'{{"password":"{HIDDEN}","rules":[{{"secret":"{HIDDEN}"}}]}}'
    )
    assert canonical({"a": "x" * 20_000}) == '{"characters":20008,"omitted":true}'


async def test_rows_can_be_neither_changed_nor_removed(runtime: Runtime, database: str) -> None:
    await act(runtime, Act("topic.create", "topic", "a"))
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in (
            "update kcoord_auditrecord set principal = 'nobody'",
            "delete from kcoord_auditrecord",
            "truncate kcoord_auditrecord",
        ):
            with pytest.raises(pg.InsufficientPrivilege, match="append-only"):
                connection.execute(statement)
    assert len(await records(runtime)) == 1


async def test_each_way_to_tamper_is_found_where_it_was_done(runtime: Runtime, database: str) -> None:
    for number in range(6):
        await act(runtime, Act("topic.create", "topic", f"t{number}"))
    head = Head(6, (await runtime.get(Audit).chain()).hash)
    assert await problems(runtime, head) == []
    ways = {
        "update kcoord_auditrecord set principal = 'nobody' where seq = 3": "record 3: its content",
        "delete from kcoord_auditrecord where seq = 3": "record 3: it is missing before record 4",
        "delete from kcoord_auditrecord where seq in (3, 4)": "record 3: those from here to 4 are missing",
        "delete from kcoord_auditrecord where seq > 4": "record 5: the chain has 6 records",
        "delete from kcoord_auditrecord where seq <= 2": "record 1: those from here to 2 are missing",
        "update kcoord_auditrecord set seq = case seq when 3 then -4 else -3 end where seq in (3, 4);"
        " update kcoord_auditrecord set seq = -seq where seq < 0": "record 3: it does not follow record 2",
        "insert into kcoord_auditrecord select 7, prev, hash, at, kind, principal, principal_id, address, request_id,"
        " door, act, resource, name, before, after, reason, result, error, count"
        " from kcoord_auditrecord where seq = 6": "record 7: it does not follow record 6",
        "update kcoord_auditchain set removed_through = 0, removed_hash = sha256('x')": "record 1: it does not follow",
        "insert into kcoord_auditpending (at, kind, principal, principal_id, address, request_id, door, act, resource,"
        " name, reason, result, error, count) values (1, '', '', '', '', '', '', '', '', '', '', 'done', '', 1)":
        "record 7: 1 records were written past the chain",
    }  # fmt: skip
    for statement, expected in ways.items():
        with psycopg.connect(database) as connection:
            # Who can do this owns the table.
            connection.execute("set session_replication_role = replica")
            before = connection.execute("select * from kcoord_auditchain").fetchall()
            saved = connection.execute("create temporary table saved as select * from kcoord_auditrecord")
            connection.execute(statement.encode())
            connection.commit()
            found = await problems(runtime)
            assert expected in found[0], (statement, found)
            connection.execute("delete from kcoord_auditrecord")
            connection.execute("insert into kcoord_auditrecord select * from saved")
            connection.execute("delete from kcoord_auditpending")
            connection.execute("update kcoord_auditchain set removed_hash = %s", [before[0][4]])
            connection.commit()
            assert saved.rowcount == 6
    assert await problems(runtime, head) == []


async def test_a_shorter_chain_that_was_written_anew_is_found_by_a_head_that_was_kept(
    runtime: Runtime, database: str
) -> None:
    for number in range(3):
        await act(runtime, Act("topic.create", "topic", f"t{number}"))
    head = Head(3, (await runtime.get(Audit).chain()).hash)
    with psycopg.connect(database) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("delete from kcoord_auditrecord where seq = 3")
        connection.execute(
            "update kcoord_auditchain set seq = 2, hash = (select hash from kcoord_auditrecord where seq = 2)"
        )
    assert await problems(runtime) == []
    assert await problems(runtime, head) == [f"record 3: the head {head} was once the end: records up to 3 are missing"]
    await act(runtime, Act("topic.create", "topic", "another"))
    assert "that of the head" in (await problems(runtime, head))[0]
    assert Head.parse(str(head)) == head


FIELDS = st.one_of(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5))


def chain_of(names: list[str]) -> list[Record]:
    found: list[Record] = []
    for number, name in enumerate(names, 1):
        prev = found[-1].hash if found else GENESIS
        one = Record(
            number, prev, b"", 1_000 + number, "token", name, "1", "::1", "r", "http", "topic.create", "topic", name,
            None, canonical({"name": name}), "", "done", "", 1,
        )  # fmt: skip
        found.append(replace(one, hash=digest(one)))
    return found


def verified(found: list[Record], intact: list[Record]) -> list[Problem]:
    verifier = Verifier(Chain(len(intact), intact[-1].hash))
    for one in found:
        verifier.check(one)
    return verifier.finish()


CHANGES = {
    "at": st.integers(0, 2**62),
    "count": st.integers(1, 9),
    "seq": st.integers(1, 9),
    "prev": st.binary(min_size=32, max_size=32),
    "hash": st.binary(min_size=32, max_size=32),
    "before": st.none() | FIELDS,
    "after": st.none() | FIELDS,
    **dict.fromkeys(
        (
            "kind", "principal", "principal_id", "address", "request_id", "door", "act", "resource", "name", "reason",
            "result", "error",
        ),
        FIELDS,
    ),
}  # fmt: skip


@given(st.lists(FIELDS, min_size=1, max_size=8), st.data())
def test_any_single_change_to_any_row_or_the_order_is_found(names: list[str], data: st.DataObject) -> None:
    intact = chain_of(names)
    assert verified(intact, intact) == []
    where = data.draw(st.integers(0, len(intact) - 1))
    way = data.draw(st.sampled_from(["change", "remove", "repeat", "insert", "swap", "move"]))
    found = list(intact)
    if way == "change":
        name = data.draw(st.sampled_from(sorted(CHANGES)))
        found[where] = replace(found[where], **{name: data.draw(CHANGES[name])})
    elif way == "remove":
        del found[where]
    elif way == "repeat":
        found.insert(where, found[where])
    elif way == "insert":
        forged = replace(found[where], name="forged")
        found.insert(where, replace(forged, hash=digest(forged)))
    elif way == "swap":
        other = data.draw(st.integers(0, len(intact) - 1))
        found[where], found[other] = found[other], found[where]
    else:
        found.insert(data.draw(st.integers(0, len(intact) - 1)), found.pop(where))
    assert bool(verified(found, intact)) is (found != intact)


@given(st.lists(FIELDS, min_size=1, max_size=4))
def test_an_export_can_be_checked_without_the_database(names: list[str]) -> None:
    intact = chain_of(names)
    lines = [from_json(to_json(one)) for one in intact]
    assert lines == intact
    assert verify_lines(iter(lines[1:])).problems == []
    lines[-1] = replace(lines[-1], address="elsewhere")
    assert len(verify_lines(iter(lines)).problems) == 1


async def test_old_records_are_removed_and_the_chain_goes_on(runtime: Runtime, clock: Any, database: str) -> None:
    for number in range(3):
        await act(runtime, Act("topic.create", "topic", f"t{number}"))
    old = (await records(runtime))[-1]
    clock.advance(runtime.config.int("audit.retention.ms") + 1)
    await act(runtime, Act("topic.create", "topic", "new"))
    assert await runtime.get(Audit).trim() == 3
    assert [(one.seq, one.act) for one in await records(runtime)] == [(4, "topic.create"), (5, "audit.trim")]
    assert await problems(runtime) == []
    assert (await records(runtime))[-1].after == canonical({"through": 3, "hash": old.hash.hex()})
    assert await runtime.get(Audit).trim() == 0
    with psycopg.connect(database) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("delete from kcoord_auditrecord where seq = 4")
        connection.execute(
            "update kcoord_auditchain set removed_through = 4, removed_hash ="
            " (select prev from kcoord_auditrecord where seq = 5)"
        )
    assert "no record says that those up to 4 were removed" in (await problems(runtime))[0]


async def test_all_records_may_be_too_old(runtime: Runtime, clock: Any) -> None:
    await act(runtime, *(Act("topic.create", "topic", "t") for _ in range(3)))
    clock.advance(runtime.config.int("audit.retention.ms") + DAY_MS)
    assert await runtime.get(Audit).trim() == 3
    assert [one.act for one in await records(runtime)] == ["audit.trim"]
    assert await problems(runtime) == []
    assert TRIM_BATCH > 3


async def test_processes_append_to_one_chain_without_deadlocks(runtime: Runtime, database: str) -> None:
    """Each locks a row of its own first, the other's after it has recorded its act: no order could be worse."""
    other = Runtime(Config({}), database)
    await other.start()
    try:
        await act(runtime, Act("topic.create", "topic", "before"))

        async def one(from_process: Runtime, number: int) -> None:
            async def work(connection: Any) -> None:
                await record(from_process.db, connection, Act("topic.create", "topic", f"t{number}"))
                await connection.execute("select pg_advisory_xact_lock(4711)")

            await from_process.db.transaction(work)

        await asyncio.gather(*(one((runtime, other)[number % 2], number) for number in range(40)))
        found = await records(runtime)
        assert [record.seq for record in found] == list(range(1, 42))
        assert {record.name for record in found} == {"before", *(f"t{number}" for number in range(40))}
        assert await problems(runtime) == []
    finally:
        await other.stop()


async def test_an_act_waits_for_another_only_while_that_commits(runtime: Runtime) -> None:
    recorded, go_on = asyncio.Event(), asyncio.Event()

    async def slow(connection: Any) -> None:
        await record(runtime.db, connection, Act("topic.create", "topic", "slow"))
        recorded.set()
        await go_on.wait()

    running = asyncio.create_task(runtime.db.transaction(slow))
    await recorded.wait()
    await act(runtime, Act("topic.create", "topic", "quick"))
    go_on.set()
    await running
    assert [one.name for one in await records(runtime)] == ["quick", "slow"]


async def test_the_caller_travels_with_the_call(runtime: Runtime) -> None:
    with calling(MARA):
        await runtime.db.transaction(
            lambda connection: record(runtime.db, connection, Act("topic.create", "topic", "a"))
        )
    (found,) = await records(runtime)
    assert (found.principal, found.address) == ("mara", "10.1.2.3")
