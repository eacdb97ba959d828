"""The role that owns the embedded database, and with which every process of the service connects. It is no superuser.

A statement that somebody smuggles in can then change what the service can change, but run no program, read no file of
the server and make no role.
"""

from __future__ import annotations

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kcoord.database.address import EMBEDDED_OWNER
from kcoord.database.lineage import applied_migrations, too_old
from kcoord.stack.preflight import StartProblem

OWNER = EMBEDDED_OWNER
"""Not `kcoord`: a role finds the schema of its own name before `public`, where the tables are."""

DATABASE_OWNER = "select pg_get_userbyid(datdba) from pg_database where datname = %s"

ROLE_IS_RIGHT = """
select coalesce(bool_and(rolcanlogin and not (rolsuper or rolcreaterole or rolcreatedb or rolreplication
                                              or rolbypassrls)), false)
   and coalesce(bool_and(pg_has_role(oid, 'pg_read_all_stats', 'member')), false)
  from pg_roles where rolname = %s
"""
MAKE_ROLE = """
do $$ begin
    if not exists (select from pg_roles where rolname = 'kcoord_owner') then
        create role kcoord_owner;
    end if;
end $$
"""
LIMIT_ROLE = "alter role kcoord_owner login nosuperuser nocreaterole nocreatedb noreplication nobypassrls"
SHOW_CONNECTIONS = "grant pg_read_all_stats to kcoord_owner"
"""The page of the service's health counts the connections of all users."""


def prepare(admin: str, name: str) -> None:
    """Make role and database where they are missing. Raises StartProblem if another role owns the database.

    `admin`: the address of the database `postgres`, as its superuser.
    """
    with psycopg.connect(admin, autocommit=True) as connection:
        if connection.execute(ROLE_IS_RIGHT, [OWNER]).fetchone() != (True,):
            with connection.transaction():
                connection.execute(MAKE_ROLE)
                connection.execute(LIMIT_ROLE)
                connection.execute(SHOW_CONNECTIONS)
        if (database := connection.execute(DATABASE_OWNER, [name]).fetchone()) is None:
            parts = (sql.Identifier(name), sql.Identifier(OWNER))
            connection.execute(sql.SQL("create database {} owner {}").format(*parts))
            return
    if database != (OWNER,):
        with psycopg.connect(make_conninfo(admin, dbname=name)) as connection:
            problem = too_old(applied_migrations(connection))
        raise StartProblem(
            problem
            or f"the database {name} belongs to {database[0]}, not {OWNER}; restore it as "
            "docs/operations/backup.md (Backup and restore) says"
        )
