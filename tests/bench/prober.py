"""Heartbeats at a steady rate, each timed from when it was due, by a process of its own.

A server that stalls is so not asked less often: what queues up behind a stall counts with its whole delay.
"""

from __future__ import annotations

import multiprocessing
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.generator import Greet, IsWhole, http_is_well, http_is_whole


@dataclass(frozen=True, slots=True)
class Beats:
    """When each heartbeat was due, by `time.perf_counter`, and seconds until its answer; `lost` were refused."""

    times: Sequence[tuple[float, float]]
    lost: int

    def quantile(self, part: float, *windows: tuple[float, float]) -> float:
        """Seconds that this part of the heartbeats of these windows (from, until) took at most."""
        found = sorted(took for due, took in self.times for first, last in windows if first <= due < last)
        assert found, "no heartbeat in these windows"
        return found[min(len(found) - 1, int(len(found) * part))]


@dataclass(frozen=True, slots=True)
class Door:
    """How answers are read, and what a new connection begins with."""

    is_whole: IsWhole = http_is_whole
    is_well: IsWhole = http_is_well
    greet: Greet | None = None


HTTP = Door()


def _probe(pipe: Any, port: int, requests: Sequence[bytes], pause: float, door: Door) -> None:
    """One connection for each request; they are due in turns. Ends at a word from the other side."""
    poll, sockets = select.epoll(), {}
    poll.register(pipe.fileno(), select.EPOLLIN)
    for request in requests:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if door.greet is not None:
            door.greet(connection)
        poll.register(connection, select.EPOLLIN)
        sockets[connection.fileno()] = (connection, request)
    pipe.send("ready")
    pipe.recv()
    began = time.perf_counter()
    each = len(requests) * pause
    due = {fd: began + number * pause for number, fd in enumerate(sockets)}
    busy: dict[int, bytes] = {}
    times: list[tuple[float, float]] = []
    lost, going = 0, True
    while going or busy:
        now = time.perf_counter()
        for fd, (connection, request) in sockets.items():
            if going and fd not in busy and due[fd] <= now:
                connection.sendall(request)
                busy[fd] = b""
        idle = [due[fd] for fd in sockets if fd not in busy]
        for fd, _ in poll.poll(max(0.0, min([*idle, now + 1.0]) - time.perf_counter())):
            if fd == pipe.fileno():
                going = False
                poll.unregister(fd)
                continue
            data = sockets[fd][0].recv(65_536)
            assert data, "the server closed a connection"
            busy[fd] += data
            if door.is_whole(busy[fd]):
                answer = busy.pop(fd)
                lost += not door.is_well(answer)
                times.append((due[fd], time.perf_counter() - due[fd]))
                due[fd] += each
    pipe.send(Beats(times, lost))


class Prober:
    """Sends each of `requests` in turns, one every `pause` seconds, until it is stopped."""

    def __init__(self, port: int, requests: Sequence[bytes], pause: float, door: Door = HTTP) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_probe, args=(theirs, port, requests, pause, door), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()
        self._pipe.send("go")

    def stop(self) -> Beats:
        """Send no more, and wait for the last answers."""
        self._pipe.send("stop")
        found: Beats = self._pipe.recv()
        self._process.join()
        return found

    def kill(self) -> None:
        """End it at once."""
        self._process.terminate()
        self._process.join()
