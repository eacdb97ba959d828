"""Wait until a process has been notified of all that was committed so far."""

from __future__ import annotations

import asyncio
import secrets

from kcoord.database.notifications import CONFIG
from kcoord.process.runtime import Runtime

PATIENCE_SECONDS = 60.0


async def told(runtime: Runtime) -> None:
    """Returns once `runtime` has been notified; it listens. Fails after PATIENCE_SECONDS."""
    marker, seen = secrets.token_hex(8), asyncio.Event()
    runtime.notifications.on(CONFIG, lambda payload: seen.set() if payload == marker else None)
    async with runtime.db.connection() as connection:
        await connection.execute("select pg_notify(%s, %s)", (CONFIG, marker))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await seen.wait()
