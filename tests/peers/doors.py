"""What tests that know no login connect to: ports that log in for them, and what sarama takes for toxiproxy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.wire.client import WireClient

FIRST, COUNT = 29_091, 5
"""The ports of the brokers in sarama's tests, which cannot be chosen."""
CHUNK = 65_536


@asynccontextmanager
async def doors(port: int, token: str) -> AsyncIterator[int]:
    """Open the ports before the gateway on `port`; yields the port of the API of toxiproxy.

    Raises OSError if one of the ports is taken.
    """

    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            async with WireClient(port) as client:
                await client.log_in(token)
                with contextlib.suppress(OSError):
                    await asyncio.wait(
                        [
                            asyncio.create_task(_copied(reader, client.writer)),
                            asyncio.create_task(_copied(client.reader, writer)),
                        ],
                        return_when=asyncio.FIRST_COMPLETED,
                    )
        writer.close()

    async with contextlib.AsyncExitStack() as stack:
        for number in range(FIRST, FIRST + COUNT):
            await stack.enter_async_context(await asyncio.start_server(enter, "127.0.0.1", number))
        toxiproxy = await stack.enter_async_context(await asyncio.start_server(_toxiproxy, "127.0.0.1", 0))
        yield toxiproxy.sockets[0].getsockname()[1]


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()


async def _toxiproxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Every proxy is there, and has nothing to reset: what is left out of the tests breaks connections."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = b"204 No Content\r\n\r\n" if head.startswith(b"POST /reset ") else b"200 OK\r\nContent-Length: 2\r\n\r\n{}"
    writer.write(b"HTTP/1.1 " + status)
    await writer.drain()
    writer.close()
