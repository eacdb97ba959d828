"""Members that join groups all at once, over HTTP, each on a connection of its own, by a process of its own.

Each member does what the contract says: it asks for an id, joins, syncs (a leader gives everybody partition 0 of a
topic), and sends a heartbeat every second until all groups are Stable; it joins again when it is told to.
"""

from __future__ import annotations

import multiprocessing
import resource
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.bench.generator import http_is_whole

HEARTBEAT_SECONDS = 1.0
RETRY_SECONDS = 0.1
CHUNK = 262_144
ASSIGNMENT = b"AAAAAAABAAF0AAAAAQAAAAD/////"
PROTOCOLS = [{"name": "range", "subscription": {"topics": ["t"]}}]


@dataclass(frozen=True, slots=True)
class Storm:
    """Groups of equal size, named PREFIX-n. Times in ms; `limit` in seconds."""

    port: int
    token: str
    groups: int
    members: int
    prefix: str = "storm"
    rebalance_timeout_ms: int = 60_000
    session_timeout_ms: int = 1_800_000
    limit: float = 120.0


@dataclass(frozen=True, slots=True)
class Stormed:
    """What came of it. Instants of `time.perf_counter`; `synced`: of the last member; None: not within the limit."""

    began: float
    first_joined: float | None
    synced: float | None
    requests: int
    again: int
    generator: float
    one: tuple[tuple[str, ...], int]
    """Member ids and generation of the first group."""


class Member:
    """One of them. `path`: what it asked for last, `asked`: with which bytes."""

    __slots__ = ("asked", "fd", "generation", "group", "id", "path", "read", "synced")

    def __init__(self, fd: int, group: int) -> None:
        self.fd, self.group = fd, group
        self.id, self.generation, self.synced = "", -1, -1
        self.asked, self.path, self.read = b"", "", bytearray()


