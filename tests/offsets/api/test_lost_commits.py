"""What members are told of commits that the database lost; tests/failover has the real losses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.commits import acknowledged
from offsets.commits.acknowledged import AcknowledgedCommits, Gone
from tests.offsets.api.test_commit import COMMIT, FETCH, commit_body, of_member
from tests.support.api import Members
from tests.support.members import eventually

LOST = "committed_offsets_lost"
PARTITION = {"partition": 0, "committed_offset": 7}


@pytest.fixture
async def other(runtime: Runtime, database: str, clock: VirtualClock) -> AsyncIterator[AcknowledgedCommits]:
    """What another process knows, which has acknowledged nothing."""
    process = Runtime(runtime.config, database, clock)
    await process.start()
    await process.notifications.wait_listening()
    yield process.get(AcknowledgedCommits)
    await process.stop()


async def lose(runtime: Runtime, api: httpx.AsyncClient, database: str, group: str) -> None:
    """Commit in a group, lose that, and let the process find it."""
    response = await api.post(f"/v1/groups/{group}/offsets/commit", json=commit_body(PARTITION))
    assert response.status_code == 200, response.text
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("delete from offset_commit_log where group_name = %s", [group])
        connection.execute("delete from offsets_committedoffset where committed_offset = 7")
    await runtime.get(AcknowledgedCommits).compare()
    await runtime.get(AcknowledgedCommits).look()


async def told(api: httpx.AsyncClient, path: str, body: dict[str, Any]) -> Any:
    """What an answer says of losses; None: it has no such field."""
    response = await api.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json().get(LOST)


async def test_a_member_is_told_until_it_has_committed(
    members: Members, api: httpx.AsyncClient, runtime: Runtime, topic: str, database: str, clock: VirtualClock
) -> None:
    """Differs from Kafka: its answers say nothing of it."""
    member = await members.stable()
    fetch = {"member_id": member["member_id"]}
    commit = commit_body({"partition": 1, "committed_offset": 1}, **of_member(member))
    assert await told(api, FETCH, fetch) is None
    assert await told(api, COMMIT, commit) is None
    await lose(runtime, api, database, "other")
    interval = await told(api, FETCH, fetch)
    assert set(interval) == {"since", "until"}
    assert interval["since"] <= interval["until"]
    assert await told(api, FETCH, fetch) == interval
    assert await told(api, COMMIT, commit) == interval, "the first commit since then may lack some partitions"
    assert await told(api, COMMIT, commit) is None
    assert await told(api, FETCH, fetch) is None
    clock.advance(1_000)
    await lose(runtime, api, database, "another")
    again = await told(api, COMMIT, commit)
    assert (again["since"], again["until"] > interval["until"]) == (interval["since"], True)
    clock.advance(int(acknowledged.NOTED_SECONDS * 1000))
    await runtime.get(AcknowledgedCommits).look()
    assert await told(api, FETCH, {"member_id": "somebody else"}) is None


async def test_every_process_knows_and_shows_it(
    api: httpx.AsyncClient, runtime: Runtime, topic: str, database: str, other: AcknowledgedCommits
) -> None:
    await lose(runtime, api, database, "other")
    await eventually(lambda: other.gone != Gone(), "the other process has read it")
    assert other.gone == runtime.get(AcknowledgedCommits).gone
    note = acknowledged._found_elsewhere(other.gone)["commits"]
    assert note.ok
    assert "1 offsets missing" in note.detail
