"""The way of a request from a socket to its answer, no database, a service that is made up, everything else real."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from uvicorn.server import ServerState

from groups.api.routes import OPERATIONS as GROUPS
from groups.core.model.commands import ConsumerHeartbeat, Heartbeat
from groups.core.model.replies import ConsumerHeartbeatReply, HeartbeatReply
from groups.engine.service import GroupService
from kcoord.access.rights import Access, Principal, Rules, digest
from kcoord.config import Config
from kcoord.door.http.body import BodyLimit
from kcoord.door.http.connection import HttpProtocol
from kcoord.door.http.door import DOOR, Operations
from kcoord.door.http.door import Door as ServerDoor
from kcoord.door.http.middleware import NotAnOperation, RequestLog
from kcoord.door.http.peers import HttpPeers, PeerLimits
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.api.routes import OPERATIONS as OFFSETS

OPERATIONS = Operations((*GROUPS, *OFFSETS))
T = TypeVar("T")

SECONDS = 30.0
TOKEN = "kc_known"
FORBIDDEN = "forbidden"
DEADLINE = 1_700_000_012_345
DATE = b"Mon, 23 Nov 2026 10:00:00 GMT"
RULES = Rules([("read", "group", "prefix", ""), ("describe", "topic", "prefix", ""), ("read", "topic", "literal", "t")])


@dataclass(slots=True)
class Service:
    """Answers heartbeats of members whose ids begin with `ok` at once, of `later` when asked to wait, of no others."""

    at_once: list[Any] = field(default_factory=list)
    awaited: list[Any] = field(default_factory=list)
    seen: Callable[[], object] = lambda: None
    """Called during each answer to a classic heartbeat, and to others if they are given at once."""

    def heartbeat(self, command: Heartbeat) -> HeartbeatReply | Awaitable[HeartbeatReply]:
        if not command.member_id.startswith("ok"):
            return self.in_a_task(command)
        self.at_once.append(command)
        self.seen()
        return HeartbeatReply(Error.NONE, DEADLINE)

    def consumer_heartbeat(
        self, command: ConsumerHeartbeat
    ) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        if not command.member_id.startswith("ok") or command.topic_partitions is not None or command.max_wait_ms:
            return self._consumer_heartbeat(command)
        self.at_once.append(command)
        self.seen()
        return ConsumerHeartbeatReply(Error.NONE, command.member_id, command.member_epoch, 5_000, None, DEADLINE)

    async def in_a_task(self, command: Heartbeat) -> HeartbeatReply:
        await asyncio.sleep(0)
        self.awaited.append(command)
        self.seen()
        known = command.member_id.startswith("later")
        return HeartbeatReply(Error.NONE, DEADLINE) if known else HeartbeatReply(Error.UNKNOWN_MEMBER_ID)

    async def _consumer_heartbeat(self, command: ConsumerHeartbeat) -> ConsumerHeartbeatReply:
        await asyncio.sleep(0)
        self.awaited.append(command)
        if not command.member_id.startswith(("ok", "later")):
            return ConsumerHeartbeatReply(Error.UNKNOWN_MEMBER_ID)
        return ConsumerHeartbeatReply(Error.NONE, command.member_id, command.member_epoch, 5_000, None, DEADLINE)


class Tokens(Access):
    """Knows TOKEN, and a token that may read no group; both stay known."""

    async def _look_up(self, key: str) -> tuple[Principal, float]:
        rules = {digest(TOKEN): RULES, digest(FORBIDDEN): Rules([])}.get(key)
        if rules is None:
            raise ProtocolError(Error.SASL_AUTHENTICATION_FAILED, "unknown token; create a token and send it")
        self._cache[key] = Principal(1, "t", rules), time.monotonic() + 3_600
        return self._cache[key]


@dataclass(slots=True)
class Door:
    """A runtime with the application in front of it. `state`: what its lifespan tells the server."""

    config: Config
    service: Service = field(default_factory=Service)
    runtime: Runtime = field(init=False)
    protocols: list[HttpProtocol] = field(default_factory=list)
    peers: HttpPeers = field(init=False)
    app: Any = field(init=False)

    def __post_init__(self) -> None:
        self.runtime = Runtime(self.config, "host=/nowhere")
        self.runtime._services |= {GroupService: self.service, Access: Tokens(self.runtime)}
        self.runtime.db.request_age.measure(1_700_000_000_000)
        self.peers = HttpPeers(PeerLimits.of(self.config), self.config.names("trusted.proxies"))
        middleware = [
            Middleware(RequestLog),
            Middleware(NotAnOperation, operations=OPERATIONS),
            Middleware(BodyLimit, max_bytes=self.config.int("http.max.body.bytes")),
        ]
        self.app = Starlette(middleware=middleware)

    @property
    def tokens(self) -> dict[str, tuple[Principal, float]]:
        """What is remembered of tokens, by digest."""
        return self.runtime.get(Access)._cache

    @property
    def state(self) -> dict[str, Any]:
        return {DOOR: ServerDoor(self.runtime, OPERATIONS)}

    def factory(self) -> Callable[[], HttpProtocol]:
        """Makes the protocols of connections, on the running loop."""
        config = uvicorn.Config(
            self.app, lifespan="off", log_config=None, access_log=False, ws="none", proxy_headers=False
        )
        server = ServerState()
        server.default_headers = [(b"date", DATE)]
        state = self.state

        def connection() -> HttpProtocol:
            self.protocols.append(HttpProtocol(self.peers, config=config, server_state=server, app_state=state))
            return self.protocols[-1]

        return connection

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Callable[[], Awaitable[Client]]]:
        """Serve; gives what connects."""
        runtimes.use(self.runtime)
        server = await asyncio.get_running_loop().create_server(self.factory(), "127.0.0.1", 0)
        clients: list[Client] = []

        async def connect() -> Client:
            streams = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            clients.append(Client(*streams))
            return clients[-1]

        try:
            yield connect
        finally:
            for client in clients:
                client.writer.close()
            server.close()
            runtimes.use(None)


@dataclass(slots=True)
class Client:
    """One connection to it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, *parts: bytes) -> bytes:
        """Send something that is one request, in parts with a turn of the loop between; its answer."""
        for part in parts:
            self.writer.write(part)
            await asyncio.sleep(0)
        return await self.answer(has_body=not parts[0].startswith(b"HEAD"))

    async def answer(self, *, has_body: bool = True) -> bytes:
        """The next answer; what there is of it if the connection ends."""
        async with asyncio.timeout(SECONDS):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"content-length: (\d+)", head)
                return head + await self.reader.readexactly(int(found[1]) if found and has_body else 0)
            except asyncio.IncompleteReadError as error:
                return error.partial
            except ConnectionError:
                return b""

    async def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        async with asyncio.timeout(SECONDS):
            return await self.reader.read()