class Run:
    """The members of a storm over HTTP. Other doors replace how a request is sent and an answer is read."""

    def __init__(self, storm: Storm) -> None:
        self.storm = storm
        self.poll = select.epoll()
        self.sockets: dict[int, socket.socket] = {}
        self.members: dict[int, Member] = {}
        self.later: list[tuple[float, Member]] = []
        self.requests = self.again = 0
        self.first_joined: float | None = None
        self.synced: list[dict[int, int]] = [{} for _ in range(storm.groups)]
        for number in range(storm.groups * storm.members):
            connection = socket.create_connection(("127.0.0.1", storm.port), timeout=storm.limit)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.greet(connection)
            fd = connection.fileno()
            self.sockets[fd], self.members[fd] = connection, Member(fd, number % storm.groups)
            self.poll.register(connection, select.EPOLLIN)

    def greet(self, connection: socket.socket) -> None:
        """What a new connection begins with."""

    def run(self) -> Stormed:
        began, cpu = time.perf_counter(), time.process_time()
        end, finished = began + self.storm.limit, None
        for member in self.members.values():
            self.join(member)
        while finished is None and time.perf_counter() < end:
            for fd, _ in self.poll.poll(0.02):
                self.receive(self.members[fd])
            self.repeat()
            if self.all_synced():
                finished = time.perf_counter()
        ids = tuple(member.id for member in self.members.values() if member.group == 0)
        one = ids, max(member.generation for member in self.members.values() if member.group == 0)
        used = time.process_time() - cpu
        return Stormed(began, self.first_joined, finished, self.requests, self.again, used, one)

    def all_synced(self) -> bool:
        """In every group all members are in the same generation."""
        full = self.storm.members
        return all(len(found) == full for found in self.synced) and all(
            len(set(found.values())) == 1 for found in self.synced
        )

    def send(self, member: Member, path: str, body: dict[str, Any]) -> None:
        content = msgspec.json.encode(body)
        member.path = path
        member.asked = (
            f"POST /v1/groups/{self.storm.prefix}-{member.group}/{path} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self.storm.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        ).encode() + content
        self.write(member)

    def write(self, member: Member) -> None:
        self.requests += 1
        self.sockets[member.fd].sendall(member.asked)

    def join(self, member: Member) -> None:
        body = {
            "member_id": member.id,
            "client_id": "bench",
            "session_timeout_ms": self.storm.session_timeout_ms,
            "rebalance_timeout_ms": self.storm.rebalance_timeout_ms,
            "protocol_type": "consumer",
            "protocols": PROTOCOLS,
            "max_wait_ms": 60_000,
        }
        self.synced[member.group].pop(member.fd, None)
        self.send(member, "join", body)

    def sync(self, member: Member, joined: dict[str, Any]) -> None:
        given = [{"member_id": one["member_id"], "assignment": ASSIGNMENT.decode()} for one in joined["members"]]
        body = {
            "member_id": member.id,
            "generation_id": member.generation,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": given,
            "max_wait_ms": 60_000,
        }
        self.send(member, "sync", body)

    def beat(self, member: Member) -> None:
        self.send(member, "heartbeat", {"member_id": member.id, "generation_id": member.generation})

    def receive(self, member: Member) -> None:
        data = self.sockets[member.fd].recv(CHUNK)
        assert data, "the server closed a connection"
        member.read += data
        if http_is_whole(member.read):
            head, _, body = bytes(member.read).partition(b"\r\n\r\n")
            member.read.clear()
            self.answered(member, int(head[9:12]), msgspec.json.decode(body))

    def answered(self, member: Member, status: int, answer: dict[str, Any]) -> None:
        """Go on as the contract says."""
        if status == 200:
            self.succeeded(member, answer)
        elif answer.get("error") == "MEMBER_ID_REQUIRED":
            member.id = answer["member_id"]
            self.join(member)
        else:
            self.again += 1
            member.id = answer.get("member_id") or ("" if answer.get("error") == "UNKNOWN_MEMBER_ID" else member.id)
            if answer.get("action") == "rejoin":
                self.join(member)
            else:
                self.later.append((time.perf_counter() + RETRY_SECONDS, member))

    def succeeded(self, member: Member, answer: dict[str, Any]) -> None:
        now = time.perf_counter()
        if member.path == "join":
            self.first_joined = self.first_joined or now
            member.id, member.generation = answer["member_id"], answer["generation_id"]
            self.sync(member, answer)
            return
        if member.path == "sync":
            self.synced[member.group][member.fd] = member.generation
            member.path = "heartbeat"
        self.later.append((now + HEARTBEAT_SECONDS, member))

    def repeat(self) -> None:
        """Heartbeats that are due, and requests that a server could not take."""
        if not self.later or self.later[0][0] > time.perf_counter():
            return
        now = time.perf_counter()
        due, self.later = [m for at, m in self.later if at <= now], [one for one in self.later if one[0] > now]
        for member in due:
            if member.path == "heartbeat":
                self.beat(member)
            else:
                self.write(member)

    def close(self) -> None:
        for connection in self.sockets.values():
            connection.close()


def _storm(pipe: Any, storm: Storm, over: Callable[[Storm], Run]) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run = over(storm)
    pipe.send("ready")
    pipe.recv()
    pipe.send(run.run())
    run.close()


class Joining:
    """A storm that goes on; the connections are open when it was made."""

    def __init__(self, storm: Storm, over: Callable[[Storm], Run] = Run) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_storm, args=(theirs, storm, over), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def start(self) -> None:
        """The first joins are sent now."""
        self._pipe.send("go")

    def is_over(self) -> bool:
        """Whether `result` would not wait."""
        return bool(self._pipe.poll())

    def result(self) -> Stormed:
        """Wait for the end."""
        found: Stormed = self._pipe.recv()
        self._process.join()
        return found

    def stop(self) -> None:
        """End it at once."""
        self._process.terminate()
        self._process.join()


def join_all(storm: Storm) -> Stormed:
    """Run it. Fails where it did not end within its limit."""
    joining = Joining(storm)
    joining.start()
    found = joining.result()
    assert found.synced is not None, f"not all synced within {storm.limit:g} s; {found.again} requests were repeated"
    return found
