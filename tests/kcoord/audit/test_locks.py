"""The row of the chain is locked last, whatever else a transaction locks and in whatever order it records."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from kcoord.access.audit.chain import Audit
from kcoord.access.audit.recording import Act, Q, parameters
from kcoord.process.runtime import Runtime
from kcoord.requests.current import Caller, Door, Kind
from tests.support.members import eventually
from tests.support.rest_groups import group

LOCK = "select 1 from groups_group where group_id = 'g' for update"
WAITING = "select count(*) from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
PATIENCE_SECONDS = 60
BOUND = "-c statement_timeout=60s"

Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
async def group_row(runtime: Runtime) -> None:
    """The row of group g."""
    await runtime.get(GroupService).put(group("g", GroupState.EMPTY))


@pytest.fixture
def two(database: str) -> Iterator[tuple[Connection, Connection]]:
    """Connections of two processes."""
    with psycopg.connect(database, options=BOUND) as first, psycopg.connect(database, options=BOUND) as second:
        yield first, second


def act(connection: Connection, name: str) -> None:
    """Record an act in the transaction."""
    caller = Caller(Door.HTTP, Kind.TOKEN, "deploy")
    connection.execute(Q.append_audit.encode(), parameters(Act("group.hold", "group", name), caller))


async def is_waiting(database: str, pid: int) -> bool:
    """Whether a connection waits for a lock."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(WAITING, [pid]).fetchone()
        return row is not None and bool(row[0])


async def test_opposed_orders_of_group_and_audit_do_not_deadlock(
    runtime: Runtime, database: str, group_row: None, two: tuple[Connection, Connection]
) -> None:
    """One records and then locks the group; the other has locked the group, records, and commits first."""
    first, second = two
    act(first, "first")
    second.execute(LOCK)
    act(second, "second")
    failures: list[psycopg.Error] = []

    def go_on() -> None:
        try:
            first.execute(LOCK)
            first.commit()
        except psycopg.Error as error:
            failures.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        await eventually(lambda: is_waiting(database, first.info.backend_pid), "the first waits for the group")
        second.commit()  # it locks the chain while the first has a record that is not sealed
    finally:
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert failures == []
    with psycopg.connect(database) as connection:
        names = connection.execute("select name from kcoord_auditrecord order by seq").fetchall()
    assert names == [("second",), ("first",)], "in the order of their commits"
    assert (await runtime.get(Audit).verify()).problems == []


async def test_a_record_that_is_not_committed_holds_up_no_other(
    runtime: Runtime, database: str, two: tuple[Connection, Connection]
) -> None:
    first, second = two
    act(first, "first")
    act(second, "second")
    second.commit()
    first.commit()
    assert (await runtime.get(Audit).chain()).seq == 2
    assert (await runtime.get(Audit).verify()).problems == []
