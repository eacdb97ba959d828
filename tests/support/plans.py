"""How Postgres carries out a statement."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.kcoord.sql.test_statements import numbered


def generic_plan(connection: psycopg.Connection[Any], statement: str, parameters: dict[str, Any]) -> str:
    """How it is carried out by a plan that was made for any values, as a server makes it after a few uses."""
    return executed_plan(connection, statement, parameters, generic=True)


def executed_plan(
    connection: psycopg.Connection[Any], statement: str, parameters: dict[str, Any], *, generic: bool
) -> str:
    """How it was carried out, with the rows of each step. `generic`: by a plan that was made for any values."""
    names: dict[str, None] = {}
    with connection.transaction(force_rollback=True):
        connection.execute(f"set local plan_cache_mode = force_{'generic' if generic else 'custom'}_plan".encode())
        connection.execute(f"prepare it as {numbered(statement)}".encode())
        for piece in statement.split("%(")[1:]:
            names.setdefault(piece.partition(")")[0])
        placeholders = ", ".join(f"%({name})s" for name in names)
        given = psycopg.ClientCursor(connection).mogrify(placeholders.encode(), parameters)
        lines = connection.execute(f"explain (analyze, costs off, timing off) execute it ({given})".encode()).fetchall()
        connection.execute("deallocate it")
    return "\n".join(row[0] for row in lines)
