"""kill -9 of a server whose commit lane is busy: what was acknowledged is there, once, and nothing is there in part.

Many connections commit at the same time, so that batches carry commits of several groups and several of one group. Each
commits on partitions of its own, ever higher offsets, and waits for each answer: when the server dies, one commit of
every connection is under way.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field

import httpx
import psycopg
import pytest

from tests.bench.door import post
from tests.bench.nodes import fill
from tests.support.database import sessions
from tests.support.http_members import make_token
from tests.support.journal import assert_journal_agrees, journal_lines
from tests.support.processes import Running, start_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("kills under load again; the default has those of test_commit_durability"),
]

GROUPS = 6
OF_EACH = 4
"""Connections."""
PARTITIONS = 3
"""Of each connection; one commit names them all."""
KILLS = 3
BETWEEN = 30
"""So many commits of every connection are acknowledged before each kill."""
PATIENCE_S = 180.0

TOPIC = """
insert into groups_topic (name, topic_id, partitions, labels, created_at)
values ('t', gen_random_uuid(), %s, '{}', 0)
"""
SESSIONS = "select count(*) from pg_stat_activity where application_name = 'kcoord' and datname = current_database()"
LANE = re.compile(r'kcoord_offset_commits_total\{way="lane"\} (\S+)')


@dataclass
class Committer:
    """One connection. `acknowledged`: its commits by number; `unknown`: those of which it does not know."""

    group_id: str
    first: int
    token: str
    acknowledged: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)

    @property
    def partitions(self) -> range:
        return range(self.first, self.first + PARTITIONS)

    def request(self, number: int) -> bytes:
        """The commit with this number, which is also the offset."""
        partitions = [{"partition": partition, "committed_offset": number} for partition in self.partitions]
        topics = [{"name": "t", "partitions": partitions}]
        body = {"member_id": "m", "generation_id_or_member_epoch": 1, "topics": topics}
        return post(f"/v1/groups/{self.group_id}/offsets/commit", json.dumps(body).encode(), self.token)

    async def run(self, port: int) -> None:
        """Commit until the connection ends. A commit whose answer is not whole, or a 503, is not known."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        number = max([0, *self.acknowledged[-1:], *self.unknown[-1:]])
        try:
            while True:
                number += 1
                writer.write(self.request(number))
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                assert length is not None
                content = await reader.readexactly(int(length[1]))
                if head.startswith(b"HTTP/1.1 503 "):  # the server stalled in the transaction
                    self.unknown.append(number)
                    continue
                assert head.startswith(b"HTTP/1.1 200 "), content
                results = json.loads(content)["topics"][0]["partitions"]
                assert [result["error"] for result in results] == ["NONE"] * PARTITIONS
                self.acknowledged.append(number)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.unknown.append(number)
        finally:
            writer.close()


async def test_acknowledged_commits_survive_and_none_is_doubled(database: str) -> None:
    token = make_token(database)
    fill(database, GROUPS)
    committers = [
        Committer(f"bench-{group}", number * PARTITIONS, token) for group in range(GROUPS) for number in range(OF_EACH)
    ]
    with psycopg.connect(database) as connection:
        connection.execute(TOPIC, (OF_EACH * PARTITIONS,))
    by_lane = 0.0
    for _ in range(KILLS):
        with start_server(database) as server:
            server.wait_ready()
            by_lane += await kill_under_load(server, committers)
        sessions_ended(database)
        check(database, committers)
    commits = sum(len(committer.acknowledged) for committer in committers)
    assert by_lane > commits / 2, "they took the lane"
    assert all(len(committer.unknown) >= KILLS for committer in committers)
    print(f"{commits} commits acknowledged, {by_lane:g} by the lane, {KILLS * len(committers)} not known")


async def kill_under_load(server: Running, committers: list[Committer]) -> float:
    """Kill the server while all of them commit; how many commits took the lane until shortly before."""
    goals = [len(committer.acknowledged) + BETWEEN for committer in committers]
    load = asyncio.gather(*(committer.run(server.port or 0) for committer in committers))
    async with asyncio.timeout(PATIENCE_S):
        while any(len(one.acknowledged) < goal for one, goal in zip(committers, goals, strict=True)):
            assert not load.done(), "the load ended early"
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient() as client:
            metrics = (await client.get(f"{server.url}/metrics")).text
        found = LANE.search(metrics)
        server.kill()
        await load
    return float(found[1]) if found else 0.0


def sessions_ended(database: str) -> None:
    """What Postgres was carrying out for a server that is dead has come to its end."""
    until = time.monotonic() + PATIENCE_S
    with psycopg.connect(database, autocommit=True) as connection:
        while connection.execute(SESSIONS).fetchone() != (0,):
            assert time.monotonic() < until, sessions(database)
            time.sleep(0.02)


def check(database: str, committers: list[Committer]) -> None:
    """Every acknowledged commit has one line for each of its partitions, in order; the others have all or none."""
    lines: dict[tuple[str, int], list[int]] = defaultdict(list)
    for line in journal_lines(database, "group_name, partition, committed_offset"):
        lines[line["group_name"], line["partition"]].append(line["committed_offset"])
    with psycopg.connect(database) as connection:
        query = "select g.group_id, o.partition, o.committed_offset from offsets_committedoffset o join groups_group g"
        view = {
            (name, partition): offset for name, partition, offset in connection.execute(f"{query} on g.id = o.group_id")
        }
    for committer in committers:
        first, *others = (lines[committer.group_id, partition] for partition in committer.partitions)
        assert others == [first] * (PARTITIONS - 1), f"{committer.group_id}: a commit is there in part"
        assert sorted(set(first)) == first, f"{committer.group_id}: lines twice, or out of order"
        assert [number for number in first if number not in committer.unknown] == committer.acknowledged
        assert set(first) <= {*committer.acknowledged, *committer.unknown}
        assert {view[committer.group_id, partition] for partition in committer.partitions} == {first[-1]}
    assert_journal_agrees(database)
