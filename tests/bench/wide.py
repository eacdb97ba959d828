"""Measure what it takes to describe a group of 100,000 topics, and its lag: `python -m tests.bench.wide`.

Wall time depends on the machine's load; CPU seconds of this process, and of the loop's longest turn, hardly do.
"""

from __future__ import annotations

import asyncio
import os
import time

import django
import httpx
import psycopg

from kcoord.config import Config
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from tests.bench.stalls import stalls, turns
from tests.support.database import ephemeral_database
from tests.support.http_members import make_token

PATHS = (
    "/v1/groups/stall",
    "/v1/groups/stall/lag",
    "/v1/groups/stall/lag?partitions=false",
    "/v1/groups/stall/offsets",
    "/v1/groups",
)
FILL = """
insert into offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata,
                                     commit_timestamp, member_id, generation_id)
select g.id, t.name, 0, 5, -1, '', 0, '', -1 from groups_group g, groups_topic t;
insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at)
select id, 0, 0, 10, (extract(epoch from now()) * 1000)::bigint from groups_topic;
insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)
select id, 0, ms, ms, 0, 10 - n
from groups_topic, generate_series(1, 8) n,
     lateral (select (extract(epoch from now()) * 1000)::bigint - 60000 * n) s (ms);
analyze
"""


def use_database(conninfo: str) -> None:
    """Set Django up on this database."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "kcoord.settings"
    django.setup()
    from django.conf import settings
    from django.db import connections

    from kcoord.database.address import django_database

    settings.CONNINFO = conninfo
    connections.settings["default"].update(django_database(conninfo))


async def measure(conninfo: str) -> None:
    """Fill a group, and ask for each path."""
    from kcoord.asgi import application

    await stalls(conninfo)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for statement in FILL.split(";"):
            connection.execute(statement.encode())
    runtime = Runtime(Config({}), conninfo)
    await runtime.start()
    runtimes.use(runtime)
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {make_token(conninfo)}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        for path in PATHS:
            with turns() as spent:
                began, cpu = time.perf_counter(), time.process_time()
                answer = await client.get(path)
                took, cpu = time.perf_counter() - began, time.process_time() - cpu
            assert answer.status_code == 200, answer.text
            size = len(answer.content) / 1_000_000
            print(f"{path}: {size:.1f} MB in {took:.1f} s; CPU {cpu:.1f} s, a turn {spent[0]:.2f} s")
    runtimes.use(None)
    await runtime.stop()


if __name__ == "__main__":
    with ephemeral_database() as database:
        use_database(database)
        asyncio.run(measure(database))
