"""Five times what a server can do of one class of requests, while members of other groups go on.

`python -m tests.bench.overload [SECONDS] [CLASS ...]`; tests/processes/test_overload.py does it for a few seconds.

The senders are processes with plain sockets and requests that were made before; a request is sent when it is due,
whether the one before on its connection was answered or not (pipelining), until DEPTH of them are not answered. What is
due then is `held`: as much as the server does not read waits in the sockets of its clients.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import select
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import psycopg

from tests.bench.generator import Greet, http_is_whole, measure
from tests.bench.kafka import answers, frames
from tests.bench.requests import request
from tests.bench.usage import Watched
from tests.support.database import ephemeral_database
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import Running, free_port, start_server

TIMES = 5
SENDERS = 2
CONNECTIONS = 600
"""Of all senders."""
DEPTH = 8
QUEUE, BIG_QUEUE = 200, 16
"""http.max.queue and http.max.big.queue: so low that one small machine can fill them."""
MEASURED_SECONDS = 2.0
RECOVERED_S = 0.5
GROUPS = 32
MEMBERS = 10
SESSION_MS = 10_000
PAUSE_SECONDS = 1.0
LONGEST_SESSION_MS = 1_800_000
PATIENCE = 60.0
SETTINGS = {
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
    "KCOORD_HTTP_MAX_QUEUE": QUEUE,
    "KCOORD_HTTP_MAX_BIG_QUEUE": BIG_QUEUE,
}
REMOVED = """
select count(*) from groups_event where kind in ('member_expired', 'member_removed', 'member_left')
and group_name like 'steady-%'
"""


@dataclass(frozen=True, slots=True)
class Flood:
    """What the senders of one class did. `rate`: per second that were due; `answered`: by status, 0 over the wire."""

    due: int
    held: int
    answered: dict[int, int]
    retry_after: int
    seconds: float


@dataclass
class Figures:
    """`capacity`: requests per second, of 64 connections. Of the members: `longest_s` without an answer, by kind;
    `refused`: answers of 503; `others`: what else they were told. `recovered_s`: after the flood, until a member's
    heartbeat and commit took less than RECOVERED_S each.
    """

    name: str
    capacity: float = 0.0
    offered: float = 0.0
    flood: Flood | None = None
    longest_s: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    others: list[Any] = field(default_factory=list)
    removed: int = 0
    unready: int = 0
    recovered_s: float = 0.0


# The senders


def _send(
    pipe: Any, port: int, own: Sequence[bytes], connections: int, rate: float, seconds: float, greet: Greet | None
) -> None:
    """Requests of one sender, when they are due."""
    sockets, poll = [], select.epoll()
    for _ in range(connections):
        one = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        if greet is not None:
            greet(one)
        one.setblocking(False)
        sockets.append(one)
    by_fd = {one.fileno(): number for number, one in enumerate(sockets)}
    for one in sockets:
        poll.register(one, select.EPOLLIN)
    waiting, rest, out = [0] * connections, [b""] * connections, [b""] * connections
    counted: dict[int, int] = {}
    due = held = retry_after = at = 0
    pipe.send("ready")
    pipe.recv()
    began = time.monotonic()
    while True:
        now = time.monotonic() - began
        if now >= seconds:
            break
        while due < now * rate:
            number = due % connections
            due += 1
            if waiting[number] >= DEPTH:
                held += 1
                continue
            at += 1
            waiting[number] += 1
            out[number] += own[at % len(own)]
            out[number] = _write(sockets[number], out[number])
        for fd, _ in poll.poll(0.002):
            number = by_fd[fd]
            data = sockets[number].recv(65_536)
            if not data:
                raise AssertionError("the server closed a connection")
            rest[number], found, seen = _count(rest[number] + data, counted, http=greet is None)
            waiting[number] -= found
            retry_after += seen
            if out[number]:
                out[number] = _write(sockets[number], out[number])
    for one in sockets:
        one.close()
    pipe.send((due, held, counted, retry_after, time.monotonic() - began))


def _write(to: socket.socket, data: bytes) -> bytes:
    try:
        return data[to.send(data) :]
    except BlockingIOError:
        return data


def _count(read: bytes, counted: dict[int, int], *, http: bool) -> tuple[bytes, int, int]:
    """What is left of the bytes, how many answers were in them, and how many of these had Retry-After."""
    found = seen = start = 0
    while True:
        if http:
            end = read.find(b"\r\n\r\n", start)
            if end < 0:
                break
            head = read[start:end].lower()
            stop = end + 4 + int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            status = int(head[9:12])
            again = b"\r\nretry-after:" in head
        else:
            stop, status, again = start + 4 + int.from_bytes(read[start : start + 4], "big"), 0, False
            if len(read) < start + 4:
                break
        if stop > len(read):
            break
        counted[status] = counted.get(status, 0) + 1
        found, seen, start = found + 1, seen + again, stop
    return read[start:], found, seen


async def flood(
    port: int, own: Sequence[bytes], rate: float, seconds: float, greet: Greet | None, connections: int
) -> Flood:
    """All senders of one class, for a while; then they go away, whatever is not answered."""
    context = multiprocessing.get_context("fork")
    ends = []
    for number in range(SENDERS):
        pipe, theirs = multiprocessing.Pipe()
        options = (theirs, port, own[number::SENDERS], connections // SENDERS, rate / SENDERS, seconds, greet)
        process = context.Process(target=_send, args=options, daemon=True)
        process.start()
        theirs.close()
        ends.append((pipe, process))
    for pipe, _ in ends:
        await asyncio.to_thread(pipe.recv)
    for pipe, _ in ends:
        pipe.send("go")
    found = [await asyncio.to_thread(pipe.recv) for pipe, _ in ends]
    for _, process in ends:
        process.join()
    answered: dict[int, int] = {}
    for one in found:
        for status, count in one[2].items():
            answered[status] = answered.get(status, 0) + count
    totals = [sum(one[place] for one in found) for place in (0, 1, 3)]
    return Flood(totals[0], totals[1], answered, totals[2], max(one[4] for one in found))


# The members


class Steady:
    """A member that sends heartbeats and commits, and notes what it is told."""

    def __init__(self, member: HttpMember, figures: Figures) -> None:
        self.member, self.figures, self.offset, self.ended = member, figures, 0, False

    async def run(self) -> None:
        """Until it is ended; heartbeats do not wait for commits, as in clients of Kafka."""

        async def repeat(kind: str) -> None:
            while not self.ended:
                await self.once(kind)
                await asyncio.sleep(PAUSE_SECONDS)

        await asyncio.gather(repeat("heartbeat"), repeat("commit"))

    async def once(self, *kinds: str) -> float:
        """One request of each kind; returns the longest of their times (s), at least RECOVERED_S if one is refused."""
        longest, figures, member = 0.0, self.figures, self.member
        for kind in kinds:
            began = time.monotonic()
            self.offset += 1
            status, said = await (member.heartbeat() if kind == "heartbeat" else member.commit(0, self.offset))
            took = time.monotonic() - began
            figures.asked += 1
            figures.longest_s[kind] = max(figures.longest_s.get(kind, 0.0), took)
            if status == 503:
                figures.refused[kind] = figures.refused.get(kind, 0) + 1
                took = RECOVERED_S
            elif status != 200:
                figures.others.append((status, said))
            longest = max(longest, took)
        return longest


@dataclass(frozen=True, slots=True)
class Place:
    """A server with groups to flood."""

    conninfo: str
    server: Running
    kafka_port: int
    token: str
    senders: Sequence[HttpMember]

    def load(self, name: str) -> tuple[int, list[bytes], Greet | None]:
        """Port, requests and greeting of a class."""
        wire = partial(answers.log_in, token=self.token)
        at = self.server.port or 0
        who = self.senders
        if name == "wire heartbeats":
            made = [frames.heartbeat(one.group_id, one.member_id, one.generation_id) for one in who]
            return self.kafka_port, made, wire
        if name == "wire commits":
            made = [frames.offset_commit(one.group_id, one.member_id, one.generation_id, "t", range(5)) for one in who]
            return self.kafka_port, made, wire
        return at, [self._http(name, number, one) for number in range(200) for one in who], None

    def _http(self, name: str, number: int, one: HttpMember) -> bytes:
        path, who = f"/v1/groups/{one.group_id}", {"member_id": one.member_id}
        if name == "heartbeats":
            return request("POST", f"{path}/heartbeat", self.token, {**who, "generation_id": one.generation_id})
        if name == "commits":
            offsets = [{"partition": partition, "committed_offset": 9} for partition in range(5)]
            body = {
                "generation_id_or_member_epoch": one.generation_id,
                "topics": [{"name": "t", "partitions": offsets}],
            }
            return request("POST", f"{path}/offsets/commit", self.token, {**who, **body})
        if name == "fetches":
            return request("POST", f"{path}/offsets/fetch", self.token, {"topics": None})
        if name == "lists":
            return request("GET", "/v1/groups?limit=20", self.token)
        assert name == "joins", name
        body = {"member_id": f"m-{number}", "member_epoch": 0, "subscribed_topic_names": ["t"], "topic_partitions": []}
        body["rebalance_timeout_ms"] = 60_000
        return request("POST", f"/v1/groups/new-{number}-{one.group_id}/consumer-heartbeat", self.token, body)


CLASSES = ("heartbeats", "wire heartbeats", "commits", "wire commits", "joins", "fetches", "lists")


def capacity(place: Place, name: str) -> float:
    """Requests per second that are answered, of 64 connections with one request each."""
    port, made, greet = place.load(name)
    whole = {"is_whole": http_is_whole} if greet is None else {"is_whole": answers.is_whole, "is_well": lambda _: True}
    few = BIG_QUEUE // 2 if name == "lists" else 64
    found = measure({port: made}, MEASURED_SECONDS, Watched([place.server.pid]), greet=greet, connections=few, **whole)
    return found.rate


async def overload(place: Place, client: httpx.AsyncClient, name: str, seconds: float) -> Figures:
    """Measure one class, send five times as much, and see what becomes of members."""
    figures = Figures(name)
    crew = []
    async with asyncio.TaskGroup() as tasks:
        for number in range(MEMBERS):
            member = HttpMember(client, [place.server.url], f"steady-{number}", SESSION_MS)
            await member.become_stable()
            crew.append(Steady(member, figures))
            for _ in range(2):  # the first of a generation are decided one by one
                await crew[-1].once("heartbeat", "commit")
            tasks.create_task(crew[-1].run())  # at once: all of this may take longer than a session
        figures.capacity = await asyncio.to_thread(capacity, place, name)
        figures.offered = TIMES * figures.capacity
        figures.longest_s, figures.asked, figures.refused = {}, 0, {}
        port, made, greet = place.load(name)
        probe = tasks.create_task(_probe(client, place, figures))
        figures.flood = await flood(port, made, figures.offered, seconds, greet, CONNECTIONS)
        ended = time.monotonic()
        last = Steady(crew[0].member, Figures("after"))
        while await last.once("heartbeat", "commit") >= RECOVERED_S:
            assert time.monotonic() < ended + PATIENCE, f"not recovered: {figures}"
        figures.recovered_s = time.monotonic() - ended
        for one in crew:
            one.ended = True
        probe.cancel()
    with psycopg.connect(place.conninfo) as connection:
        row = connection.execute(REMOVED).fetchone()
        figures.removed = 0 if row is None else int(row[0])
    return figures


async def _probe(client: httpx.AsyncClient, place: Place, figures: Figures) -> None:
    """Counts how often /readyz is not 200, or only says that there is no Celery."""
    while True:
        answer = await client.get(f"{place.server.url}/readyz")
        failed = {name for name, check in answer.json()["checks"].items() if not check["ok"]}
        figures.unready += bool(failed - {"timers"})
        await asyncio.sleep(0.5)


async def run(conninfo: str, name: str, seconds: float) -> Figures:
    """One class, at a server and a database of its own."""
    token = make_token(conninfo)
    headers = {"Authorization": f"Bearer {token}"}
    port = free_port()
    env = {**SETTINGS, "KCOORD_KAFKA_PORT": port}
    limits = httpx.Limits(max_connections=None)
    with start_server(conninfo, env=env) as server:
        await asyncio.to_thread(server.wait_ready)
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, limits=limits) as client:
            await client.post(f"{server.url}/v1/topics", json={"name": "t", "partitions": 5})
            who = [HttpMember(client, [server.url], f"sender-{n}", LONGEST_SESSION_MS) for n in range(GROUPS)]
            await asyncio.gather(*(one.become_stable() for one in who))
            return await overload(Place(conninfo, server, port, token, who), client, name, seconds)


def main() -> int:
    """Print a line for each class."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    for name in sys.argv[2:] or CLASSES:
        with ephemeral_database() as conninfo:
            print(asyncio.run(run(conninfo, name, seconds)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
