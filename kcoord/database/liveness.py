"""Whether Postgres at the other end of a connection answers, and whether it is the server that has not been replaced.

Unresponsive: stopped, or cut off while its connections stay open. statement_timeout is enforced by the server and does
not help then; TCP's timeouts help only on TCP. So a connection that has waited for an answer for a while probes whether
the server answers at all, and is closed if it does not. A slow statement is not affected: the server that executes it
does answer. A commit that waits for a synchronous standby is given up as well, since no time limit of the server ends
that wait. `WatchedConnection` is for the pools, on an event loop; `PatientConnection` is for Django, in threads.

Replaced: each promotion of a standby begins a new timeline. A process that has seen a timeline of a database refuses
servers that are on an older one: they were primaries before, and what they accept is lost. If the address names several
hosts, the process looks at all of them now and then, and so learns of a promotion that its own connections do not show.

It is known only by having been seen: a process whose address names only the old primary, or that cannot reach the new
one, goes on. And two standbys that were promoted at the same time have the same timeline. Fencing is still required.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import psycopg
import structlog
from psycopg import errors as pg
from psycopg.abc import PipelineCommand, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.generators import send
from psycopg.rows import TupleRow

from kcoord.database.sql import queries

log = structlog.get_logger(__name__)

T = TypeVar("T")

UNRESPONSIVE_SECONDS = 4.0
"""How long a connection waits before Postgres is probed."""
ANSWER_SECONDS = 2.5
"""How long the probe waits for an answer."""
HURRIED_SECONDS = 0.5
"""Both, while the process is stopping."""
LOOKS = 10
"""How often connections are looked at in that time: a probe comes late by a tenth of it at most."""

MOST_GATHERED_BYTES = 32_768
"""Of parameters, until statements are sent that could wait for others."""

TCP_BOUNDS = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "connect_timeout": 5,
}
"""libpq parameters that detect a lost peer on TCP even on idle connections. An address may override them."""

_SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")
"""The one message that every Postgres answers without authentication: one byte, whether it supports TLS."""


async def answers(connection: psycopg.AsyncConnection[Any], seconds: float = ANSWER_SECONDS) -> bool:
    """Whether the server at the other end of a connection answers a new one within `seconds`."""
    info = connection.info
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await _dial(info.host, info.hostaddr, info.port)
            try:
                writer.write(_SSL_REQUEST)
                return bool(await reader.read(1))
            finally:
                writer.close()
    except (TimeoutError, OSError, psycopg.Error):
        return False


async def _dial(host: str, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if host.startswith(("/", "@")):
        return await asyncio.open_unix_connection(_socket_path(host, port))
    return await asyncio.open_connection(address or host, port)


def _socket_path(host: str, port: int) -> str:
    path = f"{host}/.s.PGSQL.{port}"
    return "\0" + path[1:] if host.startswith("@") else path


class LivenessWatch:
    """Watches the connections of one process that wait for Postgres.

    One timer looks at all of them, because a request waits a dozen times, each for a moment.
    """

    def __init__(self, waits_for_standby: Callable[[int], Awaitable[bool]]) -> None:
        """`waits_for_standby`: whether the commit of a session, given by its process id, waits for a standby."""
        self._waits_for_standby = waits_for_standby
        self._unresponsive_seconds = UNRESPONSIVE_SECONDS
        self._answer_seconds = ANSWER_SECONDS
        self._since: dict[WatchedConnection, float] = {}
        self._asking: dict[WatchedConnection, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, connection: WatchedConnection) -> None:
        """`connection` waits from now on, until `end`."""
        self._since[connection] = asyncio.get_running_loop().time()
        if self._timer is None:
            self._set_timer()

    def end(self, connection: WatchedConnection) -> None:
        """`connection` waits no more."""
        self._since.pop(connection, None)

    def hurry(self) -> None:
        """The process is stopping: current and future waits are probed soon."""
        self._unresponsive_seconds = self._answer_seconds = HURRIED_SECONDS
        if self._timer is not None:
            self._timer.cancel()
            self._set_timer()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._unresponsive_seconds / LOOKS, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._since:
            self._set_timer()
        late = asyncio.get_running_loop().time() - self._unresponsive_seconds
        for connection, since in tuple(self._since.items()):
            if since <= late and connection not in self._asking:
                task = asyncio.ensure_future(self._ask(connection, since))
                self._asking[connection] = task
                task.add_done_callback(partial(self._asked, connection))

    def _asked(self, connection: WatchedConnection, _task: asyncio.Task[None]) -> None:
        del self._asking[connection]

    async def _ask(self, connection: WatchedConnection, since: float) -> None:
        alive = await answers(connection, self._answer_seconds)
        process_id = connection.info.backend_pid
        stuck = alive and await self._waits_for_standby(process_id)
        if self._since.get(connection) != since:
            return  # the answer arrived meanwhile
        if alive and not stuck:
            self.begin(connection)
            return
        event = "no_synchronous_standby" if stuck else "database_unresponsive"
        log.warning(event, seconds=self._unresponsive_seconds)
        connection.awaits_standby = process_id if stuck else None
        hang_up(connection)


class GatheringPipeline(psycopg.AsyncPipeline):
    """A pipeline whose statements are sent together with the one whose rows are asked for.

    Psycopg sends each statement by itself as soon as it can: a transaction of five took seven sends and twice as many
    polls, and woke Postgres each time. What is large is sent as it comes, because libpq moves all that it has not sent
    yet each time it has sent a part.
    """

    _gathered = 0
    """Bytes of the parameters that were gathered since something was sent."""

    def gather(self, command: bytes) -> None:
        """Send a command without parameters or rows with what comes next."""
        self.pgconn.send_query_params(command, None)
        self.result_queue.append(None)

    def _communicate_gen(self) -> PQGen[None]:
        while self.command_queue:
            command = self.command_queue.popleft()
            command()
            self._gathered += _size_of(command)
            if self._gathered > MOST_GATHERED_BYTES:
                self._gathered = 0
                yield from send(self.pgconn)

    def _sync_gen(self) -> PQGen[None]:
        self._enqueue_sync()
        yield from self._communicate_gen()
        self._gathered = 0
        yield from send(self.pgconn)
        yield from self._fetch_gen(flush=False)

    def _exit_gen(self) -> PQGen[None]:
        yield from self._sync_gen()


def _size_of(command: PipelineCommand) -> int:
    """Bytes of the parameters of a statement, as psycopg queues it."""
    arguments: tuple[Any, ...] = getattr(command, "args", ())
    parameters = arguments[1] if len(arguments) > 1 else None
    if isinstance(parameters, bytes):
        return len(parameters)
    return sum(len(one) for one in parameters or () if one is not None)


class WatchedConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection that stops waiting for an unresponsive server.

    `database_ms`: the database's own clock when it was last read on this connection. `awaits_standby`: it was closed
    because its commit, which is durable on this server, waits for a standby in the session of this process id.
    `timeline`: that of the server when it connected; None: unknown.
    """

    patience: LivenessWatch | None = None
    database_ms: int | None = None
    awaits_standby: int | None = None
    timeline: int | None = None

    @contextlib.asynccontextmanager
    async def pipeline(self) -> AsyncIterator[psycopg.AsyncPipeline]:
        """As in the base class, with a GatheringPipeline."""
        if self._pipeline is None:
            self._pipeline = GatheringPipeline(self)
        async with super().pipeline() as pipeline:
            yield pipeline

    @contextlib.asynccontextmanager
    async def transaction_in_pipeline(self) -> AsyncIterator[None]:
        """A transaction, not within another one: it begins with the first statement whose rows are asked for.

        The commit goes with the last statements, and is awaited. If the block fails, the pool rolls back.
        """
        async with self.pipeline() as pipeline:
            assert isinstance(pipeline, GatheringPipeline)
            pipeline.gather(b"begin")
            yield
            pipeline.gather(b"commit")

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """As in the base class: every exchange with the server goes through here."""
        if self.patience is None:
            return await super().wait(*args, **kwargs)
        self.patience.begin(self)
        try:
            return await super().wait(*args, **kwargs)
        finally:
            self.patience.end(self)


