"""Measure /metrics with many groups: `python -m tests.bench.scrape [GROUPS]`, by default 10,000.

Each group has three members and has committed on two topics of five partitions. First a run of the sampler, then
scrapes of a server over HTTP: without a token, with the default bounds, and with bounds that leave nothing out. "Again"
is a scrape that is answered from the cache. While scrapes run, /livez is asked every 5 ms: its longest answer says how
long the server's loop was busy.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from dataclasses import dataclass

import httpx
import psutil
import psycopg

from kcoord.config import Config
from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService
from tests.support.database import ephemeral_database
from tests.support.http_members import make_token
from tests.support.processes import Running, start_server

GROUPS = 10_000
SCRAPES = 10

FILL = (
    "insert into groups_topic (name, topic_id, partitions, labels, created_at)"
    " select 'topic-' || n, gen_random_uuid(), 5, '{}', 0 from generate_series(0, 199) n",
    "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)"
    " select t.id, p, 0, 1000000, (extract(epoch from now()) * 1000)::bigint"
    " from groups_topic t, generate_series(0, 4) p",
    "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
    " select topic_id, partition, sampled_at - 60000, sampled_at - 60000, 0, 900000 from groups_watermark",
    "insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,"
    " protocol_name, new_member_added, version, created_at, updated_at)"
    " select 'team-' || n %% 50 || '.consumer-' || n, 'classic', 'Stable', 'Empty', 0, n %% 100, 'consumer', 'range',"
    " false, 1, 0, 0 from generate_series(1, %(groups)s) n",
    "insert into groups_member (group_id, member_id, client_id, client_host, session_timeout_ms, rebalance_timeout_ms,"
    " protocol_type, protocol_names, protocol_metadata, assignment, is_new, pending_sync)"
    " select g.id, 'm-' || n, 'c', 'h', 10000, 30000, 'consumer', '{range}', array[''::bytea], '', false, false"
    " from groups_group g, generate_series(1, 3) n",
    "insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,"
    " commit_timestamp, member_id, generation_id)"
    " select g.id, 'topic-' || (g.id * 7 + n * 100) % 200, p, 950000 + g.id % 40000, -1, '', 0, '', -1"
    " from groups_group g, generate_series(0, 1) n, generate_series(0, 4) p",
)


def fill(conninfo: str, groups: int) -> None:
    """Groups, members, offsets, watermarks."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in FILL:
            connection.execute(statement.encode(), {"groups": groups} if "%(" in statement else None)
        connection.execute("vacuum analyze")


async def sample(conninfo: str) -> list[float]:
    """Seconds of the first run, which inserts every row, and of two that update them."""
    runtime = Runtime(Config({"lag.sample.interval.ms": 1_000}), conninfo)
    await runtime.start()
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        await runtime.get(SampleService).sample()
        taken.append(time.perf_counter() - began)
        await asyncio.sleep(1)
    await runtime.stop()
    return taken


@dataclass
class Liveness:
    """Asks /livez until it is stopped."""

    url: str
    longest: float = 0.0

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        with httpx.Client(timeout=60) as client:
            client.get(f"{self.url}/livez")
            while not self._over.wait(0.005):
                began = time.perf_counter()
                client.get(f"{self.url}/livez")
                self.longest = max(self.longest, time.perf_counter() - began)

    def stop(self) -> float:
        """Seconds of the longest answer."""
        self._over.set()
        self._thread.join()
        return self.longest


def scrape(server: Running, what: str, secret: str | None) -> None:
    """One line: seconds, bytes, CPU time of the server for each scrape, and the longest /livez meanwhile."""
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    process = psutil.Process(server.pid)
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        client.get("/metrics").raise_for_status()
        taken, size, series, began = [], 0, 0, sum(process.cpu_times()[:2])
        for _ in range(SCRAPES):
            started = time.perf_counter()
            content = client.get("/metrics").content
            taken.append(time.perf_counter() - started)
            size = len(content)
            series = sum(not line.startswith(b"#") for line in content.splitlines())
        cpu = (sum(process.cpu_times()[:2]) - began) / SCRAPES
        liveness = Liveness(server.url)
        for _ in range(SCRAPES):
            client.get("/metrics")
        longest = liveness.stop()
    print(
        f"{what:28} {series:8,} series {size:11,} bytes  {statistics.median(taken):6.3f} s (at most {max(taken):.3f})"
        f"  CPU {cpu:6.3f} s  /livez at most {longest:.3f} s",
        flush=True,
    )


def main() -> int:
    """Measure."""
    groups = int(sys.argv[1]) if len(sys.argv) > 1 else GROUPS
    with ephemeral_database() as conninfo:
        fill(conninfo, groups)
        first, *later = asyncio.run(sample(conninfo))
        print(f"the sampler: {first:.2f} s for {groups:,} new groups, then " + ", ".join(f"{s:.2f} s" for s in later))
        secret = make_token(conninfo)
        everything = {"KCOORD_METRICS_MAX_GROUPS": groups, "KCOORD_METRICS_MAX_TOPICS": 10 * groups}
        for what, env, token in (
            ("without a token", {"KCOORD_METRICS_CACHE_MS": 0}, None),
            ("default bounds", {"KCOORD_METRICS_CACHE_MS": 0}, secret),
            ("all groups", {**everything, "KCOORD_METRICS_CACHE_MS": 0}, secret),
            ("all groups, again", {**everything, "KCOORD_METRICS_CACHE_MS": 600_000}, secret),
        ):
            with start_server(conninfo, env=env) as server:
                server.wait_ready()
                scrape(server, what, token)
    return 0


if __name__ == "__main__":
    sys.exit(main())
