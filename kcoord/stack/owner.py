"""The role that owns the embedded database, and with which every process of the service connects. It is no superuser.

A statement that somebody smuggles in can then change what the service can change, but run no program, read no file of
the server and make no role. A directory of an older release, whose tables belong to the superuser, is given to it with
all that is in it.
"""

from __future__ import annotations

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kcoord.database.address import EMBEDDED_OWNER

OWNER = EMBEDDED_OWNER
"""Not `kcoord`: a role finds the schema of its own name before `public`, where the tables are."""

HAS_DATABASE = "select 1 from pg_database where datname = %s"

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

EVERYTHING = """
with mine as (select oid from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema')
select format('schema %I', n.nspname) as what, 'pg_namespace'::regclass as classid, n.oid, n.nspowner as owner
  from pg_namespace n where n.oid in (select oid from mine)
union all
select format('%s %s', case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
                                      when 'f' then 'foreign table' when 'c' then 'type' else 'table' end,
              c.oid::regclass), 'pg_class'::regclass, c.oid, c.relowner
  from pg_class c
 where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c') and c.relnamespace in (select oid from mine)
   and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                      and c.relkind = 'S' and d.deptype in ('a', 'i'))
union all
select format('routine %s', p.oid::regprocedure), 'pg_proc'::regclass, p.oid, p.proowner
  from pg_proc p where p.pronamespace in (select oid from mine)
union all
select format('type %s', t.oid::regtype), 'pg_type'::regclass, t.oid, t.typowner
  from pg_type t where t.typtype in ('e', 'd', 'r') and t.typnamespace in (select oid from mine)
"""
"""Everything in the schemas of the database, with its owner. Sequences of columns and array types follow theirs."""

LEFT = f"""
select what from ({EVERYTHING}) found
 where owner = 'postgres'::regrole
   and what <> 'schema public'
   and not exists (select from pg_depend d
                    where d.classid = found.classid and d.objid = found.oid and d.deptype = 'e')
 order by what
"""  # noqa: S608 - no parameter
GIVE = f"""
do $$
declare command text;
begin
    for command in select format('alter %s owner to kcoord_owner', what) from ({LEFT}) given loop
        execute command;
    end loop;
end $$
"""  # noqa: S608 - no parameter
DATABASE_IS_OURS = """
select datdba = 'kcoord_owner'::regrole from pg_database where datname = current_database()
"""


def prepare(admin: str, name: str) -> int:
    """Make role and database where they are missing, and give it what belongs to the superuser.

    `admin`: the address of the database `postgres`, as its superuser. Returns how much was given; an interrupted run
    gives nothing.
    """
    with psycopg.connect(admin, autocommit=True) as connection:
        if connection.execute(ROLE_IS_RIGHT, [OWNER]).fetchone() != (True,):
            with connection.transaction():
                connection.execute(MAKE_ROLE)
                connection.execute(LIMIT_ROLE)
                connection.execute(SHOW_CONNECTIONS)
        if connection.execute(HAS_DATABASE, [name]).fetchone() is None:
            parts = (sql.Identifier(name), sql.Identifier(OWNER))
            connection.execute(sql.SQL("create database {} owner {}").format(*parts))
            return 0
    with psycopg.connect(make_conninfo(admin, dbname=name)) as connection:
        left = len(connection.execute(LEFT).fetchall())
        if left:
            connection.execute(GIVE)
        if connection.execute(DATABASE_IS_OURS).fetchone() != (True,):
            parts = (sql.Identifier(name), sql.Identifier(OWNER))
            connection.execute(sql.SQL("alter database {} owner to {}").format(*parts))
        return left
