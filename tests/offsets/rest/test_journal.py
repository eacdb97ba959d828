"""The history of a group's committed offsets over the REST API."""

from __future__ import annotations

from typing import Any

import httpx
import psycopg
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import Members, assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group

COMMITS = "/v1/groups/g/commits"


@pytest.fixture(autouse=True)
async def catalogue(topics: TopicService) -> None:
    """Two topics with three partitions each."""
    await topics.create("orders", 3)
    await topics.create("stock", 3)


async def commit(api: httpx.AsyncClient, topic: str, *offsets: tuple[int, int], **who: Any) -> None:
    """Commit (partition, offset)s."""
    partitions = [{"partition": p, "committed_offset": o} for p, o in offsets]
    body = {"topics": [{"name": topic, "partitions": partitions}], **who}
    response = await api.post("/v1/groups/g/offsets/commit", json=body)
    assert response.status_code == 200, response.text


async def lines(api: httpx.AsyncClient, query: str = "") -> list[tuple[str, str, int, int | None]]:
    """What a page lists: kind, topic, partition, offset."""
    response = await api.get(f"{COMMITS}{query}")
    assert response.status_code == 200, response.text
    fields = ("kind", "topic", "partition", "committed_offset")
    return [tuple(line[name] for name in fields) for line in response.json()["commits"]]


async def history(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    """Six lines: two commits of two partitions a second apart, one of another topic, one removal."""
    await commit(api, "orders", (0, 10), (1, 20))
    clock.advance(1_000)
    await commit(api, "orders", (0, 11), (1, 21))
    clock.advance(1_000)
    await commit(api, "stock", (2, 5))
    clock.advance(1_000)
    body = {"topics": [{"name": "orders", "partitions": [1]}]}
    assert (await api.post("/v1/groups/g/offsets/delete", json=body)).status_code == 200


ALL = [
    ("delete", "orders", 1, None),
    ("commit", "stock", 2, 5),
    ("commit", "orders", 1, 21),
    ("commit", "orders", 0, 11),
    ("commit", "orders", 1, 20),
    ("commit", "orders", 0, 10),
]


async def test_a_line_tells_who_did_what(
    api: httpx.AsyncClient, members: Members, topics: TopicService, clock: VirtualClock
) -> None:
    joined = await members.stable()
    who = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    body = {
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    {"partition": 0, "committed_offset": 7, "committed_leader_epoch": 3, "committed_metadata": "m"}
                ],
            }
        ],
        "retention_time_ms": 60_000,
        **who,
    }
    assert (await api.post("/v1/groups/g/offsets/commit", json=body)).status_code == 200
    page = (await api.get(COMMITS)).json()
    (line,) = page.pop("commits")
    assert page == {"group_id": "g", "next_cursor": None}
    assert line.pop("id") > 0
    assert line.pop("principal").startswith("test-")
    assert line == {
        "at": rfc3339(clock.now_ms()),
        "kind": "commit",
        "topic": "orders",
        "partition": 0,
        "committed_offset": 7,
        "committed_leader_epoch": 3,
        "metadata": "m",
        "member_id": joined["member_id"],
        "generation_id": joined["generation_id"],
        "client_id": "billing",
        "transactional_id": None,
        "plan_id": None,
        "expires_at": rfc3339(clock.now_ms() + 60_000),
    }


async def test_the_newest_is_first_and_pages_join_up(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    await history(api, clock)
    assert await lines(api) == ALL
    seen: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = (await api.get(f"{COMMITS}?limit=1{cursor}")).json()
        seen += page["commits"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
        await commit(api, "stock", (0, len(seen)))  # what is newer than the first page does not shift the others
    assert [line["committed_offset"] for line in seen] == [line[3] for line in ALL]
    assert len({line["id"] for line in seen}) == len(ALL)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?topic=stock", ALL[1:2]),
        ("?topic=orders&partition=1", [ALL[0], ALL[2], ALL[4]]),
        ("?topic=orders&partition=2", []),
        ("?topic=nope", []),
        ("?kind=delete", ALL[:1]),
        ("?kind=delete&kind=reset&topic=stock", []),
        ("?kind=commit&kind=delete&topic=orders&partition=1", [ALL[0], ALL[2], ALL[4]]),
        ("?kind=expire", []),
        (f"?from={rfc3339(START_MS + 1_000)}", ALL[:4]),
        (f"?to={rfc3339(START_MS + 1_000)}", ALL[4:]),
        (f"?from={rfc3339(START_MS + 1_000)}&to={rfc3339(START_MS + 2_001)}", ALL[1:4]),
        (f"?from={rfc3339(START_MS + 9_000)}", []),
        (f"?to={rfc3339(START_MS)}", []),
        ("?from=1969-12-31T23:59:59Z&to=9999-12-31T23:59:59Z", ALL),
    ],
)
async def test_filters(
    api: httpx.AsyncClient, clock: VirtualClock, query: str, expected: list[tuple[str, str, int, int | None]]
) -> None:
    await history(api, clock)
    assert await lines(api, query) == expected


