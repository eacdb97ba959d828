"""The load generator for programs that measure one server at a time; `tests.bench.generator` is the whole of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench import generator, usage
from tests.bench.generator import CONNECTIONS as CONNECTIONS
from tests.bench.usage import Watched


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured: requests, seconds, CPU seconds of server and Postgres, seconds of each request in order."""

    requests: int
    seconds: float
    server_cpu: float
    postgres_cpu: float
    times: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    @property
    def per_cpu_second(self) -> float:
        """Requests per CPU second of server and Postgres."""
        return self.requests / (self.server_cpu + self.postgres_cpu)


def postgres_of(conninfo: str) -> list[int]:
    """The processes of the Postgres that serves there."""
    return usage.tree(usage.postmaster_of(conninfo))


def measure(port: int, requests: Sequence[bytes], seconds: float, server: int, postgres: Sequence[int] = ()) -> Found:
    """Send `requests` in turns for `seconds` over CONNECTIONS connections. Fails if one is not answered with 200."""
    before = usage.own_cpu_of(*postgres)
    found = generator.measure({port: requests}, seconds, Watched([server]))
    after = usage.own_cpu_of(*postgres)
    return Found(found.requests, found.seconds, found.spent.server, after - before, tuple(found.times))
