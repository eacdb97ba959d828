"""Which server of Postgres a connection leads to, and whether it is one that others have taken over from.

Each promotion of a standby begins a new timeline. A process that has seen a timeline of a database refuses servers that
are on an older one: they were primaries before, and what they accept is lost. If the address names several hosts, the
process looks at all of them now and then, and so learns of a promotion that its own connections do not show.

It is known only by having been seen: a process whose address names only the old primary, or that cannot reach the new
one, goes on. And two standbys that were promoted at the same time have the same timeline. Fencing is still required.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
import structlog
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kcoord.sql import queries

log = structlog.get_logger(__name__)

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
