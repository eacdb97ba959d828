"""Heartbeats over HTTP against an echo: `python -m tests.bench.door [SECONDS] [ROUNDS] [WORD]`.

The yardstick is `tests.bench.echo`, a Starlette application on httptools and uvloop that returns what it is sent.
Beside it, in turns and in one run: the service, with heartbeats (a group each), and with a request that needs a token
and no database (no heartbeats at all), which is what HTTP costs. `service, lines` also writes a line for each request.
`nothing` is the way to a heartbeat that costs nothing (`tests.bench.at_once`), also with a request id from the client,
which makes all heads differ. Server, Postgres and load generator share the cores. Medians of ROUNDS (3) of SECONDS (3)
each; times of requests over all rounds. Beside the echo, only jobs with WORD in their names are measured.
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
SERVER = "kcoord.stack.server"
NOTHING_TO_DO = "tests.bench.at_once"
SERVICE: dict[str, dict[str, object]] = {
    "service": {},
    "service, lines": {"KCOORD_LOG_HOT_REQUESTS": 1},
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


def post(path: str, body: bytes, token: str, more: str = "") -> bytes:
    """A request as members send it."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAuthorization: Bearer {token}\r\n{more}"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def beats(token: str, *, named: bool = False) -> list[bytes]:
    """A heartbeat of the member of each group. `named`: each with a request id."""
    return [
        post(f"/v1/groups/bench-{number}/heartbeat", HEARTBEAT, token, f"X-Request-Id: bench-{number}\r\n" * named)
        for number in range(GROUPS)
    ]


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


def prepare(stack: contextlib.ExitStack, word: str) -> list[Job]:
    """Start everything; the jobs, the yardstick first."""
    database = stack.enter_context(ephemeral_database())
    token = make_token(database)
    fill(database, GROUPS)
    requests = {"heartbeats": beats(token), "no heartbeats": [post("/v1/heartbeats", NONE, token)]}
    jobs = [echoing(stack, token)]
    for name, settings in SERVICE.items():
        jobs += serving(stack, database, name, settings, SERVER, requests, word)
    at_once = {"at once": beats(token), "at once, named": beats(token, named=True)}
    jobs += serving(stack, database, "nothing", {}, NOTHING_TO_DO, at_once, word)
    return jobs


def serving(
    stack: contextlib.ExitStack,
    database: str,
    name: str,
    settings: dict[str, object],
    module: str,
    requests: dict[str, list[bytes]],
    word: str,
) -> list[Job]:
    """A server, and the jobs for it whose names contain `word`."""
    wanted = {f"{name}: {kind}": found for kind, found in requests.items() if word in f"{name}: {kind}"}
    if not wanted:
        return []
    server = stack.enter_context(start_server(database, env=settings, module=module))
    server.wait_ready()
    port = server.port or 0
    for found in wanted.values():
        wire.measure(port, found, 1.0, server.pid)
    postgres = wire.postgres_of(database)
    return [Job(kind, port, found, server.pid, postgres) for kind, found in wanted.items()]


def main() -> None:
    """Measure and print one line for each job."""
    given = [*sys.argv[1:], *["3", "3", ""][len(sys.argv) - 1 :]]
    seconds, rounds, word = float(given[0]), float(given[1]), given[2]
    with contextlib.ExitStack() as stack:
        jobs = prepare(stack, word)
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
