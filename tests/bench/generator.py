"""Requests over keep-alive connections, sent as fast as they are answered, by a process of its own.

Plain sockets and epoll, nothing parsed but the status and the length: it shall cost less than what it measures, and its
own CPU time is reported beside the figures.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import socket
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.usage import Spent, Watched

CONNECTIONS = 64
PATIENCE_SECONDS = 60.0
"""How long the last requests may take to be answered."""
CHUNK = 65_536

Requests = Mapping[int, Sequence[bytes]]
"""Port -> what is sent there, in turns; the connections are shared out evenly."""

IsWhole = Callable[[bytes], bool]
Greet = Callable[[socket.socket], None]
"""What a new connection begins with, such as a login."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured. `times`: seconds of each request, in order; `generator`: CPU seconds of the load generator."""

    requests: int
    seconds: float
    spent: Spent
    generator: float
    times: Sequence[float]
    refused: int = 0

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    @property
    def per_cpu_second(self) -> float:
        """Requests per CPU second of server and Postgres."""
        return self.requests / max(self.spent.total, 1e-9)

    @property
    def server_us(self) -> float:
        """CPU microseconds of a request in the servers."""
        return 1e6 * self.spent.server / self.requests

    @property
    def postgres_us(self) -> float:
        """CPU microseconds of a request in Postgres."""
        return 1e6 * self.spent.in_postgres / self.requests

    def quantile(self, part: float) -> float:
        """Seconds that this part of the requests took at most."""
        return self.times[min(len(self.times) - 1, int(len(self.times) * part))]


def http_is_whole(read: bytes) -> bool:
    """A whole response has been read."""
    end = read.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = read[:end].lower()
    at = head.find(b"content-length:")
    return at >= 0 and len(read) - end - 4 >= int(head[at + 15 :].split(b"\r\n", 1)[0])


def http_is_well(read: bytes) -> bool:
    """A success."""
    return read.startswith(b"HTTP/1.1 200 ")


class _Sender:
    """The connections of one generator process."""

    def __init__(
        self, requests: Requests, connections: int, is_whole: IsWhole, is_well: IsWhole, greet: Greet | None
    ) -> None:
        self.is_whole, self.is_well = is_whole, is_well
        self.poll, self.turns = select.epoll(), {}
        self.sockets: dict[int, socket.socket] = {}
        counters = {port: [number, 0] for number, port in enumerate(requests)}
        for number in range(connections):
            port = list(requests)[number % len(requests)]
            connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if greet is not None:
                greet(connection)
            self.sockets[connection.fileno()] = connection
            self.turns[connection.fileno()] = (requests[port], counters[port])
            self.poll.register(connection, select.EPOLLIN)

    def run(self, seconds: float, limit: int) -> tuple[array[float], int, float, bytes]:
        """Seconds of each request, how many were refused, seconds in all, and one of the refusals."""
        times, sent, refused, sample = array("d"), dict.fromkeys(self.sockets, 0.0), 0, b""
        rest: dict[int, bytes] = {}
        clock, read, write, turns = time.perf_counter, os.read, os.write, self.turns
        is_whole, is_well = self.is_whole, self.is_well

        def send(fd: int) -> None:
            requests, counter = turns[fd]
            request = requests[counter[1] % len(requests)]
            counter[1] += 1
            sent[fd] = clock()
            written = write(fd, request)
            if written < len(request):
                self.sockets[fd].sendall(request[written:])

        began = clock()
        end, open_ones, started = began + seconds, 0, 0
        for fd in list(self.sockets)[: limit or None]:
            send(fd)
            open_ones, started = open_ones + 1, started + 1
        while open_ones:
            events = self.poll.poll(0.05)
            if not events and clock() > end + PATIENCE_SECONDS:
                break
            for fd, _ in events:
                data = read(fd, CHUNK)
                assert data, "the server closed a connection"
                if fd in rest:
                    data = rest.pop(fd) + data
                if not is_whole(data):
                    rest[fd] = data
                    continue
                now = clock()
                times.append(now - sent[fd])
                if not is_well(data):
                    refused, sample = refused + 1, data
                if now < end and (not limit or started < limit):
                    send(fd)
                    started += 1
                else:
                    open_ones -= 1
        return times, refused, clock() - began, sample

    def close(self) -> None:
        for connection in self.sockets.values():
            connection.close()


def _generate(pipe: Any, requests: Requests, connections: int, options: Mapping[str, Any]) -> None:
    sender = _Sender(requests, connections, options["is_whole"], options["is_well"], options["greet"])
    pipe.send("ready")
    pipe.recv()
    before = time.process_time()
    times, refused, seconds, sample = sender.run(options["seconds"], options["limit"])
    pipe.send((times.tobytes(), refused, seconds, time.process_time() - before, sample[:1_000]))
    sender.close()


class Generator:
    """A load that runs in a process of its own from `start` until it has lasted its time; `result` waits for it."""

    def __init__(
        self,
        requests: Requests,
        seconds: float,
        connections: int = CONNECTIONS,
        *,
        is_whole: IsWhole = http_is_whole,
        is_well: IsWhole = http_is_well,
        greet: Greet | None = None,
        limit: int = 0,
    ) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        options = {"seconds": seconds, "is_whole": is_whole, "is_well": is_well, "greet": greet, "limit": limit}
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_generate, args=(theirs, requests, connections, options), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def start(self) -> None:
        """Send the first requests now."""
        self._pipe.send("go")

    def result(self, spent: Spent, *, may_fail: bool = False) -> Found:
        """Wait for the end. Fails if a request was not answered with success, unless that may be."""
        packed, refused, seconds, cpu, sample = self._pipe.recv()
        self._process.join()
        times = array("d")
        times.frombytes(packed)
        assert may_fail or not refused, f"{refused} of {len(times)} requests were refused: {sample!r}"
        return Found(len(times), seconds, spent, cpu, sorted(times), refused)

    def stop(self) -> None:
        """End it at once."""
        self._process.terminate()
        self._process.join()
        with contextlib.suppress(OSError):
            self._pipe.close()


def measure(
    requests: Requests,
    seconds: float,
    watched: Watched,
    *,
    connections: int = CONNECTIONS,
    settle: float = 0.0,
    **options: Any,
) -> Found:
    """Send `requests` in turns for `seconds`. `settle`: seconds after the end whose cost counts as well."""
    generator = Generator(requests, seconds, connections, **options)
    before = watched.spent()
    generator.start()
    found = generator.result(Spent(0.0))
    time.sleep(settle)
    spent = watched.spent().since(before)
    return Found(found.requests, found.seconds, spent, found.generator, found.times, found.refused)


def once(requests: Requests, connections: int = CONNECTIONS, **options: Any) -> None:
    """Send each request one time, so that everything is warm. Fails if one is refused."""
    for port, ones in requests.items():
        generator = Generator({port: ones}, 1e9, min(connections, len(ones)), limit=len(ones), **options)
        generator.start()
        generator.result(Spent(0.0))
