"""Workers of a queue that wait, finish and die: `python -m tests.bench.workers [WAITING] [FINISHED]`.

Prints the memory of a server for each acquire that waits over HTTP (10,000, of 50 groups), the time from a reported end
to the item at one of them, the storage of finished items (1,000,000, 100 a request), and after what time another
worker has what a killed one had: by the end of its lock, of its session, and when it leaves.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import sys
import time
from contextlib import ExitStack
from typing import Any

import httpx
import psutil
import psycopg

from tests.support.database import ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import start_server

WAITING = 10_000
FINISHED = 1_000_000
GROUPS = 50
ITEMS = 300
"""Whose way to a worker is timed, one after the other."""
LIMITS = {"KCOORD_HTTP_MAX_WAIT_MS": 600_000, "KCOORD_HTTP_MAX_CONNECTIONS": 12_000}
CYCLE = """
with taken as (select lock, min("offset") as first, max("offset") as last
               from kcoord.acquire('finished', 'w', 'finished', 100) group by lock)
select sum(kcoord.settle('finished', 'w', jsonb_build_array(
    jsonb_build_object('lock', lock, 'accept', jsonb_build_array(jsonb_build_array(first, last)))))) from taken
"""
SIZES = """
select c.relname, pg_total_relation_size(c.oid) from pg_class c
where c.relkind = 'r' and (c.relname like 'offsets\\_share%' or c.relname like 'offset\\_commit\\_log%') order by 1
"""


class Poller:
    """A connection that sends one request at a time, as bytes."""

    def __init__(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._head, self._reader, self._writer = head, reader, writer

    async def post(self, path: str, **body: object) -> dict[str, Any]:
        data = json.dumps(body)
        self._writer.write(
            f"POST /v1/{path} HTTP/1.1\r\n{self._head}Content-Length: {len(data)}\r\n\r\n{data}".encode()
        )
        said = await self._reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in said.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        answer = await self._reader.readexactly(length)
        assert said.startswith(b"HTTP/1.1 20"), said + answer
        found: dict[str, Any] = json.loads(answer)
        return found


class Queue:
    """A topic and its group, with one member whose requests wait."""

    def __init__(self, post: httpx.Client, name: str) -> None:
        self.http, self.name, self.end = post, name, 0
        self.post("topics", name=name, partitions=1)
        self.member = self.joined("w")

    def post(self, path: str, **body: object) -> dict[str, Any]:
        answer = self.http.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def joined(self, member_id: str, pause: float = 0.0) -> dict[str, Any]:
        """What a request of a new member names. `pause`: until it has its partitions, which others had before (s)."""
        path, epoch = f"groups/{self.name}/share-heartbeat", 0
        for turn in range(2):
            time.sleep(turn * pause)
            topics = {"subscribed_topic_names": [self.name]} if not epoch else {}
            epoch = self.post(path, member_id=member_id, member_epoch=epoch, **topics)["member_epoch"]
        return {"member_id": member_id, "member_epoch": epoch}

    def mark(self) -> dict[str, Any]:
        self.end += 1
        return {"partitions": [{"partition": 0, "log_start_offset": 0, "log_end_offset": self.end}]}


async def wait(queues: list[Queue], server: psutil.Process, port: int, head: str) -> None:
    """Memory and latency."""

    async def beat() -> None:
        reporter = Poller(head, *await asyncio.open_connection("127.0.0.1", port))
        while True:
            for queue in queues:
                await reporter.post(f"groups/{queue.name}/share-heartbeat", **queue.member)
            await asyncio.sleep(10)

    async def poll(poller: Poller, queue: Queue) -> None:
        settle: list[object] = []
        while True:
            answer = await poller.post(
                f"groups/{queue.name}/acquire", max_records=1, max_wait_ms=600_000, settle=settle, **queue.member
            )
            settle = [{"lock": lock["lock"], "accept": lock["offsets"]} for lock in answer["locks"]]
            if settle:
                queue.given.set_result(time.perf_counter())  # type: ignore[attr-defined]

    start, beats, polls = server.memory_info().rss, asyncio.create_task(beat()), list[asyncio.Task[None]]()
    for each in range(WAITING):
        poller = Poller(head, *await asyncio.open_connection("127.0.0.1", port))
        polls.append(asyncio.create_task(poll(poller, queues[each % GROUPS])))
        await asyncio.sleep(0.1 if each % 100 == 0 else 0)
    parked, metrics = "", queues[0].http.base_url.copy_with(path="/metrics")
    while f'kcoord_parked_requests{{kind="acquire"}} {WAITING:.1f}' not in parked:
        for failed in (task for task in polls if task.done()):
            await failed
        await asyncio.sleep(1)
        parked = (await asyncio.to_thread(queues[0].http.get, metrics)).text
    size = (server.memory_info().rss - start) / WAITING
    print(f"{WAITING} requests wait: {size:,.0f} bytes of the server for each, with its connection", flush=True)
    took = []
    for turn in range(ITEMS):
        queue = queues[turn % GROUPS]
        queue.given = asyncio.get_running_loop().create_future()  # type: ignore[attr-defined]
        began = time.perf_counter()
        await asyncio.to_thread(queue.post, f"topics/{queue.name}/watermarks", **queue.mark())
        took.append(1_000 * (await queue.given - began))  # type: ignore[attr-defined]
    print(
        f"{ITEMS} items, {WAITING} requests wait: from the report to the item p50 {statistics.median(took):.1f}, "
        f"p99 {statistics.quantiles(took, n=100)[98]:.1f}, longest {max(took):.1f} ms, load {os.getloadavg()[0]:.0f}",
        flush=True,
    )
    for task in (beats, *polls):
        task.cancel()


def finish(conninfo: str, queue: Queue) -> None:
    """The storage of finished items."""
    mark = {"partition": 0, "log_start_offset": 0, "log_end_offset": 2 * FINISHED}
    queue.post("topics/finished/watermarks", partitions=[mark])
    with psycopg.connect(conninfo, autocommit=True) as connection:
        before = dict(connection.execute(SIZES).fetchall())
        began = time.perf_counter()
        for _ in range(FINISHED // 100):
            connection.execute(CYCLE)
        seconds = time.perf_counter() - began
        connection.execute("vacuum analyze")
        for name, size in connection.execute(SIZES):
            if size > before[name]:
                print(f"{name}: {size - before[name]:,} bytes more after {FINISHED:,} finished items", flush=True)
        print(f"in {seconds:.0f} s", flush=True)


async def recover(queues: dict[str, Queue], port: int, head: str) -> None:
    """How long after the death of a worker another one has its item."""

    async def one(how: str, queue: Queue) -> None:
        lock_ms = {"lock": 15_000, "session": 60_000, "leave": 60_000}[how]
        dead = Poller(head, *await asyncio.open_connection("127.0.0.1", port))
        other = Poller(head, *await asyncio.open_connection("127.0.0.1", port))
        await asyncio.to_thread(queue.post, f"topics/{queue.name}/watermarks", **queue.mark())
        answer = await dead.post(f"groups/{queue.name}/acquire", lock_ms=lock_ms, **queue.member)
        assert answer["locks"], answer
        heir = await asyncio.to_thread(queue.joined, "heir", 1.5)
        began = time.perf_counter()
        asked = asyncio.create_task(other.post(f"groups/{queue.name}/acquire", max_wait_ms=100_000, **heir))
        if how == "leave":
            await asyncio.sleep(1)
            began = time.perf_counter()
            await dead.post(f"groups/{queue.name}/share-heartbeat", member_id="w", member_epoch=-1)
        while not asked.done():
            await asyncio.wait([asked], timeout=10)
            if not asked.done():
                await dead.post(f"groups/{queue.name}/share-heartbeat", **heir)
        assert asked.result()["locks"], asked.result()
        print(f"recovery by {how} (lock {lock_ms} ms): {time.perf_counter() - began:.3f} s", flush=True)

    await asyncio.gather(*(one(how, queue) for how, queue in queues.items()))


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ephemeral_database() as conninfo, ExitStack() as stack:
        server = stack.enter_context(start_server(conninfo, env=LIMITS))
        server.wait_ready()
        token = make_token(conninfo)
        http = stack.enter_context(
            httpx.Client(base_url=f"{server.url}/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=30)
        )
        port = int(str(server.url).rsplit(":", 1)[1].strip("/"))
        head = f"Host: here\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        asyncio.run(recover({how: Queue(http, f"dead-{how}") for how in ("lock", "session", "leave")}, port, head))
        finish(conninfo, Queue(http, "finished"))
        queues = [Queue(http, f"wait-{number}") for number in range(GROUPS)]
        asyncio.run(wait(queues, psutil.Process(server.popen.pid), port, head))


if __name__ == "__main__":
    WAITING = int(sys.argv[1]) if sys.argv[1:] else WAITING
    FINISHED = int(sys.argv[2]) if sys.argv[2:] else FINISHED
    main()
