"""The settings that the SQL function `kcoord.commit_offsets` needs, passed to it after each migration.

The function runs in the database, which has no access to the environment of the service.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.conf import settings
from django.db import connections
from psycopg import sql

log = structlog.get_logger(__name__)

SETTING = "offset.metadata.max.bytes"

REPLACE = sql.SQL(
    "create or replace function kcoord.offset_metadata_max_bytes() returns integer language sql immutable"
    " set search_path = pg_catalog, pg_temp as {}"
)


def tell_metadata_limit(*, using: str, **kwargs: Any) -> None:
    """Set the function's limit from the settings, if the function exists. A receiver of `post_migrate`."""
    wanted = settings.KCOORD.int(SETTING)
    with connections[using].cursor() as cursor:
        cursor.execute("select to_regprocedure('kcoord.offset_metadata_max_bytes()') is not null")
        if not cursor.fetchone()[0]:
            return
        cursor.execute("select kcoord.offset_metadata_max_bytes()")
        known = cursor.fetchone()[0]
        if known != wanted:
            cursor.execute(REPLACE.format(sql.Literal(f"select {wanted:d}")))
            log.info("commit_function_told", setting=SETTING, before=known, now=wanted)
