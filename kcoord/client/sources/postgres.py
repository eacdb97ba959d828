"""Rows of a Postgres table, by shard, in the order of a growing id, without skipping ids that commit late.

A transaction takes its id from the sequence before it commits, so a row with a smaller id may appear after a larger one
was read. Rows are therefore read only up to a *horizon* at or below which none can appear any more: the largest id that
was taken by some moment, once all transactions have ended that could write to the table at that moment. The locks of
the table show which these are: an INSERT locks its table before it takes an id, and keeps the lock until its
transaction ends. The sequence shows which ids were taken; without the right to read it, the largest visible id does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row, tuple_row

from kcoord.client.types import Record

WAIT_SECONDS = 10.0
"""How long `end_offset` waits for transactions that were open when the source was first used."""

_WRITERS = """
select array_agg(distinct l.virtualtransaction) from pg_locks l
where l.locktype = 'relation' and l.pid is distinct from pg_backend_pid()
  and l.database = (select oid from pg_database where datname = current_database())
  and l.relation in (with recursive family (relid) as (select %(table)s::regclass::oid
                                                       union
                                                       select i.inhrelid from pg_inherits i
                                                       join family on family.relid = i.inhparent)
                     select relid from family)
  and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
"""
_KIND = "select relkind from pg_class where oid = %(table)s::regclass"
# Of an identity the sequence depends on the column; of a default the column's default depends on the sequence.
_SEQUENCES = """
with filled as (
    select a.attrelid, a.attnum, d.oid as default_id from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = %(table)s::regclass and a.attname = %(column)s)
select s.seqrelid, s.seqcache, has_sequence_privilege(s.seqrelid, 'SELECT') from pg_sequence s, filled f
where exists (select from pg_depend d
              where d.classid = 'pg_class'::regclass and d.objid = s.seqrelid
                and d.refclassid = 'pg_class'::regclass and d.refobjid = f.attrelid and d.refobjsubid = f.attnum
                and d.deptype = 'i'
                 or d.classid = 'pg_attrdef'::regclass and d.objid = f.default_id
                and d.refclassid = 'pg_class'::regclass and d.refobjid = s.seqrelid)
