"""How busy a pool of connections is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg_pool import AsyncConnectionPool


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """Connections of a pool: lent out, idle, how many there may be; and the callers that wait for one."""

    used: int
    idle: int
    most: int
    waiting: int


def usage_of(pool: AsyncConnectionPool[Any]) -> PoolUsage:
    """The usage of a pool right now."""
    stats = pool.get_stats()
    idle = stats["pool_available"]
    return PoolUsage(stats["pool_size"] - idle, idle, pool.max_size, stats["requests_waiting"])
