"""Listing, describing and deleting groups, and what happened to them."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from groups.core.model.group import partition_of
from groups.core.model.types import ClassicGroup, GroupState, JoinTimer, PendingIds
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.door.http.types import rfc3339
from kcoord.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from kcoord.protocol.errors import Error
from tests.conftest import START_MS
from tests.support.api import Members, assert_problem
from tests.support.fixtures import ClientWith
from tests.support.rest_groups import group, member, stable_group

GROUPS = "/v1/groups"


async def ids(client: httpx.AsyncClient, query: str = "") -> list[str]:
    """Group ids of a list."""
    response = await client.get(f"{GROUPS}{query}")
    assert response.status_code == 200, response.text
    return [entry["group_id"] for entry in response.json()["groups"]]


async def all_ids(client: httpx.AsyncClient, query: str) -> list[str]:
    """Group ids of a list that is read in pages of two."""
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await client.get(f"{GROUPS}?limit=2{query}{cursor}")).json()
        assert len(page["groups"]) <= 2
        seen += [entry["group_id"] for entry in page["groups"]]
        if page["next_cursor"] is None:
            return seen
        cursor = f"&cursor={page['next_cursor']}"


@pytest.fixture
async def five(service: GroupService, clock: VirtualClock) -> None:
    """Five groups, each changed a second after the one before."""
    for stored in (
        stable_group("billing", members=3),
        group("Audit", GroupState.EMPTY),
        group("billing-old", GroupState.EMPTY, protocol_type="consumer", generation_id=4),
        group("stock", GroupState.PREPARING_REBALANCE, member("s1", 7, topic="stock", client_id="picker")),
        stable_group("zebra", members=1),
    ):
        await service.put(stored)
        clock.advance(1_000)


async def test_a_line_of_the_list(api: httpx.AsyncClient, five: None) -> None:
    page = (await api.get(f"{GROUPS}?q=BILL")).json()
    assert page["next_cursor"] is None
    assert page["groups"] == [
        {
            "group_id": "billing",
            "type": "classic",
            "state": "Stable",
            "state_since": rfc3339(START_MS),
            "held_until": None,
            "members": 3,
            "generation_id": 1,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "topics": ["orders"],
            "labels": {},
            "coordinator_partition": partition_of("billing", 50),
            "lag": None,
            "unknown_partitions": 0,
            "time_lag_ms": None,
            "time_lag_at_least_ms": None,
            "lag_sampled_at": None,
            "verdicts": [],
            "judged_at": None,
            "updated_at": rfc3339(START_MS),
        },
        {
            "group_id": "billing-old",
            "type": "classic",
            "state": "Empty",
            "state_since": rfc3339(START_MS),
            "held_until": None,
            "members": 0,
            "generation_id": 4,
            "protocol_type": "consumer",
            "protocol_name": "",
            "topics": [],
            "labels": {},
            "coordinator_partition": partition_of("billing-old", 50),
            "lag": None,
            "unknown_partitions": 0,
            "time_lag_ms": None,
            "time_lag_at_least_ms": None,
            "lag_sampled_at": None,
            "verdicts": [],
            "judged_at": None,
            "updated_at": rfc3339(START_MS + 2_000),
        },
    ]


async def test_the_protocol_is_told_of_stable_groups_only(api: httpx.AsyncClient, five: None) -> None:
    (stock,) = (await api.get(f"{GROUPS}?q=stock")).json()["groups"]
    assert (stock["state"], stock["protocol_type"], stock["protocol_name"]) == ("PreparingRebalance", "consumer", "")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("state=STABLE", {"billing", "zebra"}),
        ("state=%20stable%20&state=Empty", {"billing", "zebra", "Audit", "billing-old"}),
        ("state=Invalid", set()),
        ("state=", set()),
        ("state=Invalid&state=PreparingRebalance", {"stock"}),
        ("type=Classic&state=preparingrebalance", {"stock"}),
        ("type=%20classic", set()),
        ("type=consumer", set()),
        ("topic=stock", {"stock"}),
        ("topic=nope", set()),
        ("member=picker", {"stock"}),
        ("member=m2", {"billing"}),
        ("q=%25", set()),
        ("q=billing&state=Empty", {"billing-old"}),
    ],
)
async def test_filters(api: httpx.AsyncClient, five: None, query: str, expected: set[str]) -> None:
    assert set(await ids(api, f"?{query}")) == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("group_id", ["Audit", "billing", "billing-old", "stock", "zebra"]),
        ("-updated_at", ["zebra", "stock", "billing-old", "Audit", "billing"]),
        ("state", ["Audit", "billing-old", "stock", "billing", "zebra"]),
        ("members", ["Audit", "billing-old", "stock", "zebra", "billing"]),
        ("-members", ["billing", "stock", "zebra", "Audit", "billing-old"]),
    ],
)
async def test_orders_and_their_pages(api: httpx.AsyncClient, five: None, sort: str, expected: list[str]) -> None:
    found = await all_ids(api, f"&sort={sort}")
    if sort == "-updated_at":
        assert found == expected
    else:  # how upper and lower case compare is the database's business; equal keys must stay together
        assert sorted(found) == sorted(expected)
        assert [name for name in found if name != "Audit"] == [name for name in expected if name != "Audit"]


async def test_a_cursor_continues_its_own_list_only(api: httpx.AsyncClient, five: None) -> None:
    cursor = (await api.get(f"{GROUPS}?limit=1")).json()["next_cursor"]
    for query in (
        f"sort=state&cursor={cursor}",
        f"sort=members&cursor={cursor}",
        "cursor=",
        "cursor=%C3%A9",
        "cursor=eA",
    ):
        assert_problem(await api.get(f"{GROUPS}?{query}"), Error.INVALID_REQUEST, field="cursor")


async def test_the_list_is_filtered_and_never_refused(five: None, client_with: ClientWith) -> None:
    for rules, expected in (
        (["describe:group:billing*"], ["billing", "billing-old"]),
        (["read:group:stock", "delete:group:zebra", "describe:topic:*"], ["stock", "zebra"]),
        (["describe:topic:*"], []),
    ):
        client = await client_with(*rules)
        for sort in ("group_id", "state", "-updated_at", "members"):
            assert sorted(await all_ids(client, f"&sort={sort}")) == expected


async def test_a_stable_group_in_full(api: httpx.AsyncClient, service: GroupService) -> None:
    first = member("m0", 0, 2, instance_id="i0")
    opaque = replace(member("m1"), protocols=(replace(first.protocols[0], metadata=b"\xff"),), assignment=b"\xfe")
    await service.put(
        group("g", GroupState.STABLE, first, opaque, pending_join=PendingIds({"new-1": START_MS + 300_000}))
    )
    found = (await api.get(f"{GROUPS}/g")).json()
    members = found.pop("members")
    assert found == {
        "group_id": "g",
        "type": "classic",
        "state": "Stable",
        "state_since": rfc3339(START_MS),
        "generation_id": 1,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": "m0",
        "coordinator": {
            "partition": partition_of("g", 50),
            "node_id": "127.0.0.1:8000",
            "host": "127.0.0.1",
            "port": 8000,
            "url": "http://127.0.0.1:8000",
        },
        "pending_member_ids": ["new-1"],
        "join_deadline": None,
        "sync_deadline": None,
        "hold": None,
        "labels": {},
        "wake_at": rfc3339(START_MS + 45_000),
    }
    assert members[0] == {
        "member_id": "m0",
        "group_instance_id": "i0",
        "client_id": "client-m0",
        "client_host": "192.0.2.1",
        "client_software_name": None,
        "client_software_version": None,
        "state": "stable",
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "protocols": ["range"],
        "metadata": base64.b64encode(encode_subscription(Subscription(("orders",)))).decode(),
        "subscription": {"topics": ["orders"], "owned_partitions": {}, "generation_id": -1, "rack_id": None},
        "assignment": base64.b64encode(encode_assignment(Assignment({"orders": (0, 2)}))).decode(),
        "partitions": {"orders": [0, 2]},
        "last_heartbeat_at": rfc3339(START_MS),
        "session_expires_at": rfc3339(START_MS + 45_000),
    }
    assert members[1]["group_instance_id"] is None
    assert (members[1]["metadata"], members[1]["subscription"]) == ("/w==", None)
    assert (members[1]["assignment"], members[1]["partitions"]) == ("/g==", None)


@pytest.mark.parametrize(
    ("state", "changes", "expected"),
    [
        (GroupState.PREPARING_REBALANCE, {}, "not_rejoined"),
        (GroupState.PREPARING_REBALANCE, {"join_parked_until": START_MS + 9}, "awaiting_join"),
        (GroupState.COMPLETING_REBALANCE, {"pending_sync": True}, "pending_sync"),
        (GroupState.COMPLETING_REBALANCE, {"sync_parked_until": START_MS + 9}, "awaiting_sync"),
        (GroupState.STABLE, {}, "stable"),
    ],
)
async def test_what_a_member_does(
    api: httpx.AsyncClient, service: GroupService, state: GroupState, changes: dict[str, Any], expected: str
) -> None:
    stored = group("g", state, member("m0", 0, **changes))
    if state is GroupState.PREPARING_REBALANCE:
        stored = replace(stored, join_timer=JoinTimer(START_MS + 60_000))
    await service.put(stored)
    found = (await api.get(f"{GROUPS}/g")).json()
    assert found["members"][0]["state"] == expected
    stable = state is GroupState.STABLE
    assert bool(found["protocol_name"]) is stable
    assert bool(found["members"][0]["metadata"]) is stable
    assert found["members"][0]["partitions"] == {"orders": [0]}
    assert found["join_deadline"] == (rfc3339(START_MS + 60_000) if stored.join_timer else None)


async def test_a_group_without_members(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(ClassicGroup("g", state_since=START_MS))
    found = (await api.get(f"{GROUPS}/g")).json()
    assert (found["state"], found["protocol_type"], found["leader"]) == ("Empty", "", "")
    assert (found["members"], found["wake_at"]) == ([], None)


@pytest.mark.parametrize("group_id", ["a b", "ä", "日本", "😀", "%", "a?b#c", "...", ".a", "x" * 255, "offsets"])
async def test_group_ids_are_any_text_percent_encoded(
    api: httpx.AsyncClient, service: GroupService, group_id: str
) -> None:
    await service.put(ClassicGroup(group_id))
    path = f"{GROUPS}/{quote(group_id, safe='')}"
    assert (await api.get(path)).json()["group_id"] == group_id
    assert (await api.get(f"{path}/offsets")).json()["group_id"] == group_id
    assert (await api.delete(path)).status_code == 204
    assert (await api.get(f"{path}/events")).json()["events"][0]["kind"] == "group_deleted"


BAD_IDS = ["", "a%2Fb", "a%2Foffsets", "a%2Fevents", "a%00", "a%0A", "%7F", "%C2%85", "%FF", "x" * 256, "%2E", "%2E%2E"]


PATHS1: list[str] = ["", "/offsets", "/events"]


async def test_other_group_ids_are_told_they_are_bad(api: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    for segment in BAD_IDS:
        for rest in PATHS1:
            with subtests.test(f"{segment} {rest}"):
                for method in ("GET", "DELETE", "POST"):
                    assert_problem(await api.request(method, f"{GROUPS}/{segment}{rest}"), Error.INVALID_GROUP_ID)


async def test_an_encoded_slash_is_no_path(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(ClassicGroup("a"))
    assert_problem(await api.delete(f"{GROUPS}/a%2Foffsets"), Error.INVALID_GROUP_ID)
    assert_problem(await api.get(f"{GROUPS}/a/nope"), Error.INVALID_REQUEST, status=404)
    assert_problem(await api.delete(f"{GROUPS}/a/nope"), Error.INVALID_REQUEST, status=404)
    assert (await api.get(f"{GROUPS}/a")).status_code == 200


async def test_only_empty_groups_are_deleted(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(stable_group("g"))
    body = assert_problem(await api.delete(f"{GROUPS}/g"), Error.NON_EMPTY_GROUP)
    assert "Stable" in body["detail"]
    await service.put(ClassicGroup("empty"))
    deleted = await api.delete(f"{GROUPS}/empty")
    assert (deleted.status_code, deleted.content) == (204, b"")
    for method in ("GET", "DELETE"):
        assert_problem(await api.request(method, f"{GROUPS}/empty"), Error.GROUP_ID_NOT_FOUND)


async def test_deleting_takes_the_right_to(service: GroupService, client_with: ClientWith) -> None:
    await service.put(ClassicGroup("g"))
    reader = await client_with("read:group:*", "delete:group:other", "delete:topic:g")
    assert_problem(await reader.delete(f"{GROUPS}/g"), Error.GROUP_AUTHORIZATION_FAILED)
    stranger = await client_with("delete:group:other")
    assert_problem(await stranger.delete(f"{GROUPS}/g"), Error.GROUP_ID_NOT_FOUND)
    remover = await client_with("delete:group:g")
    assert (await remover.delete(f"{GROUPS}/g")).status_code == 204


async def test_what_one_may_not_see_looks_like_what_does_not_exist(
    service: GroupService, client_with: ClientWith
) -> None:
    await service.put(stable_group("g"))
    stranger = await client_with("describe:group:other", "describe:topic:*")
    for path in ("g", "nope", "g/offsets", "nope/offsets", "g/events", "nope/events"):
        body = assert_problem(await stranger.get(f"{GROUPS}/{path}"), Error.GROUP_ID_NOT_FOUND)
        name = path.partition("/")[0]
        assert body["detail"] == f"there is no group {name!r}"


async def test_a_rebalance_told_afterwards(
    api: httpx.AsyncClient,
    members: Members,
    clock: VirtualClock,
) -> None:
    joined = await members.stable()
    path = f"{GROUPS}/g/events"
    first = (await api.get(path)).json()
    kinds = [event["kind"] for event in reversed(first["events"])]
    assert kinds == [
        "group_created",
        "member_joined",
        "rebalance_started",
        "rebalance_completed",
        "assignment_stored",
    ]
    assert first["next_cursor"] is None
    assert first["events"][0]["at"] == rfc3339(clock.now_ms())
    assert first["events"][3]["member_id"] == joined["member_id"]
    completed = (await api.get(f"{path}?kind=rebalance_completed&kind=group_emptied")).json()["events"]
    assert [(event["generation_id"], event["detail"]["protocol_name"]) for event in completed] == [(1, "range")]
    since = quote(rfc3339(START_MS + 3_000) or "")
    later = (await api.get(f"{path}?from={since}")).json()["events"]
    assert [event["kind"] for event in later] == ["assignment_stored", "rebalance_completed"]
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await api.get(f"{path}?limit=2{cursor}")).json()
        seen += [event["kind"] for event in page["events"]]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert seen == kinds[::-1]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("kind=nope", "kind"),
        ("from=yesterday", "from"),
        ("from=2026-01-31", "from"),
        ("from=2026-01-31T12:00:00", "from"),
        ("from=2026-02-30T12:00:00Z", "from"),
        ("from=2026-01-31T12:00:00+01:00", "from"),
        ("since=2026-01-31T12:00:00Z", "since"),
        ("cursor=WyJ4Il0", "cursor"),
    ],
)
async def test_events_of_a_bad_query(api: httpx.AsyncClient, query: str, field: str) -> None:
    assert_problem(await api.get(f"{GROUPS}/g/events?{query}"), Error.INVALID_REQUEST, field=field)


async def test_an_instant_may_have_an_offset(api: httpx.AsyncClient, service: GroupService) -> None:
    await service.put(ClassicGroup("g"))
    await api.delete(f"{GROUPS}/g")  # at 22:13:20Z
    for instant, count in (("2023-11-14T23:13:20.000%2B01:00", 1), ("2023-11-14t22:13:20.001z", 0)):
        assert len((await api.get(f"{GROUPS}/g/events?from={instant}")).json()["events"]) == count


async def test_a_stopped_coordinator_says_so(api: httpx.AsyncClient, service: GroupService) -> None:
    service.active = False
    for path in ("", "/g", "/g/offsets"):
        assert_problem(await api.get(f"{GROUPS}{path}"), Error.COORDINATOR_NOT_AVAILABLE)
