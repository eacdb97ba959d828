"""Many groups at once: one group is formed over the API, and its rows are copied in Postgres.

Copies are whole: every table that refers to a group is copied, with the columns it has, so they follow changes of the
schema. Members of a classic group may be multiplied, too: then the template has one, and the copies are m-000000,
m-000001, …: as long as each other, as the ids that the service draws are. A connection that several members share would
otherwise see other headers whenever the length of the body changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from groups.core.model.group import partition_of

PARTITIONS = 50
CHUNK = 5_000
COLUMNS = """
select attname from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped and attidentity = '' and attgenerated = ''
order by attnum
"""
REFERRING = """
select conrelid::regclass::text from pg_constraint where contype = 'f' and confrelid = %s::regclass order by 1
"""

BEGINNINGS = (
    """
update groups_member m set session_deadline = c.now + %(timeout_ms)s, last_heartbeat_at = c.now
from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now) c
""",
    """
update groups_consumermember m set session_deadline = c.now + %(timeout_ms)s, session_armed_at = c.now
from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now) c
""",
)

ROW_PER_MEMBER = """
select exists (
    select from pg_index where indrelid = %s::regclass and indisunique and indpred is null
    and (select array_agg(attname::text order by attname) from pg_attribute
         where attrelid = indrelid and attnum = any(indkey)) = '{group_id,member_id}'
)
"""


@dataclass(frozen=True, slots=True)
class Template:
    """A group that has been formed: its members, in order, and the generation or epoch that all have."""

    group_id: str
    members: Sequence[str]
    generation: int


@dataclass(frozen=True, slots=True)
class Population:
    """`groups` copies, named PREFIX-n, of `members` members each."""

    prefix: str
    groups: int
    members: Sequence[str]
    generation: int

    def group(self, number: int) -> str:
        """Its name."""
        return f"{self.prefix}-{number}"

    @property
    def count(self) -> int:
        """Members of all groups."""
        return self.groups * len(self.members)


def copies(
    conninfo: str, template: Template, prefix: str, groups: int, members: int = 0, *, timeout_ms: int = 45_000
) -> Population:
    """Copy the template. `members`: as many in each group, where the template has a single one; 0: as it has.

    `timeout_ms`: the session timeout of the copies of classic members; when their sessions end is copied as it is.
    """
    assert not members or len(template.members) == 1, "only a single member can be multiplied"
    names = [f"{prefix}-{number}" for number in range(groups)]
    with psycopg.connect(conninfo) as connection:
        for start in range(0, groups, CHUNK):
            _copy(connection, template, names[start : start + CHUNK], members, timeout_ms)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("vacuum analyze")
    ids = [f"m-{number:06}" for number in range(members)] if members else template.members
    return Population(prefix, groups, ids, template.generation)


def begin_sessions(conninfo: str, timeout_ms: int) -> None:
    """Every member counts as heard from just now: its session ends after `timeout_ms`, by its row.

    Else the first heartbeat of each would shorten a session, which is decided in a transaction. The wake-ups of groups
    stay where they are, so timers expire nobody.
    """
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in BEGINNINGS:
            connection.execute(statement, {"timeout_ms": timeout_ms})
        connection.execute("vacuum analyze groups_member, groups_consumermember")


def _copy(
    connection: psycopg.Connection[Any], template: Template, names: Sequence[str], members: int, timeout_ms: int
) -> None:
    given = {
        "template": template.group_id,
        "names": list(names),
        "partitions": [partition_of(name, PARTITIONS) for name in names],
        "members": max(members, 1),
        "timeout_ms": timeout_ms,
    }
    changed = {
        "group_id": "n.name",
        "partition": "n.partition",
        "version_tag": "gen_random_uuid()",
        **({"leader_id": "'m-000000'"} if members else {}),
    }
    columns, values = _columns(connection, "groups_group", changed)
    connection.execute(
        sql.SQL(
            "insert into groups_group ({}) select {} from groups_group t, "
            "unnest(%(names)s::text[], %(partitions)s::int[]) n (name, partition) where t.group_id = %(template)s"
        ).format(columns, values),
        given,
    )
    for table in _tables(connection, "groups_group"):
        assert not _tables(connection, table), f"{table} has rows that refer to it: they would not be copied"
        _copy_rows(connection, table, given, is_multiplied=bool(members))


def _copy_rows(connection: psycopg.Connection[Any], table: str, given: dict[str, Any], *, is_multiplied: bool) -> None:
    changed = {
        "group_id": "g.id",
        "session_timeout_ms": "%(timeout_ms)s",
        **({"member_id": "'m-' || lpad(i::text, 6, '0')"} if is_multiplied else {}),
    }
    columns, values = _columns(connection, table, changed)
    row = connection.execute(ROW_PER_MEMBER, [table]).fetchone()
    has_members = is_multiplied and row is not None and row[0]
    connection.execute(
        sql.SQL(
            "insert into {} ({}) select {} from {} t join groups_group o on o.id = t.group_id "
            "cross join groups_group g cross join generate_series(0, {}) i "
            "where o.group_id = %(template)s and g.group_id = any(%(names)s)"
        ).format(
            sql.Identifier(table),
            columns,
            values,
            sql.Identifier(table),
            sql.SQL("%(members)s - 1" if has_members else "0"),
        ),
        given,
    )


def _tables(connection: psycopg.Connection[Any], table: str) -> list[str]:
    return [str(row[0]) for row in connection.execute(REFERRING, [table])]


def _columns(
    connection: psycopg.Connection[Any], table: str, changed: dict[str, str]
) -> tuple[sql.Composed, sql.Composed]:
    names = [str(row[0]) for row in connection.execute(COLUMNS, [table])]
    values = [sql.SQL(changed[name]) if name in changed else sql.Identifier("t", name) for name in names]  # type: ignore[arg-type]
    return sql.SQL(", ").join(map(sql.Identifier, names)), sql.SQL(", ").join(values)
