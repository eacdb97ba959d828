"""What the connections of the pool are opened with."""

from __future__ import annotations

from psycopg.conninfo import make_conninfo

from kcoord.config import Config
from kcoord.db import Database


async def test_options_of_the_address_are_kept_beside_ours(database: str, config: Config) -> None:
    db = Database(make_conninfo(database, options="-c search_path=here,public -c statement_timeout=1"), config)
    await db.open()
    try:
        async with db.connection() as connection:
            assert await db.value(connection, "show search_path") == "here,public"
            assert await db.value(connection, "show statement_timeout") == "15s"
    finally:
        await db.close()
