"""Heartbeats over HTTP against an echo: `python -m tests.bench.door [SECONDS] [ROUNDS]`.

The yardstick is `tests.bench.echo`, a Starlette application on httptools and uvloop that returns what it is sent.
Beside it, in turns and in one run: the service with either transport, with heartbeats (a group each), and with a
request that needs a token and no database (no heartbeats at all), which is what HTTP costs. `h11, lines` also writes a
line for each request, as the service once did. Server, Postgres and load generator share the cores. Medians of ROUNDS
(3) of SECONDS (3) each; times of requests over all rounds.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from tests.bench import wire
from tests.bench.nodes import fill
from tests.support.database import ROOT, ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import free_port, start_server

GROUPS = 1_000
SERVICE = {
    "httptools": {"KCOORD_HTTP_TRANSPORT": "httptools"},
    "h11": {"KCOORD_HTTP_TRANSPORT": "h11"},
    "h11, lines": {"KCOORD_HTTP_TRANSPORT": "h11", "KCOORD_LOG_HOT_REQUESTS": 1},
}
HEARTBEAT = b'{"member_id":"m","generation_id":1}'
NONE = b'{"heartbeats":[]}'


@dataclass(frozen=True, slots=True)
class Job:
    """Something to measure: requests to a server, and the processes whose CPU time counts."""

    name: str
    port: int
    requests: Sequence[bytes]
    server: int
    postgres: Sequence[int] = ()


def post(path: str, body: bytes, token: str) -> bytes:
    """A request as members send it."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def beats(token: str) -> list[bytes]:
    """A heartbeat of the member of each group."""
    return [post(f"/v1/groups/bench-{number}/heartbeat", HEARTBEAT, token) for number in range(GROUPS)]


def echoing(stack: contextlib.ExitStack, token: str) -> Job:
    """The yardstick."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", free_port())))
    arguments = [sys.executable, "-m", "tests.bench.echo", str(listener.fileno())]
    process = subprocess.Popen(arguments, cwd=ROOT, pass_fds=[listener.fileno()])
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    port = listener.getsockname()[1]
    deadline = time.monotonic() + 60
    with httpx.Client() as client:
        while client.post(f"http://127.0.0.1:{port}/v1/groups/g/heartbeat", timeout=60).status_code != 200:
            assert time.monotonic() < deadline
    return Job("echo", port, beats(token), process.pid)


def prepare(stack: contextlib.ExitStack) -> list[Job]:
    """Start everything; the jobs, the yardstick first."""
    database = stack.enter_context(ephemeral_database())
    token = make_token(database)
    fill(database, GROUPS)
    jobs = [echoing(stack, token)]
    for name, settings in SERVICE.items():
        server = stack.enter_context(start_server(database, env=settings))
        server.wait_ready()
        port = server.port or 0
        wire.measure(port, beats(token), 2.0, server.pid)
        postgres = wire.postgres_of(database)
        jobs.append(Job(f"{name}: heartbeats", port, beats(token), server.pid, postgres))
        nothing = [post("/v1/heartbeats", NONE, token)]
        jobs.append(Job(f"{name}: no heartbeats", port, nothing, server.pid, postgres))
    return jobs


def main() -> None:
    """Measure and print one line for each job."""
    seconds, rounds = ([float(argument) for argument in sys.argv[1:]] + [3.0, 3.0][len(sys.argv) - 1 :])[:2]
    with contextlib.ExitStack() as stack:
        jobs = prepare(stack)
        found: dict[str, list[wire.Found]] = {job.name: [] for job in jobs}
        for _ in range(int(rounds)):
            for job in jobs:
                found[job.name].append(wire.measure(job.port, job.requests, seconds, job.server, job.postgres))
    print(f"{'':26} {'req/s':>8} {'to echo':>8} {'per CPU s':>10} {'to echo':>8}", end="")
    print(f" {'server us':>9} {'Postgres us':>11} {'p50 ms':>7} {'p99 ms':>7}")
    base = [statistics.median(getattr(one, kind) for one in found["echo"]) for kind in ("rate", "per_cpu_second")]
    for name, all_of_it in found.items():
        rate = statistics.median(one.rate for one in all_of_it)
        per_cpu = statistics.median(one.per_cpu_second for one in all_of_it)
        times = sorted(each for one in all_of_it for each in one.times)
        half, late = times[len(times) // 2] * 1_000, times[len(times) * 99 // 100] * 1_000
        print(f"{name:26} {rate:8.0f} {rate / base[0]:8.3f} {per_cpu:10.0f} {per_cpu / base[1]:8.3f}", end="")
        server, postgres = (
            statistics.median(getattr(one, kind) / one.requests for one in all_of_it) * 1e6
            for kind in ("server_cpu", "postgres_cpu")
        )
        print(f" {server:9.0f} {postgres:11.0f} {half:7.1f} {late:7.1f}")


if __name__ == "__main__":
    main()
