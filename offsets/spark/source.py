"""The data source `kcoord`: tables of Postgres in parallel slices, as Arrow batches, from one exported snapshot.

    with exported_snapshot(conninfo) as snapshot:
        journal = read_table(spark, "journal", conninfo, snapshot.id, below=snapshot.bound)
        journal.where("group_name = 'billing'").count()

A slice is a range of blocks of one leaf table: the journal has no index on `id`, so slices by id would read every day
for each of them. Comparisons of numbers and equality are pushed down into the COPY; columns are named in an option,
because the API has no column pruning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

from offsets.spark.copying import record_batches
from offsets.spark.errors import SourceError, first_line
from offsets.spark.postgres import Q, connect, use_snapshot, without_secrets
from offsets.spark.tables import ARROW, TABLES

NAME = "kcoord"
SLICE_BLOCKS = 2_000
"""Blocks of 8 KiB in a slice: about 70,000 lines of the journal."""

_COPY = sql.SQL("copy (select {columns} from ({rows}) source where {conditions}) to stdout (format csv)")
_COMPARISONS = {
    api.EqualTo: "=",
    api.GreaterThan: ">",
    api.GreaterThanOrEqual: ">=",
    api.LessThan: "<",
    api.LessThanOrEqual: "<=",
}

Condition = tuple[str, str, Any]
"""Column, operator, value: a value, a tuple of them for `in`, None for `is null` and `is not null`."""


def read_table(
    spark: SparkSession,
    table: str,
    conninfo: str,
    snapshot: str,
    *,
    columns: Sequence[str] | None = None,
    since: int | None = None,
    below: int | None = None,
    slice_blocks: int = SLICE_BLOCKS,
) -> DataFrame:
    """A table of `offsets.spark.tables` as of the exported `snapshot`; lazy, so use it while that is open.

    `columns`: only these; reading fewer is faster. Of the journal, `since` is the first transaction id to include and
    `below` the first to exclude. A failing slice raises SourceError inside Spark's own error; see `session.explained`.
    Raises KeyError for an unknown table or column.
    """
    wanted = list(columns) if columns is not None else list(TABLES[table].columns)
    unknown = set(wanted) - set(TABLES[table].columns)
    if unknown:
        raise KeyError(f"{table} has no column {', '.join(sorted(unknown))}")
    options = {"table": table, "columns": ",".join(wanted), "snapshot": snapshot, "slice_blocks": str(slice_blocks)}
    if since is not None:
        options["since"] = str(since)
    if below is not None:
        options["below"] = str(below)
    return spark.read.format(NAME).options(conninfo=without_secrets(conninfo), **options).load()


@dataclass(frozen=True)
class Slice(api.InputPartition):
    """Blocks from `first` on and before `after` of a leaf table, which had this file when the slices were planned."""

    schema: str
    leaf: str
    filenode: int
    first: int
    after: int


class PostgresSource(api.DataSource):
    """Options: `conninfo` without a password, `snapshot`, `table`, `columns`, `since`, `below`, `slice_blocks`."""

    @classmethod
    def name(cls) -> str:
        """The name used in `spark.read.format`."""
        return NAME

    def schema(self) -> str:
        """The requested columns."""
        kinds = TABLES[self.options["table"]].columns
        return ", ".join(f"`{name}` {kinds[name]}" for name in self.options["columns"].split(","))

    def reader(self, schema: StructType) -> PostgresReader:
        """A reader of these columns."""
        return PostgresReader(dict(self.options), schema.fieldNames())


class PostgresReader(api.DataSourceReader):
    """Plans slices in the driver's planning worker, reads them in the executors' workers."""

    def __init__(self, options: dict[str, str], columns: list[str]) -> None:
        self._options = options
        self._columns = columns
        self._table = TABLES[options["table"]]
        self._conditions: list[Condition] = []
        for option, operator in (("since", ">="), ("below", "<")):
            if option in options:
                self._conditions.append(("xact_id", operator, int(options[option])))

    def pushFilters(self, filters: list[api.Filter]) -> Iterator[api.Filter]:  # noqa: N802 - the API's name
        """Accept the filters that Postgres evaluates like Spark; the rest goes back to Spark."""
        for one in filters:
            condition = self._condition(one)
            if condition is None:
                yield one
            else:
                self._conditions.append(condition)

    def _condition(self, given: api.Filter) -> Condition | None:
        column = ".".join(getattr(given, "attribute", ()))
        kind = self._table.columns.get(column)
        if kind is None:
            return None
        if isinstance(given, api.IsNull):
            return column, "is null", None
        if isinstance(given, api.IsNotNull):
            return column, "is not null", None
        if isinstance(given, api.In) and None not in given.value:
            return column, "in", tuple(given.value)
        operator, value = _COMPARISONS.get(type(given)), getattr(given, "value", None)
        # Postgres orders text by the database's collation, and by their bytes in Spark.
        if operator is None or value is None or (kind == "string" and operator != "="):
            return None
        return column, operator, value

    def partitions(self) -> list[Slice]:
        """The slices, of all leaves."""
        step = int(self._options["slice_blocks"])
        try:
            with connect(self._options["conninfo"]) as connection:
                use_snapshot(connection, self._options["snapshot"])
                leaves = connection.execute(Q.leaves.encode(), {"table": self._table.relation}).fetchall()
        except psycopg.Error as error:
            raise _explained(self._table.relation, error) from None
        # Empty tables get a slice too: given no slices, Spark creates one of its own, which is not ours.
        return [
            Slice(schema, leaf, filenode, first, first + step)
            for leaf, schema, filenode, blocks in leaves
            for first in range(0, max(blocks, 1), step)
        ]

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a slice. Raises SourceError."""
        assert isinstance(partition, Slice)
        leaf = sql.Identifier(partition.schema, partition.leaf)
        types = {name: ARROW[self._table.columns[name]] for name in self._columns}
        try:
            with connect(self._options["conninfo"]) as connection, connection.cursor() as cursor:
                use_snapshot(connection, self._options["snapshot"])
                found = cursor.execute(Q.filenode.encode(), {"table": leaf.as_string(connection)}).fetchone()
                if found is None or found[0] != partition.filenode:
                    raise SourceError(f"{partition.leaf} was rewritten or dropped while it was read: run it again")
                with cursor.copy(self._statement(partition, leaf)) as copy:
                    yield from record_batches(copy, types)
        except psycopg.Error as error:
            raise _explained(partition.leaf, error) from None

    def _statement(self, partition: Slice, leaf: sql.Identifier) -> sql.Composed:
        rows = sql.SQL(getattr(Q, self._options["table"])).format(table=leaf)
        blocks: list[sql.Composable] = [
            sql.SQL("block >= {}::tid").format(sql.Literal(f"({partition.first},0)")),
            sql.SQL("block < {}::tid").format(sql.Literal(f"({partition.after},0)")),
        ]
        return _COPY.format(
            columns=sql.SQL(", ").join(map(sql.Identifier, self._columns)),
            rows=rows,
            conditions=sql.SQL(" and ").join([*blocks, *map(_written, self._conditions)]),
        )


def _written(condition: Condition) -> sql.Composed:
    column, operator, value = condition
    parts: list[sql.Composable] = [sql.Identifier(column), sql.SQL(operator)]
    if isinstance(value, tuple):
        parts.append(sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, value))))
    elif value is not None:
        parts.append(sql.Literal(value))
    return sql.SQL(" ").join(parts)


def _explained(what: str, error: psycopg.Error) -> SourceError:
    """Postgres's error message, without the statement."""
    if isinstance(error, (psycopg.errors.UndefinedObject, psycopg.errors.InvalidParameterValue)):
        return SourceError(f"{what}: the snapshot of the run has expired; raise KCOORD_ARCHIVE_SNAPSHOT_TIMEOUT_MS")
    return SourceError(f"{what} cannot be read: {first_line(error)}")
