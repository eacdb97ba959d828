"""Requests over keep-alive connections, sent as fast as they are answered, by a process of its own.

Plain sockets and epoll, nothing parsed but the status and the length: it shall cost less than what it measures.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

CONNECTIONS = 64
TICKS_PER_SECOND = 100


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured: requests, seconds, CPU seconds of server and Postgres, seconds of each request in order."""

    requests: int
    seconds: float
    server_cpu: float
    postgres_cpu: float
    times: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    @property
    def per_cpu_second(self) -> float:
        """Requests per CPU second of server and Postgres."""
        return self.requests / (self.server_cpu + self.postgres_cpu)


def cpu_of(*pids: int) -> float:
    """CPU seconds that these processes have used."""
    used = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += int(fields[11]) + int(fields[12])
    return used / TICKS_PER_SECOND


def postgres_of(conninfo: str) -> list[int]:
    """The processes of the Postgres that serves there."""
    with psycopg.connect(conninfo) as connection:
        row = connection.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        postmaster = int(Path(f"/proc/{row[0]}/stat").read_text().rpartition(")")[2].split()[1])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *(int(pid) for pid in children)]


def _is_whole(read: bytes) -> bool:
    head, found, body = read.partition(b"\r\n\r\n")
    if not found:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


def _send(port: int, requests: Sequence[bytes], seconds: float, result: Any) -> None:
    poll, sockets = select.epoll(), {}
    for _ in range(CONNECTIONS):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
    times: list[float] = []
    sent, read = dict.fromkeys(sockets, 0.0), dict.fromkeys(sockets, b"")
    number, end = 0, time.perf_counter() + seconds

    def send(fd: int) -> None:
        nonlocal number
        sockets[fd].sendall(requests[number % len(requests)])
        number, sent[fd] = number + 1, time.perf_counter()

    for fd in sockets:
        send(fd)
    while time.perf_counter() < end:
        for fd, _ in poll.poll(0.1):
            read[fd] += sockets[fd].recv(65_536)
            if _is_whole(read[fd]):
                assert read[fd].startswith(b"HTTP/1.1 200 "), read[fd]
                times.append(time.perf_counter() - sent[fd])
                read[fd] = b""
                send(fd)
    result.send(times)


def measure(port: int, requests: Sequence[bytes], seconds: float, server: int, postgres: Sequence[int] = ()) -> Found:
    """Send `requests` in turns for `seconds` over CONNECTIONS connections. Fails if one is not answered with 200."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_send, args=(port, requests, seconds, theirs))
    before = cpu_of(server), cpu_of(*postgres)
    started = time.perf_counter()
    process.start()
    theirs.close()
    times = ours.recv()
    passed = time.perf_counter() - started
    after = cpu_of(server), cpu_of(*postgres)
    process.join()
    return Found(len(times), passed, after[0] - before[0], after[1] - before[1], tuple(sorted(times)))