def run(work: Awaitable[T]) -> T:
    """On the event loop of httptools."""
    with asyncio.Runner(loop_factory=uvicorn.Config("", loop="uvloop").get_loop_factory()) as runner:
        return runner.run(work)  # type: ignore[arg-type]


def heartbeat(
    body: bytes = b'{"member_id":"ok","generation_id":1}',
    *headers: bytes,
    group: bytes = b"g",
    token: str = TOKEN,
    call: bytes = b"heartbeat",
) -> bytes:
    """A request as members send it."""
    return post(b"/v1/groups/" + group + b"/" + call, body, *headers, token=token)


def post(target: bytes, body: bytes, *headers: bytes, token: str = TOKEN) -> bytes:
    """A request with the usual headers and these."""
    lines = [
        b"POST " + target + b" HTTP/1.1",
        b"Host: a",
        b"Authorization: Bearer " + token.encode(),
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def without_ids(answer: bytes) -> bytes:
    """An answer without what differs each time: its request id, in header and body."""
    answer = re.sub(rb"x-request-id: [0-9a-f]{32}\r\n", b"x-request-id: new\r\n", answer)
    return re.sub(rb'"request_id":"[0-9a-f]{32}"', b'"request_id":"new"', answer)


CLOSE = b"Connection: close"


def beat(member: str, *headers: bytes, group: bytes = b"g") -> bytes:
    """A heartbeat; those of members `ok…` are short, those of `later…` are not, and others are errors."""
    return heartbeat(b'{"member_id":"%s","generation_id":1}' % member.encode(), *headers, group=group)


LAST = beat("ok-last", CLOSE)


def all_of(door: Door, *parts: bytes) -> bytes:
    """What comes back for parts, each sent when the server has read the one before, until it closes the connection."""

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            await door.runtime.get(Access).authenticate(TOKEN)
            for part in parts:
                client.writer.write(part)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            return without_ids(await client.rest())

    return run(conversation())


def one_by_one(door: Door, *requests: bytes) -> bytes:
    """The answers to requests on one connection, each sent when the one before was answered."""

    async def conversation() -> bytes:
        async with door.open() as connect:
            client = await connect()
            return b"".join([without_ids(await client.ask(request)) for request in requests])

    return run(conversation())


def statuses(read: bytes) -> list[int]:
    """Those of the answers."""
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d{3})", read)]


async def until(condition: Callable[[], bool]) -> None:
    """Turns of the loop until something is so."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)
