"""Commits and fetches over HTTP, with the commit lane and without: `python -m tests.bench.commits [SECONDS] [ROUNDS]`.

In turns and in one run: commits of 5 and of 50 partitions, of a group each, journal included, and fetches of the same.
Server, Postgres and load generator share the cores. Medians of ROUNDS (3) of SECONDS (3) each; times of requests over
all rounds. `Postgres us`: its CPU time for an offset, without what it does later (checkpoints, vacuum).
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
from collections.abc import Sequence

import psycopg

from tests.bench import wire
from tests.bench.door import Job, post
from tests.bench.nodes import fill
from tests.support.database import ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import start_server

GROUPS = 1_000
SIZES = (5, 50)
WARM_SECONDS = 6.0
"""Every group is loaded once."""
WAYS = {
    "normal": {"KCOORD_COMMIT_LANE": "false", "KCOORD_FETCH_LANE": "false"},
    "lane": {"KCOORD_COMMIT_LANE": "true", "KCOORD_FETCH_LANE": "true"},
}


def commits(token: str, size: int) -> list[bytes]:
    """A commit of the member of each group."""
    partitions = [{"partition": number, "committed_offset": 123_456 + number} for number in range(size)]
    body = {"member_id": "m", "generation_id_or_member_epoch": 1}
    body["topics"] = [{"name": "orders", "partitions": partitions}]  # type: ignore[assignment]
    content = json.dumps(body, separators=(",", ":")).encode()
    return [post(f"/v1/groups/bench-{number}/offsets/commit", content, token) for number in range(GROUPS)]


def fetches(token: str, size: int) -> list[bytes]:
    """A fetch of the same."""
    body = {"topics": [{"name": "orders", "partitions": list(range(size))}]}
    content = json.dumps(body, separators=(",", ":")).encode()
    return [post(f"/v1/groups/bench-{number}/offsets/fetch", content, token) for number in range(GROUPS)]


def prepare(stack: contextlib.ExitStack) -> list[tuple[int, Job]]:
    """Start everything; the jobs with the number of partitions of each request."""
    database = stack.enter_context(ephemeral_database())
    token = make_token(database)
    fill(database, GROUPS)
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
            " values ('orders', gen_random_uuid(), %s, '{}', 0)",
            (max(SIZES),),
        )
    jobs = []
    for way, settings in WAYS.items():
        server = stack.enter_context(start_server(database, env=settings))
        server.wait_ready()
        port = server.port or 0
        for size in SIZES:
            wire.measure(port, commits(token, size), WARM_SECONDS, server.pid)
        postgres = wire.postgres_of(database)
        for name, requests in (("commit", commits), ("fetch", fetches)):
            for size in SIZES:
                jobs.append((size, Job(f"{way}: {name} {size}", port, requests(token, size), server.pid, postgres)))
    return jobs


def report(size: int, name: str, found: Sequence[wire.Found]) -> None:
    """One line."""
    rate, per_cpu = (statistics.median(getattr(one, kind) for one in found) for kind in ("rate", "per_cpu_second"))
    requests = sum(one.requests for one in found)
    server = sum(one.server_cpu for one in found) / requests * 1e6
    postgres = sum(one.postgres_cpu for one in found) / requests * 1e6
    times = sorted(time for one in found for time in one.times)
    print(
        f"{name:20} {rate:>8.0f} {rate * size:>10.0f} {per_cpu:>10.0f} {per_cpu * size:>12.0f}"
        f" {server:>10.0f} {postgres:>11.0f} {postgres / size:>11.1f}"
        f" {times[len(times) // 2] * 1000:>7.1f} {times[len(times) * 99 // 100] * 1000:>7.1f}"
    )


def main() -> None:
    """Measure and print one line for each job."""
    seconds, rounds = ([float(argument) for argument in sys.argv[1:]] + [3.0, 3.0][len(sys.argv) - 1 :])[:2]
    with contextlib.ExitStack() as stack:
        jobs = prepare(stack)
        found: dict[str, list[wire.Found]] = {job.name: [] for _, job in jobs}
        for _ in range(int(rounds)):
            for _, job in jobs:
                found[job.name].append(wire.measure(job.port, job.requests, seconds, job.server, job.postgres))
    print(f"{'':20} {'req/s':>8} {'offsets/s':>10} {'req/CPU s':>10} {'offsets/CPU s':>12}", end="")
    print(f" {'server us':>9} {'Postgres us':>11} {'per offset':>11} {'p50 ms':>7} {'p99 ms':>7}")
    for size, job in jobs:
        report(size, job.name, found[job.name])


if __name__ == "__main__":
    main()