"""


class PostgresTable:
    """A table as a topic: `partitions` shards, told apart by an integer column, or by the id modulo their number.

    Parameters: `connect` opens a connection to a primary; it is kept, and opened again after it was lost. `table` may
    name its schema. `order_by` is a bigint column that an identity or sequence fills, `shard` an integer column from 0
    on, `timestamp_ms` a column with ms since the epoch. Values are rows as dicts. Use it from one thread at a time.

    What it cannot see: ids that are taken from the sequence apart from the INSERT (`select nextval(…)` by the
    program), or by sessions that keep some in advance (`cache` above 1, which is refused). Rows must not change their
    id or shard.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        table: str,
        partitions: int,
        *,
        order_by: str = "id",
        shard: str | None = None,
        timestamp_ms: str | None = None,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"partitions: {partitions}; a table has at least 1 shard")
        self._connect, self._table, self._order_by, self._timestamp_ms = connect, table, order_by, timestamp_ms
        self._relation = sql.Identifier(*table.split("."))
        self._id = sql.Identifier(order_by)
        number = sql.Literal(partitions)
        self._in_shard = (
            sql.SQL("{} = %(partition)s").format(sql.Identifier(shard))
            if shard is not None
            else sql.SQL("mod({id}, {number}) = %(partition)s").format(id=self._id, number=number)
        )
        self._connection: psycopg.Connection[Any] | None = None
        self._horizon: int | None = None
        self._candidate: tuple[int, frozenset[str]] | None = None
        self._sequences: list[int] = []

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record[dict[str, Any]]]:
        """See `RecordSource.fetch`. Rows may be missing anywhere, so no offset is out of range.

        Raises psycopg.Error.
        """
        horizon = self._look()
        if horizon is None or offset > horizon:
            return ()
        statement = sql.SQL(
            "select * from {table} where {id} >= %(offset)s and {id} <= %(horizon)s and {shard} "
            "order by {id} limit %(limit)s"
        ).format(table=self._relation, id=self._id, shard=self._in_shard)
        parameters = {"offset": offset, "horizon": horizon, "partition": partition, "limit": max_records}
        with self._open().cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(statement, parameters).fetchall()
        return [self._record(topic, partition, row) for row in rows]

    def beginning_offset(self, topic: str, partition: int) -> int:
        """The smallest id of the shard, 0 if it is empty. Raises psycopg.Error."""
        found = self._value("select min({id}) from {table} where {shard}", {"partition": partition})
        return 0 if found is None else int(found)

    def end_offset(self, topic: str, partition: int) -> int:
        """The largest id of the shard up to the horizon, plus one. Raises psycopg.Error.

        Raises TimeoutError if transactions that were open at the first look stay open.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while (horizon := self._look()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"transactions that write to {self._table} have been open for {WAIT_SECONDS:.0f} s")
            time.sleep(0.05)
        statement = "select max({id}) from {table} where {shard} and {id} <= %(horizon)s"
        found = self._value(statement, {"partition": partition, "horizon": horizon})
        return 0 if found is None else int(found) + 1

    def settled_offset(self, topic: str, partition: int) -> int:
        """One more than the horizon, 0 until it is known: smaller ids without a row stay without one.

        Raises psycopg.Error.
        """
        horizon = self._look()
        return 0 if horizon is None else horizon + 1

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _record(self, topic: str, partition: int, row: dict[str, Any]) -> Record[dict[str, Any]]:
        timestamp_ms = -1 if self._timestamp_ms is None else row[self._timestamp_ms]
        return Record(topic, partition, row[self._order_by], value=row, timestamp_ms=timestamp_ms)

    def _look(self) -> int | None:
        """The horizon, moved if it can be; None until the first one is known."""
        if self._candidate is not None:
            largest, open_then = self._candidate
            if open_then & self._writers():
                return self._horizon
            self._horizon = largest
        # Who may still write is looked up after the ids, never before.
        largest = self._largest()
        writers = self._writers()
        if writers:
            self._candidate = largest, writers
        else:
            self._candidate, self._horizon = None, largest
        return self._horizon

    def _largest(self) -> int:
        """The largest id that was taken, or that is visible; at least the horizon, whose row may be deleted by now."""
        visible = int(self._value("select coalesce(max({id}), -1) from {table}", {}))
        taken = [
            self._value("select pg_sequence_last_value(%(id)s::oid::regclass)", {"id": id_}) for id_ in self._sequences
        ]
        known = -1 if self._horizon is None else self._horizon
        return max(visible, known, *(int(id_) for id_ in taken if id_ is not None))

    def _writers(self) -> frozenset[str]:
        with self._open().cursor(row_factory=scalar_row) as cursor:
            found = cursor.execute(_WRITERS, {"table": self._table}).fetchone()
        return frozenset(found or ())

    def _value(self, statement: str, parameters: dict[str, Any]) -> Any:
        composed = sql.SQL(statement).format(table=self._relation, id=self._id, shard=self._in_shard)
        with self._open().cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(composed, parameters).fetchone()

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            connection = self._connect()
            connection.autocommit = True  # each statement sees what was committed before it
            self._check(connection)
            self._connection = connection
            self._candidate = self._horizon = None  # another server may have other transactions
        return self._connection

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        with connection.cursor(row_factory=scalar_row) as cursor:
            if cursor.execute("select pg_is_in_recovery()").fetchone():
                raise ValueError(
                    "a standby does not show who is writing: connect to the primary (target_session_attrs)"
                )
            names = {"table": self._table, "column": self._order_by}
            if cursor.execute(_KIND, names).fetchone() not in ("r", "p"):
                raise ValueError(
                    f"{self._table}: only a table shows who is writing to it: name the table, not a view of it"
                )
        with connection.cursor(row_factory=tuple_row) as cursor:
            found = cursor.execute(_SEQUENCES, names).fetchall()
        cache = max((cached for _, cached, _ in found), default=1)
        if cache > 1:
            raise ValueError(
                f"sessions keep {cache} ids of {self._table}.{self._order_by} in advance, so that small ids may come "
                "at any time: alter its sequence with CACHE 1"
            )
        self._sequences = [sequence for sequence, _, is_readable in found if is_readable]
