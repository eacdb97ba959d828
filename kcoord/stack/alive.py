"""`python -m kcoord.stack.alive`: exit status 0 if the server of these settings is alive, else 1.

For the health check of a container. It asks /livez, not /readyz: what restarts containers that are
not healthy would otherwise restart every server during an outage of Postgres.
"""

from __future__ import annotations

import asyncio
import os
import sys

from kcoord.config import ANY_ADDRESS, Config

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


def main() -> int:
    """Ask once; says on standard error what is wrong."""
    config = Config.from_env(os.environ)
    host, port = config.str("host"), config.int("port")
    status = asyncio.run(status_of(host, port, "/livez"))
    if status == 200:
        return 0
    problem = "does not answer" if status is None else f"answered {status}"
    print(f"kcoord: /livez on port {port} of {host} {problem}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
