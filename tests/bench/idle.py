"""Connections that are open and ask for nothing, held by a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import socket
import time
from typing import Any

from tests.bench.generator import Greet

PATIENCE_SECONDS = 60.0
SPARE_FILES = 500
"""File descriptors that a process needs besides its connections."""


def most_connections() -> int:
    """How many connections the limits of this machine let a process have."""
    return max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE_FILES)


def _hold(pipe: Any, port: int, count: int, greet: Greet) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    began, held = time.perf_counter(), []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        greet(connection)
        held.append(connection)
    pipe.send(time.perf_counter() - began)
    pipe.recv()
    closed = sum(_is_closed(connection) for connection in held)
    pipe.send(closed)
    for connection in held:
        connection.close()


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended it."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Idle:
    """`count` connections, each after `greet`; `seconds`: how long it took to open them."""

    def __init__(self, port: int, count: int, greet: Greet) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_hold, args=(theirs, port, count, greet), daemon=True)
        self._process.start()
        theirs.close()
        self.seconds = float(self._pipe.recv())

    def close(self) -> int:
        """Close them; returns how many the server had closed before."""
        self._pipe.send("close")
        closed = int(self._pipe.recv())
        self._process.join()
        return closed

    def kill(self) -> None:
        """End it at once."""
        self._process.terminate()
        self._process.join()