class PatientConnection(psycopg.Connection[TupleRow]):
    """A blocking connection that stops waiting for an unresponsive server.

    `longest_seconds`: how long it waits at most for one answer, even of a server that does answer new connections; a
    server whose disk hangs does that. None: no such limit.
    """

    longest_seconds: float | None = None

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """As in the base class: every exchange with the server goes through here.

        Raises psycopg.OperationalError when the connection was closed because the server does not answer.
        """
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """`gen`, looked after whenever it is resumed; psycopg does that ten times a second without an answer, too."""
        began = heard = time.monotonic()
        try:
            awaited = next(gen)
            while True:
                ready = yield awaited
                now = time.monotonic()
                if ready:
                    heard = now
                elif self.longest_seconds is not None and now - began >= self.longest_seconds:
                    self._give_up(now - began)
                elif now - heard >= UNRESPONSIVE_SECONDS:
                    if not answers_now(self):
                        self._give_up(now - heard)
                    heard = time.monotonic()
                awaited = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _give_up(self, seconds: float) -> None:
        log.warning("database_unresponsive", seconds=round(seconds, 1))
        hang_up(self)


def answers_now(connection: psycopg.Connection[Any], seconds: float = ANSWER_SECONDS) -> bool:
    """As `answers`, for a blocking connection."""
    info = connection.info
    until = time.monotonic() + seconds
    try:
        with _dialled(info.host, info.hostaddr, info.port, seconds) as probe:
            probe.sendall(_SSL_REQUEST)
            probe.settimeout(max(until - time.monotonic(), 0.001))
            return bool(probe.recv(1))
    except (OSError, psycopg.Error):
        return False


