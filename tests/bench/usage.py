"""CPU time, memory and WAL of servers and of Postgres, read from /proc and from Postgres itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
BACKENDS, OTHERS, ENDED = "backends", "others", "ended"
KINDS = {"checkpointer": "checkpointer", "walwriter": "WAL writer", "autovacuum": "autovacuum"}
"""First word of a Postgres process's title -> what we call it; other auxiliary processes are OTHERS."""
TOLD = (
    "kcoord_sessions_flushed_total",
    "kcoord_commit_batch_commits_count",
    "kcoord_fetch_batch_fetches_count",
)
"""Of the metrics of a server, in the order of the last fields of `Spent`."""
AUXILIARY = (*KINDS, "background", "io", "logical", "archiver", "startup", "walreceiver", "slotsync")


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat says. Seconds of CPU of the process, and of its children that ended."""

    parent: int
    own: float
    ended: float


def parse_stat(text: str) -> Stat:
    """Read the line; the name, which may hold blanks and parentheses, ends with the last one."""
    fields = text.rpartition(")")[2].split()
    user, system, children_user, children_system = (int(fields[place]) for place in range(11, 15))
    return Stat(
        int(fields[1]), (user + system) / TICKS_PER_SECOND, (children_user + children_system) / TICKS_PER_SECOND
    )


def stat_of(pid: int, proc: Path = PROC) -> Stat | None:
    """None if the process is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return parse_stat((proc / str(pid) / "stat").read_text())
    return None


def children_of(pid: int, proc: Path = PROC) -> list[int]:
    """The processes that the threads of this one started and that still live."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in (proc / str(pid) / "task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def tree(pid: int, proc: Path = PROC) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for one in found:
        found += children_of(one, proc)
    return found


def cpu_of(*pids: int, proc: Path = PROC) -> float:
    """CPU seconds of these processes with their descendants, those that ended and were waited for included."""
    stats = [stat_of(one, proc) for pid in pids for one in tree(pid, proc)]
    return sum(stat.own + stat.ended for stat in stats if stat is not None)


def own_cpu_of(*pids: int, proc: Path = PROC) -> float:
    """CPU seconds of these processes alone, as far as they live."""
    return sum(stat.own for stat in (stat_of(pid, proc) for pid in pids) if stat is not None)


def rss_of(*pids: int, proc: Path = PROC) -> int:
    """Resident bytes of these processes with their descendants."""
    total = 0
    for one in (one for pid in pids for one in tree(pid, proc)):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = (proc / str(one) / "status").read_text()
            total += 1024 * int((status.partition("VmRSS:")[2].split() or ["0"])[0])
    return total


def kind_of(title: str) -> str:
    """What a Postgres process does, by its title (`postgres: checkpointer`, `postgres: kcoord kcoord [local] idle`)."""
    words = title.partition("postgres: ")[2].split() or [""]
    if words[0] not in AUXILIARY:
        return BACKENDS
    return KINDS.get(words[0], OTHERS)


def postgres_cpu(postmaster: int, proc: Path = PROC) -> dict[str, float]:
    """CPU seconds by kind of process. ENDED: of all that ended, whatever they did."""
    stat = stat_of(postmaster, proc)
    if stat is None:
        return {}
    found = {BACKENDS: 0.0, OTHERS: stat.own, ENDED: stat.ended}
    for pid in children_of(postmaster, proc):
        one = stat_of(pid, proc)
        if one is not None:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                kind = kind_of((proc / str(pid) / "cmdline").read_text().replace("\0", " "))
                found[kind] = found.get(kind, 0.0) + one.own
    return found


def postmaster_of(conninfo: str) -> int:
    """The first process of the Postgres that serves there; it has to be on this machine."""
    with psycopg.connect(conninfo) as connection:
        row = connection.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        stat = stat_of(row[0])
    assert stat is not None, "Postgres runs on another machine"
    return stat.parent


@dataclass(frozen=True, slots=True)
class Spent:
    """What a load cost. CPU seconds; `postgres` by kind of process; `wal` in bytes, None where not asked.

    `stored`: sessions that had been renewed in memory and were stored. `commit_statements`, `fetch_statements`: how
    many statements commits and fetches shared.
    """

    server: float
    postgres: Mapping[str, float] = field(default_factory=dict)
    wal: int | None = None
    stored: float = 0.0
    commit_statements: float = 0.0
    fetch_statements: float = 0.0

    @property
    def total(self) -> float:
        """CPU seconds of server and Postgres."""
        return self.server + self.in_postgres

    @property
    def in_postgres(self) -> float:
        """CPU seconds of Postgres. What autovacuum did counts: the load made it necessary."""
        return sum(self.postgres.values())

    def since(self, before: Spent) -> Spent:
        """The difference. A process that ended in between is in ENDED with all its time, so kinds may shrink."""
        kinds = sorted({*self.postgres, *before.postgres})
        return Spent(
            self.server - before.server,
            {kind: self.postgres.get(kind, 0.0) - before.postgres.get(kind, 0.0) for kind in kinds},
            None if self.wal is None or before.wal is None else self.wal - before.wal,
            self.stored - before.stored,
            self.commit_statements - before.commit_statements,
            self.fetch_statements - before.fetch_statements,
        )


class Watched:
    """Servers, by process id, and the Postgres behind them, if any. `ports`: where they tell their metrics."""

    def __init__(self, servers: Sequence[int], conninfo: str | None = None, ports: Sequence[int] = ()) -> None:
        self.servers = tuple(servers)
        self._ports = tuple(ports)
        self.conninfo = conninfo
        self._postmaster = None if conninfo is None else postmaster_of(conninfo)

    def spent(self) -> Spent:
        """Since they were started."""
        if self.conninfo is None or self._postmaster is None:
            return Spent(cpu_of(*self.servers))
        told = [told_by(port) for port in self._ports]
        wal = wal_of(self.conninfo)
        sums = (sum(one[number] for one in told) for number in range(len(TOLD)))
        return Spent(cpu_of(*self.servers), postgres_cpu(self._postmaster), wal, *sums)

    @property
    def rss(self) -> int:
        """Resident bytes of the servers."""
        return rss_of(*self.servers)


def told_by(port: int) -> list[float]:
    """What this server counts as TOLD since it was started."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    found = [re.search(rf"^{name} (\S+)", text, re.MULTILINE) for name in TOLD]
    return [0.0 if one is None else float(one[1]) for one in found]


def wal_of(conninfo: str) -> int:
    """Bytes of WAL since the cluster was made; the insert position, which asynchronous commits have moved as well."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        row = connection.execute("select (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])
