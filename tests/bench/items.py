"""Items of a queue beside a plain SKIP LOCKED table, in one run: `python -m tests.bench.items [SECONDS]`.

Acquire and settle, 1, 10 and 100 items a request: in SQL (`kcoord.acquire`, `kcoord.settle`), over HTTP (an acquire
that settles what the one before gave), and by an update and a delete of a table as pgmq has it. The ways take turns, a
moment each, so that other work on the machine meets all of them. Filling is not measured. Compare the ratios.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import psutil
import psycopg
from psycopg.types.json import Jsonb

from tests.support.database import ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import start_server

SIZES = (1, 10, 100)
TURNS = 6
SECONDS = 1.0
STOCK = 2_000_000
"""Items that a turn cannot use up."""

PLAIN = """
create table plain (id bigint generated always as identity primary key, vt timestamptz not null default now(),
                    read_ct int not null default 0, message text not null default 'x');
create index on plain (vt);
"""
FILL = "insert into plain (message) select 'x' from generate_series(1, 200000)"
TAKE = """
update plain set vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1
where id in (select id from plain where vt <= clock_timestamp() order by id limit %s for update skip locked)
returning id
"""
SETTLE = "select kcoord.settle('sql', 'me', %s)"
ACQUIRE = 'select lock, "offset" from kcoord.acquire(%s, %s, %s, %s, %s)'


@dataclass
class Spent:
    """What one way used for so many items of one size."""

    items: int = 0
    cpu: float = 0.0
    wal: int = 0

    @property
    def per_cpu_second(self) -> float:
        return self.items / self.cpu

    @property
    def wal_per_item(self) -> float:
        return self.wal / self.items


def cpu_of(pids: list[int]) -> float:
    """Seconds of these processes and of all that they started, dead ones included."""
    total = 0.0
    for pid in pids:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            times = process.cpu_times()
            total += times.user + times.system
    return total


class Ways:
    """Connections, a share group for SQL and one for HTTP, and the plain table."""

    def __init__(self, conninfo: str, stack: ExitStack) -> None:
        self.database = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        self.other = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        server = stack.enter_context(start_server(conninfo))
        server.wait_ready()
        headers = {"Authorization": f"Bearer {make_token(conninfo)}"}
        self.http = stack.enter_context(httpx.Client(base_url=f"{server.url}/v1/", headers=headers, timeout=30))
        self.post("topics", name="job", partitions=1)
        mark = {"partition": 0, "log_start_offset": 0, "log_end_offset": STOCK}
        self.post("topics/job/watermarks", partitions=[mark])
        for group in ("sql", "http"):
            joined = self.post(
                f"groups/{group}/share-heartbeat", member_id="me", member_epoch=0, subscribed_topic_names=["job"]
            )
        self.epoch = joined["member_epoch"]
        self.database.execute(PLAIN)  # type: ignore[arg-type]
        row = self.database.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        postmaster = psutil.Process(row[0]).parent()
        assert postmaster is not None
        self.processes = {"sql": [postmaster.pid], "http": [postmaster.pid, server.popen.pid]}
        self.processes["plain"] = self.processes["sql"]
        self.settle: list[dict[str, object]] = []

    def post(self, path: str, **body: object) -> dict[str, object]:
        answer = self.http.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, object] = answer.json()
        return found

    def plain(self, size: int) -> int:
        taken = [row[0] for row in self.database.execute(TAKE, [size]).fetchall()]
        self.database.execute("delete from plain where id = any(%s)", [taken])
        return len(taken)

    def sql(self, size: int) -> int:
        rows = self.database.execute(ACQUIRE, ["sql", "me", "job", size, Jsonb({})]).fetchall()
        by_lock = itertools.groupby(rows, key=lambda row: row[0])
        items = [{"lock": lock, "accept": [[offset, offset] for _, offset in found]} for lock, found in by_lock]
        self.database.execute(SETTLE, [Jsonb(items)])
        return len(rows)

    def over_http(self, size: int) -> int:
        answer = self.post(
            "groups/http/acquire", member_id="me", member_epoch=self.epoch, max_records=size, settle=self.settle
        )
        locks = answer["locks"]
        assert isinstance(locks, list)
        self.settle = [{"lock": lock["lock"], "accept": lock["offsets"]} for lock in locks]
        return sum(last - first + 1 for lock in locks for first, last in lock["offsets"])

    def refill(self) -> None:
        self.database.execute("truncate plain")
        self.database.execute(FILL)
        self.database.execute("vacuum analyze plain")
        self.database.execute("checkpoint")

    def wal(self) -> int:
        row = self.other.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        assert row is not None
        return int(row[0])

    def turn(self, way: str, work: Callable[[int], int], size: int, seconds: float, spent: Spent) -> None:
        """One way for a moment."""
        self.http.post(  # the sessions last longer than all turns of a size
            "groups/http/share-heartbeat", json={"member_id": "me", "member_epoch": self.epoch}
        ).raise_for_status()
        cpu, wal, until = cpu_of(self.processes[way]), self.wal(), time.monotonic() + seconds
        while time.monotonic() < until:
            done = work(size)
            assert done == size, f"{way}: {done} of {size} items: the stock is used up"
            spent.items += done
        spent.cpu += cpu_of(self.processes[way]) - cpu
        spent.wal += self.wal() - wal


def measure(seconds: float) -> None:
    """All ways and sizes; prints a line for each."""
    with ephemeral_database() as conninfo, ExitStack() as stack:
        ways = Ways(conninfo, stack)
        named = {"plain": ways.plain, "sql": ways.sql, "http": ways.over_http}
        for size in SIZES:
            found = {way: Spent() for way in named}
            for _ in range(TURNS):
                ways.refill()
                for way, work in named.items():
                    ways.turn(way, work, size, seconds, found[way])
            for way, spent in found.items():
                print(
                    f"{size:4} items a request, {way:5} {spent.items:8,} items  {spent.per_cpu_second:10,.0f} per CPU s"
                    f" ({spent.per_cpu_second / found['plain'].per_cpu_second:6.2f} of plain)"
                    f"  {spent.wal_per_item:8,.1f} bytes of WAL per item"
                    f" ({spent.wal_per_item / found['plain'].wal_per_item:6.3f} of plain)",
                    flush=True,
                )


if __name__ == "__main__":
    measure(float(sys.argv[1]) if sys.argv[1:] else SECONDS)