def _dialled(host: str, address: str, port: int, seconds: float) -> socket.socket:
    if not host.startswith(("/", "@")):
        return socket.create_connection((address or host, port), timeout=seconds)
    dialled = socket.socket(socket.AF_UNIX)
    dialled.settimeout(seconds)
    try:
        dialled.connect(_socket_path(host, port))
    except OSError:
        dialled.close()
        raise
    return dialled


def hang_up(connection: psycopg.AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    """End a connection from outside: whatever waits on it sees it closed by the other side."""
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as ours:
        ours.shutdown(socket.SHUT_RDWR)


Q = queries("kcoord")

LOOK_SECONDS = 5.0
"""Between two looks at all hosts."""
CONNECT_SECONDS = 2
"""How long to wait for one of them."""


class Origin(NamedTuple):
    """The system identifier of a cluster, which its standbys share, and the timeline of one that accepts writes."""

    system: int
    timeline: int


class Origins:
    """What one process has seen of the servers at `conninfo`."""

    def __init__(self, conninfo: str) -> None:
        self._hosts = _each_host(conninfo)
        self._looking: asyncio.Task[None] | None = None
        self.latest: Origin | None = None
        """The newest one."""
        self.problem = ""
        """Why the last server that was connected to is refused; "": it is not."""
        self.note = ""
        """What else is wrong with the hosts of the address, though this process is served by the right one."""

    def is_past(self, timeline: int | None) -> bool:
        """Whether a connection made on this timeline leads to a server that was taken over from."""
        past = timeline is not None and self.latest is not None and timeline < self.latest.timeline
        if past:
            self.problem = self.older(timeline)
        return past

    async def check(self, connection: psycopg.AsyncConnection[Any]) -> int | None:
        """The timeline of the server of a new connection; None: a standby, or it may not be asked.

        Raises psycopg.OperationalError for a server that must not be used.
        """
        found = await _origin_of(connection)
        if found is None:
            return None
        if self.latest is not None and found.system != self.latest.system:
            self.problem = (
                f"this database is of another cluster (system identifier {found.system}) than before "
                f"({self.latest.system}); if that is meant, restart this process"
            )
            raise psycopg.OperationalError(self.problem)
        if self.is_past(found.timeline):
            raise psycopg.OperationalError(self.problem)
        self.latest, self.problem = found, ""
        return found.timeline

    def older(self, timeline: int | None) -> str:
        """What is said of a server on an older timeline than the newest one."""
        assert self.latest is not None
        return (
            f"this server of Postgres is on timeline {timeline}, but another one was promoted to timeline "
            f"{self.latest.timeline}: stop (fence) this one, what it accepts would be lost"
        )

    async def start(self) -> None:
        """Look at all hosts, if there are several, and again now and then. `refuse_past` goes by it from now on."""
        global _of_process
        _of_process = self
        if len(self._hosts) > 1:
            await self._look()
            self._looking = asyncio.create_task(self._keep_looking(), name="kcoord-origins")

    async def stop(self) -> None:
        """Look no more."""
        global _of_process
        if _of_process is self:
            _of_process = None
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
            self._looking = None

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except Exception:
                log.exception("origins_not_seen")

    async def _look(self) -> None:
        found = await asyncio.gather(*map(_seen_at, self._hosts))
        writers = [origin for origin in found if origin is not None]
        mine = [one for one in writers if self.latest is None or one.system == self.latest.system]
        if not mine:
            return
        newest = max(mine, key=lambda one: one.timeline)
        if self.latest is None or newest.timeline > self.latest.timeline:
            self.latest = newest
        older = sorted({one.timeline for one in mine if one.timeline < self.latest.timeline})
        note = ""
        if older:
            note = (
                f"a server of Postgres on timeline {older[0]} still accepts writes beside that on timeline "
                f"{self.latest.timeline}: stop (fence) it"
            )
            if not self.note:
                log.error("two_primaries", older=older, newest=self.latest.timeline)
        self.note = note


_of_process: Origins | None = None
"""What the pools of this process have seen, while they are open."""


def refuse_past(connection: psycopg.Connection[Any]) -> None:
    """As `Origins.check`, for a new connection of Django in a process whose pools are open; other clusters pass.

    Raises psycopg.OperationalError for a server that was taken over from. The pools are told of a newer one, but not of
    an older one: they may be at the right one.
    """
    seen = _of_process
    if seen is None or seen.latest is None:
        return
    try:
        row = connection.execute(Q.read_origin.encode()).fetchone()
    except pg.InsufficientPrivilege:
        return
    finally:
        connection.rollback()
    assert row is not None
    if row[1] is None or row[0] != seen.latest.system:
        return
    if row[1] < seen.latest.timeline:
        raise psycopg.OperationalError(seen.older(row[1]))
    seen.latest = Origin(*row)


async def _seen_at(conninfo: str) -> Origin | None:
    """None: no server that accepts writes answers there."""
    with contextlib.suppress(psycopg.Error, OSError):
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            return await _origin_of(connection)
    return None


async def _origin_of(connection: psycopg.AsyncConnection[Any]) -> Origin | None:
    try:
        row = await (await connection.execute(Q.read_origin.encode())).fetchone()
    except pg.InsufficientPrivilege:
        return None  # a service that hides its servers has to see to all this itself
    assert row is not None
    return None if row[1] is None else Origin(*row)


def _each_host(conninfo: str) -> Sequence[str]:
    """An address for each host, of whatever kind of server is there."""
    parts = {name: str(value) for name, value in conninfo_to_dict(conninfo).items()}
    lists = {name: parts.pop(name).split(",") for name in ("host", "hostaddr", "port") if name in parts}
    count = max(map(len, lists.values()), default=1)
    parts |= {"target_session_attrs": "any", "connect_timeout": str(CONNECT_SECONDS)}
    return [
        make_conninfo("", **parts, **{name: values[n if len(values) > 1 else 0] for name, values in lists.items()})
        for n in range(count)
    ]
