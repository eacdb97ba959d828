"""Ask the server whether it is ready, as a load balancer would."""

from __future__ import annotations

import asyncio

from kcoord.config import ANY_ADDRESS

ASK_SECONDS = 2.0
PAUSE_SECONDS = 0.1


async def wait_until_ready(host: str, port: int, path: str = "/readyz") -> None:
    """Return when GET `path` answers 200; polls every PAUSE_SECONDS until then, so callers must set a timeout."""
    while await status_of(host, port, path) != 200:  # noqa: ASYNC110 - another process sends no event
        await asyncio.sleep(PAUSE_SECONDS)


async def status_of(host: str, port: int, path: str) -> int | None:
    """The status of GET `path` of the server that listens at `host`; None if it does not answer."""
    host = ANY_ADDRESS.get(host, host)
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                line = await reader.readline()
            finally:
                writer.close()
            return int(line.split()[1])
    except (OSError, TimeoutError, ValueError, IndexError):
        return None
