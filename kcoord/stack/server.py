"""One server process: `python -m kcoord.stack.server [--fd N]`.

The supervisor binds the address and passes the socket as file descriptor N; without it the process binds
`host` and `port` itself. SIGTERM ends it gracefully.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys

import uvicorn

from kcoord import runtime as runtimes
from kcoord.config import Config
from kcoord.stack.preflight import bind
from kcoord.stack.problem import EXIT_STATUS, StartProblem

APPLICATION = "kcoord.asgi:application"
BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
"""Longer than the usual 60 s of proxies: so the proxy closes idle connections and never writes into a closed one."""

GRACE_SECONDS = 2


class Server(uvicorn.Server):
    """Uvicorn waits for open requests before it tells the application to stop; ours may wait for a minute."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the requests that wait, then stop as uvicorn does."""
        if runtimes.is_running():
            await runtimes.current().drain()
        await super().shutdown(sockets)


def make_server(config: Config) -> Server:
    """The server, with what the settings say."""
    return Server(
        uvicorn.Config(
            APPLICATION,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ws="none",
            log_level=config.str("log.level"),
        )
    )


def main() -> int:
    """Serve until a signal; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kcoord.stack.server", description=__doc__)
    parser.add_argument("--fd", type=int, help="file descriptor of the bound socket")
    arguments = parser.parse_args()
    config = Config.from_env(os.environ)
    try:
        if config.problems:
            raise StartProblem("; ".join(config.problems))
        listener = (
            bind(config.str("host"), config.int("port")) if arguments.fd is None else socket.socket(fileno=arguments.fd)
        )
    except StartProblem as problem:
        print(f"kcoord: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_STATUS
    server = make_server(config)
    server.run(sockets=[listener])
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
