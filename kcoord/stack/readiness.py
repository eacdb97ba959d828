"""Ask the server whether it is ready, as a load balancer would."""

from __future__ import annotations

import asyncio

ASK_SECONDS = 2.0
PAUSE_SECONDS = 0.1
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - what to ask instead


async def wait_until_ready(host: str, port: int) -> None:
    """Return when GET /readyz answers 200; polls every PAUSE_SECONDS until then, so callers must set a timeout."""
    while await _status(ANY_ADDRESS.get(host, host), port) != 200:  # noqa: ASYNC110 - another process sends no event
        await asyncio.sleep(PAUSE_SECONDS)


async def _status(host: str, port: int) -> int | None:
    """The status of GET /readyz; None if it does not answer yet."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
            finally:
                writer.close()
            return int(line.split()[1])
    except (OSError, TimeoutError, ValueError, IndexError):
        return None