async def test_pages_keep_their_filter(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    await history(api, clock)
    query = f"?topic=orders&partition=1&to={rfc3339(START_MS + 3_000)}&limit=1"
    first = (await api.get(f"{COMMITS}{query}")).json()
    second = (await api.get(f"{COMMITS}{query}&cursor={first['next_cursor']}")).json()
    assert [line["committed_offset"] for line in first["commits"] + second["commits"]] == [21, 20]
    assert second["next_cursor"] is None


async def test_a_cursor_does_not_reach_beyond_its_end(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    await history(api, clock)
    newest = (await api.get(f"{COMMITS}?limit=1")).json()["next_cursor"]
    assert await lines(api, f"?to={rfc3339(START_MS + 1_000)}&cursor={newest}") == ALL[4:]


async def test_the_journal_outlives_its_group(api: httpx.AsyncClient, clock: VirtualClock) -> None:
    await history(api, clock)
    assert (await api.delete("/v1/groups/g")).status_code == 204
    assert await lines(api, "?kind=group_delete") == [
        ("group_delete", "stock", 2, None),
        ("group_delete", "orders", 0, None),
    ]
    assert len(await lines(api)) == len(ALL) + 2


async def test_a_group_without_commits_has_an_empty_history(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(group("g", GroupState.EMPTY))
    assert await lines(api) == []


async def test_a_group_that_nobody_knows(api: httpx.AsyncClient) -> None:
    assert_problem(await api.get(COMMITS), Error.GROUP_ID_NOT_FOUND)


async def test_only_what_the_caller_may_describe(
    api: httpx.AsyncClient, client_with: ClientWith, clock: VirtualClock
) -> None:
    await history(api, clock)
    assert await lines(await client_with("describe:group:g", "describe:topic:stock")) == [ALL[1]]
    assert await lines(await client_with("describe:group:g", "read:topic:ord*")) == [ALL[0], *ALL[2:]]
    assert await lines(await client_with("describe:group:g")) == []
    assert_problem(await (await client_with("read:topic:*")).get(COMMITS), Error.GROUP_ID_NOT_FOUND)


BAD_QUERIES: list[tuple[str, str]] = [
    ("partition=0", "partition"),
    ("topic=orders&partition=-1", "partition"),
    ("topic=orders&partition=2147483648", "partition"),
    ("topic=orders&partition=x", "partition"),
    ("topic=orders&partition=1&partition=2", "partition"),
    ("from=yesterday", "from"),
    ("from=2026-13-01T00:00:00Z", "from"),
    ("from=2026-01-01T00:00:00", "from"),
    ("to=2026-01-01", "to"),
    ("to=", "to"),
    ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"),
    ("from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "from"),
    ("kind=nonsense", "kind"),
    ("kind=", "kind"),
    ("cursor=nonsense", "cursor"),
    ("cursor=WzFd", "cursor"),
    ("limit=0", "limit"),
    ("limit=1001", "limit"),
    ("since=2026-01-01T00:00:00Z", "since"),
]


async def test_bad_queries_name_the_field(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for query, field in BAD_QUERIES:
        with subtests.test(f"{query} {field}"):
            await commit(api, "orders", (0, 1))
            assert_problem(await api.get(f"{COMMITS}?{query}"), Error.INVALID_REQUEST, field=field)


async def test_bad_group_ids(api: httpx.AsyncClient) -> None:
    assert_problem(await api.get("/v1/groups/%FF/commits"), Error.INVALID_GROUP_ID)
    assert_problem(await api.get("/v1/groups//commits"), Error.INVALID_GROUP_ID)


async def test_offsets_as_large_and_as_small_as_they_come(api: httpx.AsyncClient, database: str) -> None:
    """No range is checked where it is committed (offsets.md 3.6)."""
    await commit(api, "orders", (0, 2**63 - 1), (1, -(2**63)))
    assert [line[3] for line in await lines(api)] == [-(2**63), 2**63 - 1]
    with psycopg.connect(database) as connection:
        stored = connection.execute("select committed_offset from offsets_committedoffset order by 1").fetchall()
    assert stored == [(-(2**63),), (2**63 - 1,)]
