"""Items of a queue beside pgmq, procrastinate and a plain SKIP LOCKED table, in one run.

`python -m tests.bench.items [--seconds S] [--workers N] [--procrastinate FOLDER]`. Workers acquire and settle 1, 10
and 100 items a request: in SQL (`kcoord.acquire`, `kcoord.settle`), over HTTP (an acquire that settles what the one
before gave), by pgmq's `read` and `delete`, by procrastinate's `fetch_job` and `finish_job` (it has no batches), and by
an update and a delete of a table. pgmq is installed with the tests; procrastinate is left out unless
`pip install --target FOLDER procrastinate` put it into FOLDER. The ways take turns, a moment each, so that other work
on the machine meets all of them. Filling is not measured. Compare the ratios.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from psycopg.types.json import Jsonb

from tests.support.database import ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import start_server

SIZES = (1, 10, 100)
TURNS = 4
SECONDS = 1.0
WORKERS = 4
PATIENT = {"KCOORD_GROUP_SHARE_SESSION_TIMEOUT_MS": 3_600_000, "KCOORD_GROUP_SHARE_MAX_SESSION_TIMEOUT_MS": 3_600_000}
"""Sessions outlast the run: nobody beats while tables are filled."""
WARM_UP = 6
"""Requests of each worker before a turn: `fill` analyzes the tables, so that all statements are planned again, some of
them five times."""
STOCK = 20_000_000
"""Items of a partition: more than all turns use."""
FILL = {1: 20_000, 10: 60_000, 100: 200_000}
"""Rows for one turn of a table, by items a request; a turn that uses them up ends early."""

PLAIN = """
create table plain (id bigint generated always as identity primary key, vt timestamptz not null default now(),
                    read_ct int not null default 0, message text not null default 'x');
