"""kill -9 of one of two servers while workers of a share group acquire and settle at both, and SIGSTOP of a server, of
Postgres and of a worker: no item is settled twice, none is lost, and none is delivered more often than the limit says.

A worker whose settlement has no answer sends it again, to whichever server lives: what the dead one had committed is
a success once more, and the sink of a worker counts each lock once. Some workers die with what they have.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import httpx
import psycopg
import pytest

from tests.support.http_members import make_token
from tests.support.postgres import own_postgres
from tests.support.processes import ROOT, Running, start_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("kills and freezes servers, Postgres and workers under load"),
]

PARTITIONS = 3
ITEMS = 600
WORKERS = 8
KILLS = 3
LIMIT = 10
FROZEN_S = 3.0
"""Longer than a lock."""
PATIENCE_S = 150.0
SETTINGS = {
    "KCOORD_GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS": 1_000,
    "KCOORD_GROUP_SHARE_RECORD_LOCK_DURATION_MS": 2_000,
    "KCOORD_GROUP_SHARE_DELIVERY_COUNT_LIMIT": LIMIT,
    "KCOORD_GROUP_SHARE_ASSIGNMENT_INTERVAL_MS": 0,
}
ENDS = [{"topic": "job", "partition": number, "end_offset": ITEMS // PARTITIONS} for number in range(PARTITIONS)]

Item = tuple[int, int]
NO_ANSWER = (httpx.TransportError, httpx.RemoteProtocolError)


@dataclass
class Fleet:
    """The servers that are to be asked, and what the workers did. `done`: who settled an item, by lock."""

    servers: list[Running]
    done: dict[Item, set[int]] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    again: int = 0
    said: Path | None = None
    """What a worker with a process of its own has settled, a JSON line each."""

    @property
    def is_over(self) -> bool:
        return len(self.done) == ITEMS

    def listen(self) -> None:
        """Count what the other process said."""
        assert self.said is not None
        for line in self.said.read_text().splitlines():
            partition, offset, lock, count = json.loads(line)
            self.done.setdefault((partition, offset), set()).add(lock)
            self.counts[count] += 0


class Worker:
    """Acquires, and settles with the next acquire or at once. It asks another server whenever one does not answer."""

    def __init__(self, fleet: Fleet, token: str, number: int) -> None:
        self.fleet = fleet
        self.member_id = f"w{number}"
        self.random = Random(number)
        self.client = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=15)

    async def ask(self, path: str, **body: Any) -> httpx.Response:
        """The answer of some server that is not 503."""
        while True:
            server = self.random.choice(self.fleet.servers)
            try:
                response = await self.client.post(
                    f"{server.url}/v1/groups/mailing/{path}", json={"member_id": self.member_id, **body}
                )
            except NO_ANSWER:
                self.fleet.unanswered += 1
            else:
                if response.status_code != 503:
                    return response
            self.fleet.again += 1
            await asyncio.sleep(self.random.uniform(0.01, 0.1))

    async def join(self) -> int:
        answer = await self.ask("share-heartbeat", member_epoch=0, subscribed_topic_names=["job"])
        assert answer.status_code == 200, answer.text
        return int(answer.json()["member_epoch"])

    async def run(self) -> None:
        epoch = await self.join()
        while not self.fleet.is_over:
            answer = await self.ask(
                "acquire", member_epoch=epoch, max_records=self.random.randint(1, 6), max_wait_ms=500, ends=ENDS
            )
            if answer.status_code != 200:
                assert answer.json()["error"] in ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), answer.text
            locks = answer.json().get("locks", [])
            self.fleet.counts.update(lock["delivery_count"] for lock in locks)
            if self.random.random() < 0.95:
                await self.settle(locks)  # else it lost its mind
            epoch = await self.join()
        await self.client.aclose()

    async def settle(self, locks: Sequence[dict[str, Any]]) -> None:
        if not locks:
            return
        entries = []
        for lock in locks:
            kind = "release" if self.random.random() < 0.1 else "accept"
            entries.append({"lock": lock["lock"], kind: lock["offsets"]})
        answer = await self.ask("settle", items=entries)
        assert answer.status_code == 200, answer.text
        for lock, entry, result in zip(locks, entries, answer.json()["items"], strict=True):
            if result["error_code"] == 0 and "accept" in entry:
                for first, last in lock["offsets"]:
                    for offset in range(first, last + 1):
                        self.fleet.done.setdefault((lock["partition"], offset), set()).add(lock["lock"])


def with_topic(database: str) -> str:
    """A token; the topic is there."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
            " values ('job', gen_random_uuid(), %s, '{}', 0)",
            [PARTITIONS],
        )
    return make_token(database)


