"""Pins over the REST API, and what the page of offsets says of retention."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.core.model.types import ClassicGroup
from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.retention import pins
from tests.conftest import START_MS
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith
from tests.support.offsets import commit, events, put_pending

PINS, OFFSETS = "/v1/groups/g/pins", "/v1/groups/g/offsets"
WEEK_MS = 7 * 86_400_000


@pytest.fixture(autouse=True)
async def group(runtime: Runtime, topics: TopicService) -> None:
    """A simple group with offsets on two topics."""
    for topic in ("orders", "bills"):
        await topics.create(topic, 3)
        await commit(runtime, "g", topic, 0)


async def retention(api: httpx.AsyncClient) -> dict[tuple[str, int], tuple[Any, ...]]:
    """What the page says of each partition: expires_at, kept, pinned, pending."""
    fields = ("expires_at", "kept", "pinned", "pending")
    lines = (await api.get(OFFSETS)).json()["offsets"]
    return {(line["topic"], line["partition"]): tuple(line[field] for field in fields) for line in lines}


async def test_a_topic_is_pinned_and_unpinned_and_the_timeline_tells(
    api: httpx.AsyncClient, runtime: Runtime, clock: VirtualClock
) -> None:
    due = rfc3339(START_MS + WEEK_MS)
    assert (await api.get(PINS)).json() == {"group_id": "g", "pins": [], "next_cursor": None}
    assert set((await retention(api)).values()) == {(due, None, False, False)}
    made = await api.post(PINS, json={"topic": "orders", "reason": "audit"})
    assert made.status_code == 200, made.text
    pin = made.json()
    assert pin == {
        "topic": "orders",
        "pinned_at": rfc3339(START_MS),
        "pinned_by": pin["pinned_by"],
        "reason": "audit",
    }
    assert pin["pinned_by"].startswith("test-")
    assert (await api.get(PINS)).json()["pins"] == [pin]
    assert await retention(api) == {
        ("orders", 0): (None, "pinned", True, False),
        ("bills", 0): (due, None, False, False),
    }
    assert (await api.delete(f"{PINS}?topic=orders")).status_code == 204
    assert (await api.get(PINS)).json()["pins"] == []
    who = {"topic": "orders", "principal": pin["pinned_by"]}
    assert await events(runtime, "g", "retention_pinned") == [{**who, "reason": "audit"}]
    assert await events(runtime, "g", "retention_unpinned") == [who]


async def test_pinning_twice_keeps_the_first_and_unpinning_what_is_not_pinned_is_fine(
    api: httpx.AsyncClient, runtime: Runtime, clock: VirtualClock
) -> None:
    first = (await api.post(PINS, json={"reason": "first"})).json()
    assert first["topic"] is None
    clock.advance(5_000)
    assert (await api.post(PINS, json={"topic": None, "reason": "second"})).json() == first
    assert set((await retention(api)).values()) == {(None, "pinned", True, False)}
    for _ in range(2):
        assert (await api.delete(PINS)).status_code == 204
    assert len(await events(runtime, "g", "retention_pinned")) == 1
    assert len(await events(runtime, "g", "retention_unpinned")) == 1


async def test_a_group_that_does_not_exist_can_be_pinned_beforehand(api: httpx.AsyncClient, runtime: Runtime) -> None:
    path = "/v1/groups/soon/pins"
    made = (await api.post(path, json={"topic": "orders"})).json()
    assert (await api.get(path)).json()["pins"] == [made]
    assert len(await events(runtime, "soon", "retention_pinned")) == 1
    await commit(runtime, "soon", "orders", 0)
    (line,) = (await api.get("/v1/groups/soon/offsets")).json()["offsets"]
    assert line["pinned"]


async def test_pages_of_pins_begin_with_the_one_of_all_topics(api: httpx.AsyncClient) -> None:
    for topic in ("b", None, "a"):
        await api.post(PINS, json={"topic": topic})
    seen: list[str | None] = []
    cursor = ""
    while cursor is not None:
        page = (await api.get(f"{PINS}?limit=1{cursor}")).json()
        seen += [pin["topic"] for pin in page["pins"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert seen == [None, "a", "b"]


async def test_a_group_has_a_bounded_number_of_pins(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "MAX_PINS", 2)
    for topic in ("a", "b"):
        assert (await api.post(PINS, json={"topic": topic})).status_code == 200
    assert_problem(await api.post(PINS, json={"topic": "c"}), Error.INVALID_REQUEST, field="topic")
    assert (await api.post(PINS, json={"topic": "a"})).status_code == 200, "it is there already"


BAD_PINS: list[tuple[dict[str, Any], Error, str]] = [
    ({"topic": 5}, Error.INVALID_REQUEST, "topic"),
    ({"topic": ""}, Error.INVALID_REQUEST, "topic"),
    ({"topic": "a/b"}, Error.INVALID_TOPIC_EXCEPTION, "topic"),
    ({"topic": "t" * 250}, Error.INVALID_REQUEST, "topic"),
    ({"topic": ["orders"]}, Error.INVALID_REQUEST, "topic"),
    ({"topics": ["orders"]}, Error.INVALID_REQUEST, "topics"),
    ({"reason": None}, Error.INVALID_REQUEST, "reason"),
    ({"reason": "r" * 1_001}, Error.INVALID_REQUEST, "reason"),
    ({"reason": "a\0b"}, Error.INVALID_REQUEST, "reason"),
]


async def test_bad_pins_are_refused_by_name(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for body, error, field in BAD_PINS:
        with subtests.test(f"{body} {error} {field}"):
            assert_problem(await api.post(PINS, json=body), error, field=field)
            assert (await api.get(PINS)).json()["pins"] == []


async def test_bad_queries_are_refused_by_name(api: httpx.AsyncClient) -> None:
    assert_problem(await api.delete(f"{PINS}?topic=a/b"), Error.INVALID_TOPIC_EXCEPTION, field="topic")
    assert_problem(await api.delete(f"{PINS}?topic="), Error.INVALID_REQUEST, field="topic")
    assert_problem(await api.delete(f"{PINS}?topics=a"), Error.INVALID_REQUEST, field="topics")
    assert_problem(await api.get(f"{PINS}?cursor=WzFd"), Error.INVALID_REQUEST, field="cursor")


async def test_reading_takes_describe_and_changing_alter_offsets(
    api: httpx.AsyncClient, client_with: ClientWith
) -> None:
    reader = await client_with("describe:group:g")
    assert (await reader.get(PINS)).status_code == 200
    assert_problem(await reader.post(PINS, json={}), Error.GROUP_AUTHORIZATION_FAILED)
    assert_problem(await reader.delete(PINS), Error.GROUP_AUTHORIZATION_FAILED)
    changer = await client_with("alter-offsets:group:g")
    assert (await changer.post(PINS, json={})).status_code == 200
    assert (await changer.delete(PINS)).status_code == 204
    stranger = await client_with("describe:group:other")
    assert_problem(await stranger.get(PINS), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await stranger.post(PINS, json={}), Error.GROUP_ID_NOT_FOUND)


async def test_the_page_tells_why_an_offset_does_not_expire(
    api: httpx.AsyncClient, runtime: Runtime, service: GroupService
) -> None:
    await put_pending(runtime, "g", "orders", 0)
    await commit(runtime, "g", "bills", 1, retention_time_ms=1_000)
    await commit(runtime, "g", "bills", 2, retention_time_ms=2**63 - 1)
    assert await retention(api) == {
        ("orders", 0): (None, "pending", False, True),
        ("bills", 0): (rfc3339(START_MS + WEEK_MS), None, False, False),
        ("bills", 1): (rfc3339(START_MS + 1_000), None, False, False),
        ("bills", 2): ("9999-12-31T23:59:59.999Z", None, False, False),
    }
    await service.put(ClassicGroup("bare"))
    assert (await api.get("/v1/groups/bare/offsets")).json()["offsets"] == []
