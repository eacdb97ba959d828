"""The settings that the SQL functions of the schema `kcoord` need, passed to them after each migration.

Functions run in the database, which has no access to the environment of the service.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import structlog
from django.conf import settings
from django.db import connections
from psycopg import sql

from groups.configs import inherited_by_share_groups
from offsets.share.store import composite, rules_of

log = structlog.get_logger(__name__)

SETTING = "offset.metadata.max.bytes"

LIMIT = sql.SQL(
    "create or replace function kcoord.offset_metadata_max_bytes() returns integer language sql immutable"
    " set search_path = pg_catalog, pg_temp as {}"
)
RULES = sql.SQL(
    "create or replace function kcoord.share_defaults() returns kcoord.share_rules language sql immutable"
    " set search_path = pg_catalog, pg_temp as {}"
)


def tell_settings(*, using: str, **kwargs: Any) -> None:
    """Set what the functions know of the settings, if they exist. A receiver of `post_migrate`."""
    config = settings.KCOORD
    rules = rules_of(inherited_by_share_groups(config))
    written = sql.SQL(", ").join(map(sql.Literal, astuple(rules)))
    row = sql.SQL("select row({})::kcoord.share_rules").format(written)
    with connections[using].cursor() as cursor:
        _tell(cursor, "offset_metadata_max_bytes", LIMIT, str(config.int(SETTING)), f"select {config.int(SETTING):d}")
        _tell(cursor, "share_defaults", RULES, composite(rules), row.as_string(cursor.connection))


def _tell(cursor: Any, function: str, replace: sql.SQL, wanted: str, body: str) -> None:
    """Replace the function's body unless it returns `wanted`, as a text, already."""
    cursor.execute("select to_regprocedure(%s) is not null", [f"kcoord.{function}()"])
    if not cursor.fetchone()[0]:
        return
    call = sql.SQL("select {}.{}()::text").format(sql.Identifier("kcoord"), sql.Identifier(function))
    cursor.execute(call)
    known = cursor.fetchone()[0]
    if known != wanted:
        cursor.execute(replace.format(sql.Literal(body)))
        log.info("function_told", function=function, before=known, now=wanted)