create index on plain (vt);
"""
TAKE = """
update plain set vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1
where id in (select id from plain where vt <= clock_timestamp() order by id limit %s for update skip locked)
returning id
"""
FETCH = "select id from procrastinate_fetch_job_v2(null, %s)"
FINISH = "select procrastinate_finish_job_v1(%s, 'succeeded', false)"
SETTLE = "select kcoord.settle('sql', %s, %s)"
ACQUIRE = 'select lock, "offset" from kcoord.acquire(%s, %s, %s, %s)'

Connection = psycopg.Connection[Any]


@dataclass
class Spent:
    """What one way used for items of one size: seconds of CPU of all processes, those of Postgres, and WAL."""

    items: int = 0
    cpu: float = 0.0
    postgres: float = 0.0
    wal: int = 0

    @property
    def per_cpu_second(self) -> float:
        return self.items / self.cpu

    @property
    def wal_per_item(self) -> float:
        return self.wal / self.items


def cpu_of(process: psutil.Process, *, children: bool = False) -> float:
    """Seconds of a process, and of those that it started."""
    total = 0.0
    for each in (process, *(process.children(recursive=True) if children else ())):
        times = each.cpu_times()
        total += times.user + times.system
    return total


@dataclass
class Worker:
    """One worker, in a thread of its own."""

    name: str
    database: Connection
    http: httpx.Client
    epoch: int = 0
    key: int = 0
    settle: list[dict[str, object]] = field(default_factory=list)

    def post(self, path: str, **body: object) -> dict[str, Any]:
        answer = self.http.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def plain(self, size: int) -> int:
        taken = [row[0] for row in self.database.execute(TAKE, [size]).fetchall()]
        self.database.execute("delete from plain where id = any(%s)", [taken])
        return len(taken)

    def pgmq(self, size: int) -> int:
        taken = [row[0] for row in self.database.execute("select msg_id from pgmq.read('bench', 30, %s)", [size])]
        self.database.execute("select pgmq.delete('bench', %s::bigint[])", [taken])
        return len(taken)

    def procrastinate(self, size: int) -> int:
        for done in range(size):
            row = self.database.execute(FETCH, [self.key]).fetchone()
            if row is None or row[0] is None:
                return done
            self.database.execute(FINISH, [row[0]])
        return size

    def sql(self, size: int) -> int:
        rows = self.database.execute(ACQUIRE, ["sql", self.name, "job", size]).fetchall()
        if rows:
            by_lock = itertools.groupby(rows, key=lambda row: row[0])
            held = [(lock, [offset for _, offset in found]) for lock, found in by_lock]
            # New items of a lock follow each other, and nothing is released here.
            items = [{"lock": lock, "accept": [[offsets[0], offsets[-1]]]} for lock, offsets in held]
            self.database.execute(SETTLE, [self.name, Jsonb(items)])
        return len(rows)

    def over_http(self, size: int) -> int:
        answer = self.post(
            "groups/http/acquire",
            member_id=self.name,
            member_epoch=self.epoch,
            max_records=size,
            max_wait_ms=1_000,
            settle=self.settle,
        )
        locks = answer["locks"]
        self.settle = [{"lock": lock["lock"], "accept": lock["offsets"]} for lock in locks]
        return sum(last - first + 1 for lock in locks for first, last in lock["offsets"])


class Ways:
    """Workers, a share group for SQL and one for HTTP, the plain table, and the peers that are there."""

    def __init__(self, conninfo: str, stack: ExitStack, workers: int, procrastinate: Path | None) -> None:
        self.database = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        server = stack.enter_context(start_server(conninfo, env=PATIENT))
        server.wait_ready()
        headers = {"Authorization": f"Bearer {make_token(conninfo)}"}
        self.workers = [
            Worker(
                f"worker-{number}",
                stack.enter_context(psycopg.connect(conninfo, autocommit=True)),
                stack.enter_context(httpx.Client(base_url=f"{server.url}/v1/", headers=headers, timeout=30)),
            )
            for number in range(workers)
        ]
        first = self.workers[0]
        first.post("topics", name="job", partitions=workers)
        marks = [{"partition": n, "log_start_offset": 0, "log_end_offset": STOCK} for n in range(workers)]
        first.post("topics/job/watermarks", partitions=marks)
        self.pool = stack.enter_context(ThreadPoolExecutor(workers))
        self.join()
        self.database.execute(PLAIN)  # type: ignore[arg-type]
        self.database.execute("select pgmq.create('bench')")
        self.ways: dict[str, Callable[[Worker, int], int]] = {
            "plain": Worker.plain,
            "pgmq": Worker.pgmq,
            "sql": Worker.sql,
            "http": Worker.over_http,
        }
        if procrastinate is None:
            print("procrastinate is left out: name the folder that it is installed in with --procrastinate")
        else:
            schema = procrastinate / "procrastinate" / "sql" / "schema.sql"
            self.database.execute(schema.read_text().encode())
            for worker in self.workers:
                row = self.database.execute("insert into procrastinate_workers default values returning id").fetchone()
                assert row is not None
                worker.key = row[0]
            self.ways["procrastinate"] = Worker.procrastinate
        row = self.database.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        postmaster = psutil.Process(row[0]).parent()
        assert postmaster is not None
        self.postmaster, self.server, self.client = postmaster, psutil.Process(server.popen.pid), psutil.Process()

    def join(self) -> None:
        """Members join, learn of their partitions, which are assigned once a second, and get them."""
        for turn in range(3):
            time.sleep(turn * 1.5)
            for worker in self.workers:
                topics = {"subscribed_topic_names": ["job"]} if not worker.epoch else {}
                path = "groups/http/share-heartbeat"
                answer = worker.post(path, member_id=worker.name, member_epoch=worker.epoch, **topics)
                worker.epoch = answer["member_epoch"]
        topics = {"subscribed_topic_names": ["job"]}
        self.workers[0].post("groups/sql/share-heartbeat", member_id="any", member_epoch=0, **topics)

    def fill(self, size: int) -> None:
        rows = FILL[size]
        self.database.execute("truncate plain")
        self.database.execute("insert into plain (message) select 'x' from generate_series(1, %s)", [rows])
        self.database.execute("truncate pgmq.q_bench")
        self.database.execute(
            "select pgmq.send_batch('bench', array(select '{}'::jsonb from generate_series(1, %s)))", [rows]
        )
        if "procrastinate" in self.ways:
            self.database.execute("truncate procrastinate_jobs cascade")
            self.database.execute(
                "insert into procrastinate_jobs (queue_name, task_name)"
                " select 'default', 'x' from generate_series(1, %s)",
                [rows // 4],
            )
        self.database.execute("vacuum analyze")
        self.database.execute("checkpoint")

    def used(self) -> tuple[float, float, int]:
        row = self.database.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        postgres = cpu_of(self.postmaster, children=True)
        return cpu_of(self.client), postgres, int(row[0])

    def turn(self, way: str, size: int, seconds: float, spent: Spent) -> None:
        """One way for a moment."""
        work = self.ways[way]
        for _ in range(WARM_UP):
            list(self.pool.map(work, self.workers, itertools.repeat(size)))
        (client, postgres, wal), server = self.used(), cpu_of(self.server)
        until = time.monotonic() + seconds

        def run(worker: Worker) -> int:
            items = idle = 0
            while time.monotonic() < until and idle < 50:  # others may hold a partition just now, or nothing is left
                done = work(worker, size)
                items += done
                idle = 0 if done else idle + 1
            return items

        spent.items += sum(self.pool.map(run, self.workers))
        after = self.used()
        spent.postgres += after[1] - postgres
        spent.cpu += after[0] - client + after[1] - postgres
        if way == "http":
            spent.cpu += cpu_of(self.server) - server
        spent.wal += after[2] - wal


def measure(seconds: float, workers: int, procrastinate: Path | None) -> None:
    """All ways and sizes; prints a line for each."""
    with ephemeral_database() as conninfo, ExitStack() as stack:
        ways = Ways(conninfo, stack, workers, procrastinate)
        for size in SIZES:
            found = {way: Spent() for way in ways.ways}
            for _ in range(TURNS):
                ways.fill(size)
                for way in ways.ways:
                    ways.turn(way, size, seconds, found[way])
            load = os.getloadavg()[0]
            for way, spent in found.items():
                print(
                    f"{size:4} items a request, {way:13} {spent.items:8,} items  {spent.per_cpu_second:9,.0f} per CPU s"
                    f"  {spent.items / spent.postgres:9,.0f} per CPU s of Postgres"
                    f"  {spent.wal_per_item:8,.1f} bytes of WAL per item  (load {load:.0f})",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each turn")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--procrastinate", type=Path, help="the folder that it is installed in")
    given = parser.parse_args()
    measure(given.seconds, given.workers, given.procrastinate)
