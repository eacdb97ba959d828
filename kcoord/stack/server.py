"""One server process: `python -m kcoord.stack.server [--fd N] [--own-port P]`.

The supervisor binds the address and passes the socket as file descriptor N, to several servers the same one; without it
the process binds `host` and `port` itself. On port P of `host` this process alone answers. SIGTERM ends it gracefully.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import importlib
import os
import resource
import socket
import sys
import time
from dataclasses import replace
from typing import cast

import structlog
import uvicorn

from kcoord.config import Config
from kcoord.door.http import logs
from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.peers import HttpPeers, PeerLimits
from kcoord.process import runtime as runtimes
from kcoord.process.off_loop import in_slices
from kcoord.stack.preflight import EXIT_STATUS, StartProblem, bind, read_config

log = structlog.get_logger(__name__)


APPLICATION = "kcoord.asgi:application"
BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
"""Longer than the usual 60 s of proxies: so the proxy closes idle connections and never writes to a closed one."""

GRACE_SECONDS = 2
OTHER_FILES = 256
"""File descriptors reserved for purposes other than client connections: Postgres, files being read, the log."""


class Server(uvicorn.Server):
    """Uvicorn waits for open requests before it tells the application to stop; ours may wait for a minute.

    It also watches its `peers`.
    """

    def __init__(self, config: uvicorn.Config, peers: HttpPeers) -> None:
        super().__init__(config)
        self._peers = peers

    async def on_tick(self, counter: int) -> bool:
        """Uvicorn's, ten times a second; closes connections whose peers are overdue."""
        await in_slices(self._peers.looks(time.monotonic()))
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the waiting requests, then stop as uvicorn does."""
        if runtimes.is_running():
            await runtimes.current().drain()
        await super().shutdown(sockets)


def connections_for(wanted: int) -> int:
    """How many of `wanted` connections the process may have; raises its limit of open files if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OTHER_FILES
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed:
        raised = needed if hard == unlimited else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        except (OSError, ValueError) as error:
            log.warning("open_files_not_raised", limit=soft, reason=str(error))
        else:
            soft = raised
    if soft == unlimited or soft >= needed:
        return wanted
    allowed = max(soft - OTHER_FILES, soft // 2)
    log.warning("fewer_connections", wanted=wanted, allowed=allowed, remedy="raise the limit of open files (ulimit -n)")
    return allowed


def make_server(config: Config) -> Server:
    """The server, configured from the settings."""
    limits = PeerLimits.of(config)
    limits = replace(limits, connections=connections_for(limits.connections))
    peers = HttpPeers(limits, config.names("trusted.proxies"))
    return Server(
        uvicorn.Config(
            APPLICATION,
            http=cast(type[asyncio.Protocol], functools.partial(HttpProtocol, peers)),
            loop="auto",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ws="none",
            log_level=config.str("log.level"),
        ),
        peers,
    )


def main() -> int:
    """Serve until a signal; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kcoord.stack.server", description=__doc__)
    parser.add_argument("--fd", type=int, help="file descriptor of the bound socket")
    parser.add_argument("--own-port", type=int, help="a port that no other server has")
    arguments = parser.parse_args()
    try:
        config = read_config(os.environ)
        host = config.str("host")
        first = bind(host, config.int("port")) if arguments.fd is None else socket.socket(fileno=arguments.fd)
        # Bound here, not by the supervisor: while this process is dead the port refuses, and clients try another one.
        own = [] if arguments.own_port is None else [bind(host, arguments.own_port)]
    except StartProblem as problem:
        print(f"kcoord: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_STATUS
    logs.configure(config.str("log.level"))
    return serve(config, first, *own)


def load_application() -> None:
    """Import the application. What is imported stays, so searches for garbage need not visit it, now and later."""
    gc.disable()
    try:
        importlib.import_module(APPLICATION.partition(":")[0])
    finally:
        gc.enable()
        gc.freeze()


def serve(config: Config, *listeners: socket.socket) -> int:
    """Serve on bound sockets until a signal; returns the exit status: 1 if the server did not start."""
    server = make_server(config)
    load_application()
    server.run(sockets=list(listeners))
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
