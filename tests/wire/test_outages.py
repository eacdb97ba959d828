"""Postgres falls silent, and is killed, under members over the wire: what they are told, and what they keep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.http_members import make_token
from tests.support.members import eventually
from tests.support.postgres import OwnPostgres, own_postgres
from tests.support.processes import Running, free_port
from tests.wire.client import WireClient
from tests.wire.support import join_fields
from tests.wire.test_servers import leader, server_of

pytestmark = [pytest.mark.processes, pytest.mark.whole("outages of Postgres as members of other protocols have them")]

COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE = 14, 15
AWAY = {COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE}
"""What clients try again after, and first look for the coordinator."""
ANSWER_SECONDS = 20.0
"""By then a request must be answered: silence is asked about after 4 s, and believed after 2.5 more."""
SESSION_MS = 300_000
"""Longer than both outages."""


@dataclass
class Member:
    """The only member of group g. `acknowledged`: the last offset whose commit was answered without an error."""

    client: WireClient
    member_id: str
    acknowledged: int = -1
    tried: list[int] = field(default_factory=list)

    async def ask(self, name: str, version: int, **body: Any) -> Any:
        """One request. Fails if it is not answered in time."""
        began = time.monotonic()
        answer = await self.client.ask(name, version, **body)
        assert time.monotonic() - began < ANSWER_SECONDS, name
        return answer

    async def beat(self) -> int:
        """The error of a heartbeat."""
        answer = await self.ask("heartbeat", 4, group_id="g", generation_id=1, member_id=self.member_id)
        return int(answer.error_code)

    async def commit(self, offset: int) -> int:
        """The error of a commit of partition 0."""
        self.tried.append(offset)
        partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
        answer = await self.ask(
            "offset_commit",
            8,
            group_id="g",
            generation_id_or_member_epoch=1,
            member_id=self.member_id,
            topics=[{"name": "t", "partitions": partitions}],
        )
        code = int(answer.topics[0].partitions[0].error_code)
        if not code:
            self.acknowledged = offset
            self.tried.clear()
        return code

    async def fetched(self) -> int:
        """What is committed there; -2: it cannot be told now."""
        asked = [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [0]}]}]
        (group,) = (await self.ask("offset_fetch", 8, groups=asked, require_stable=False)).groups
        if group.error_code:
            assert group.error_code in AWAY
            return -2
        return int(group.topics[0].partitions[0].committed_offset)

    async def describe(self) -> tuple[int, list[str]]:
        """The error and the members of the group."""
        (group,) = (await self.ask("describe_groups", 5, groups=["g"])).groups
        return int(group.error_code), [member.member_id for member in group.members]


@pytest.fixture
def own() -> Iterator[OwnPostgres]:
    """A server that nobody else uses."""
    with own_postgres() as postgres:
        yield postgres


@pytest.fixture
def port() -> int:
    """The port for Kafka clients."""
    return free_port()


@pytest.fixture
def server(own: OwnPostgres, port: int) -> Iterator[Running]:
    """It listens for Kafka clients."""
    with server_of(own.conninfo, port, KCOORD_DATABASE_ACQUIRE_TIMEOUT_MS=1_000) as running:
        running.wait_ready()
        yield running


@pytest.fixture
async def member(own: OwnPostgres, server: Running, port: int) -> AsyncIterator[Member]:
    """It has joined, and has committed an offset."""
    async with WireClient(port) as client:
        await client.log_in(make_token(own.conninfo))
        created = await client.ask(
            "create_topics", 5, topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}], timeout=10_000
        )
        assert created.topics[0].error_code == 0
        found = Member(client, await leader(client, session_timeout=SESSION_MS))
        assert await found.beat() == 0
        assert await found.commit(10) == 0
        yield found


async def refused(own: OwnPostgres, member: Member, port: int) -> None:
    """Every request that needs Postgres is answered in time with an error that is tried again."""
    assert await member.commit(member.acknowledged + 1) in AWAY
    assert await member.fetched() == -2
    assert (await member.describe())[0] in AWAY
    assert await member.beat() in {0, *AWAY}, "it may be answered from memory"
    join = await member.ask("join_group", 9, **join_fields(group_id="other"))
    assert join.error_code in AWAY
    async with WireClient(port) as stranger:
        await stranger.ask("sasl_handshake", 1, mechanism="PLAIN")
        answer = await stranger.ask("sasl_authenticate", 2, auth_bytes=b"\0user\0kc_not-known-yet")
        assert answer.error_code in AWAY, "whether it is a token cannot be told"


async def recovered(member: Member) -> None:
    """The member has its membership, its group and its offsets."""

    async def commits() -> bool:
        code = await member.commit(member.acknowledged + 10)
        assert code in {0, *AWAY}, "the session did not end"
        return code == 0

    unknown = [member.acknowledged, *member.tried]

    async def tells() -> int | None:
        found = await member.fetched()
        return None if found == -2 else found

    found = await eventually(tells, "offsets are told again")
    assert found in unknown, "what was acknowledged, or what was sent after that"
    await eventually(commits, "it commits again")
    assert await member.fetched() == member.acknowledged
    assert await member.beat() == 0
    assert await member.describe() == (0, [member.member_id])


async def test_members_keep_what_they_have_through_outages(
    own: OwnPostgres, server: Running, member: Member, port: int
) -> None:
    with own.frozen():
        await refused(own, member, port)
    await recovered(member)
    await asyncio.to_thread(own.kill)
    await refused(own, member, port)
    await asyncio.to_thread(own.start)
    await recovered(member)
    assert "request_failed" not in server.output
