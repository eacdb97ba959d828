"""The list of groups by what needs attention, as they were last judged."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.groups.rest.test_groups import all_ids, ids
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group

VERDICTS = {
    "a": [("late", "", 5)],
    "b": [("stalled", "orders", 7), ("stalled", "refunds", 3), ("late", "", 9)],
    "c": [("stalled", "secret", 1)],
    "d": [],
}
INSERT = """
insert into offsets_groupverdict (group_id, kind, topic, since, number, names)
select id, %s, %s, %s, 1, '{}' from groups_group where group_id = %s
"""


@pytest.fixture(autouse=True)
async def judged(service: GroupService, database: str, clock: VirtualClock) -> None:
    """Groups with these verdicts, judged by their members now and by their offsets some time ago."""
    with psycopg.connect(database, autocommit=True) as connection:
        for name, verdicts in VERDICTS.items():
            await service.put(group(name, GroupState.EMPTY))
            for kind, topic, since in verdicts:
                connection.execute(INSERT, [kind, topic, START_MS + since, name])
        runs = {"members": START_MS, "offsets": START_MS - 30_000}
        for check, at in runs.items():
            connection.execute("insert into offsets_verdictrun values (%s, %s)", [check, at])


async def lines(client: httpx.AsyncClient, query: str = "") -> dict[str, Any]:
    """The groups of the first page by their ids."""
    response = await client.get(f"/v1/groups{query}")
    assert response.status_code == 200, response.text
    return {line["group_id"]: line for line in response.json()["groups"]}


FILTERS: list[tuple[str, list[str]]] = [
    ("verdict=late", ["a", "b"]),
    ("verdict=stalled", ["b", "c"]),
    ("verdict=stuck", []),
    ("verdict=stuck&verdict=late", ["a", "b"]),
    ("verdict=stalled&q=b", ["b"]),
    ("verdict=stalled&state=Stable", []),
]


async def test_filters_in_every_order(api: httpx.AsyncClient) -> None:
    for query, expected in FILTERS:
        for sort in ("group_id", "-updated_at", "state", "members", "-members", "lag"):
            assert sorted(await ids(api, f"?{query}&sort={sort}")) == expected, (query, sort)


async def test_pages_of_a_filter_join_up(api: httpx.AsyncClient) -> None:
    assert await all_ids(api, "&verdict=late&verdict=stalled") == ["a", "b", "c"]


async def test_a_line_says_what_is_wrong_since_when_and_when_it_was_judged(api: httpx.AsyncClient) -> None:
    found = await lines(api)
    assert found["b"]["verdicts"] == [
        {"verdict": "stalled", "since": rfc3339(START_MS + 3)},
        {"verdict": "late", "since": rfc3339(START_MS + 9)},
    ]
    assert found["d"]["verdicts"] == []
    assert {line["judged_at"] for line in found.values()} == {rfc3339(START_MS - 30_000)}


async def test_verdicts_about_topics_that_the_caller_may_not_see_say_nothing(client_with: ClientWith) -> None:
    client = await client_with("describe:group:*", "describe:topic:orders")
    assert await ids(client, "?verdict=stalled") == ["b"]
    found = await lines(client)
    assert found["c"]["verdicts"] == []
    assert found["b"]["verdicts"][0] == {"verdict": "stalled", "since": rfc3339(START_MS + 7)}


async def test_an_unknown_verdict_names_the_parameter(api: httpx.AsyncClient) -> None:
    assert_problem(await api.get("/v1/groups?verdict=fine"), Error.INVALID_REQUEST, field="verdict")