async def test_each_item_is_settled_once(database: str) -> None:
    token = with_topic(database)
    with ExitStack() as stack:
        servers = [stack.enter_context(start_server(database, env=SETTINGS)) for _ in range(2)]
        for server in servers:
            server.wait_ready()
        fleet = Fleet(servers)
        work = asyncio.gather(*(Worker(fleet, token, number).run() for number in range(WORKERS)))
        async with asyncio.timeout(PATIENCE_S):
            for kill in range(KILLS):
                while len(fleet.done) < (kill + 1) * ITEMS // (KILLS + 1):
                    assert not work.done() or not work.exception(), work.exception()
                    await asyncio.sleep(0.01)
                servers[kill % 2].kill()
                fresh = stack.enter_context(start_server(database, env=SETTINGS))
                await asyncio.to_thread(fresh.wait_ready)
                servers[kill % 2] = fresh
            await work
    check(database, fleet)
    assert fleet.unanswered > 0, "requests were under way when servers died"
    print(f"{fleet.unanswered} requests without an answer, {fleet.again} again; deliveries {dict(fleet.counts)}")


async def alone(token: str, urls: Sequence[str]) -> None:
    """A worker in this process, which says what it has settled; until it is ended."""
    fleet = Fleet([cast(Running, SimpleNamespace(url=url)) for url in urls])
    worker, told = Worker(fleet, token, WORKERS), set[tuple[Item, int]]()
    epoch = await worker.join()
    while True:
        answer = await worker.ask("acquire", member_epoch=epoch, max_records=6, max_wait_ms=500, ends=ENDS)
        locks = answer.json().get("locks", [])
        await worker.settle(locks)
        for (partition, offset), settled in fleet.done.items():
            for lock in settled:
                if ((partition, offset), lock) not in told:
                    told.add(((partition, offset), lock))
                    count = next(one["delivery_count"] for one in locks if one["lock"] == lock)
                    print(json.dumps([partition, offset, lock, count]), flush=True)
        epoch = await worker.join()


PROGRAM = "import asyncio, sys; from tests.processes.test_share_servers_killed import alone; "
PROGRAM += "asyncio.run(alone(sys.argv[1], sys.argv[2:]))"


async def test_each_item_is_settled_once_beside_what_is_frozen(tmp_path: Path) -> None:
    """A worker, a server and Postgres stand still in turn for longer than a lock lasts."""
    with own_postgres() as postgres, ExitStack() as stack:
        database = postgres.conninfo
        token = with_topic(database)
        servers = [stack.enter_context(start_server(database, env=SETTINGS)) for _ in range(2)]
        for server in servers:
            server.wait_ready()
        fleet = Fleet(servers, said=tmp_path / "said")
        command = [sys.executable, "-c", PROGRAM, token, *(server.url for server in servers)]
        with (tmp_path / "said").open("w") as said:
            other = stack.enter_context(subprocess.Popen(command, stdout=said, cwd=ROOT))  # noqa: ASYNC220 - at once
        stack.callback(other.kill)
        async with asyncio.timeout(PATIENCE_S):  # it starts a Python: the others would have done all by then
            while not fleet.said.read_text():
                assert other.poll() is None, "it ended"
                await asyncio.sleep(0.01)
        work = asyncio.gather(*(Worker(fleet, token, number).run() for number in range(WORKERS)))
        faults = [
            lambda: still(other.send_signal),
            lambda: still(servers[0].send),
            postgres.frozen,
        ]
        async with asyncio.timeout(PATIENCE_S):
            for number, fault in enumerate(faults):
                while len(fleet.done) < (number + 1) * ITEMS // 5:
                    assert not work.done() or not work.exception(), work.exception()
                    await asyncio.sleep(0.01)
                    fleet.listen()
                with fault():
                    await asyncio.sleep(FROZEN_S)
            while not fleet.is_over:
                assert not work.done() or not work.exception(), work.exception()
                await asyncio.sleep(0.01)
                fleet.listen()
            await work
        other.kill()
        fleet.listen()
        check(database, fleet)
        assert len(fleet.said.read_text().splitlines()) > 0, "the worker that was frozen settled something"


@contextmanager
def still(send: Callable[[signal.Signals], None]) -> Iterator[None]:
    """In the block a process stands still."""
    send(signal.SIGSTOP)
    try:
        yield
    finally:
        send(signal.SIGCONT)


def check(database: str, fleet: Fleet) -> None:
    twice = {item: locks for item, locks in fleet.done.items() if len(locks) > 1}
    assert not twice, "settled by two locks"
    assert fleet.done.keys() == {(p, offset) for p in range(PARTITIONS) for offset in range(ITEMS // PARTITIONS)}
    assert max(fleet.counts) <= LIMIT
    with psycopg.connect(database) as connection:
        left = "select (select count(*) from offsets_sharelock), (select count(*) from offsets_shareretry)"
        dead = connection.execute("select count(*) from offsets_sharedead").fetchone()
        assert (connection.execute(left).fetchone(), dead) == ((0, 0), (0,))
        ends = connection.execute("select next_offset from offsets_sharepartition").fetchall()
    assert ends == [(ITEMS // PARTITIONS,)] * PARTITIONS
