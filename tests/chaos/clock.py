"""Set the clock of the service ahead, without a clock to set.

The service decides by the clock of Postgres, which is that of the machine, and that is not ours to change. A clock that
jumps ahead by d brings every moment that is stored nearer by d. So one transaction, under the locks of all groups,
moves all stored deadlines, and the leases of nodes, back by d; versions grow, so that no process goes on with a copy of
what was before. What processes wait for by their own, monotonic clocks is not moved: such clocks do not jump either.
The times at which something happened are not moved: they are shown to people, and nothing is decided by them.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

MOMENTS = (
    "%deadline",
    "%\\_armed\\_at",
    "wake\\_at",
    "held\\_until",
    "%\\_parked\\_until",
    "expires\\_at",
    "renewed\\_at",
)
"""Names of the columns that are moved."""

TABLES = (
    "groups_group",
    "groups_member",
    "groups_pendingmember",
    "groups_consumermember",
    "groups_coordinatornode",
)

COLUMNS = """
select table_name, column_name from information_schema.columns
where table_schema = current_schema() and table_name = any(%(tables)s) and data_type = 'bigint'
  and column_name like any(%(moments)s)
order by array_position(%(tables)s::text[], table_name::text), column_name
"""

FORGET_COPIES = """
update groups_group set version = version + 1, version_tag = gen_random_uuid()
"""


def set_ahead(conninfo: str, milliseconds: int) -> int:
    """Returns how many columns were moved. Raises psycopg.Error."""
    with psycopg.connect(conninfo, application_name="chaos") as connection:
        connection.execute("select 1 from groups_group order by id for update")
        columns: dict[str, list[str]] = {}
        for table, column in connection.execute(COLUMNS, {"tables": list(TABLES), "moments": list(MOMENTS)}):
            columns.setdefault(table, []).append(column)
        for table, names in columns.items():
            moved = sql.SQL(", ").join(sql.SQL("{0} = {0} - %(ms)s").format(sql.Identifier(name)) for name in names)
            connection.execute(sql.SQL("update {} set {}").format(sql.Identifier(table), moved), {"ms": milliseconds})
        connection.execute(FORGET_COPIES)
        return sum(map(len, columns.values()))
