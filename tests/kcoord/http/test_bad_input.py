"""What every endpoint refuses, in one table over all of them.

The shape of a request is checked against its struct; what is checked here is that each endpoint does so and names the
field. What an endpoint makes of well-formed requests is tested in its own file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest

from kcoord.config import Config
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem, join_body

JSON = {"content-type": "application/json"}
SUBSCRIPTION = {
    "topics": ["orders"],
    "owned_partitions": {"orders": [0]},
    "generation_id": 1,
    "rack_id": "r",
    "user_data": "",
}

SETTLEMENT = {
    "lock": 1,
    "accept": [[0, 0]],
    "gap": [[1, 1]],
    "release": [[2, 2]],
    "reject": [[3, 3]],
    "renew": [[4, 4]],
    "delay_ms": 1,
    "error": "e",
}

BODIES: dict[str, dict[str, Any]] = {
    "/v1/groups/g/join": join_body(
        "m", group_instance_id="i", reason="r", protocols=[{"name": "range", "subscription": SUBSCRIPTION}]
    ),
    "/v1/groups/g/sync": {
        "member_id": "m",
        "generation_id": 1,
        "group_instance_id": "i",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "m", "partitions": {"orders": [0]}, "user_data": ""}],
        "max_wait_ms": 0,
    },
    "/v1/groups/g/heartbeat": {"member_id": "m", "generation_id": 1, "group_instance_id": "i"},
    "/v1/groups/g/leave": {"members": [{"member_id": "m", "group_instance_id": "i", "reason": "r"}]},
    "/v1/groups/g/consumer-heartbeat": {
        "member_id": "m",
        "member_epoch": 1,
        "topic_partitions": [{"topic": "orders", "partitions": [0]}],
        "instance_id": "i",
        "rack_id": "r",
        "client_id": "c",
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ["orders"],
        "subscribed_topic_regex": "o.*",
        "server_assignor": "range",
        "max_wait_ms": 0,
    },
    "/v1/groups/g/share-heartbeat": {
        "member_id": "m",
        "member_epoch": 1,
        "rack_id": "r",
        "client_id": "c",
        "subscribed_topic_names": ["orders"],
    },
    "/v1/groups/g/acquire": {
        "member_id": "m",
        "member_epoch": 1,
        "max_records": 1,
        "max_wait_ms": 0,
        "lock_ms": 20_000,
        "settle": [SETTLEMENT],
        "ends": [{"topic": "orders", "partition": 0, "end_offset": 1}],
    },
    "/v1/groups/g/settle": {"member_id": "m", "items": [SETTLEMENT]},
    "/v1/heartbeats": {
        "heartbeats": [{"group_id": "g", "member_id": "m", "generation_id": 1, "group_instance_id": "i"}]
    },
    "/v1/assign": {
        "assignor": "range",
        "members": [{"member_id": "m", "group_instance_id": "i", "metadata": "", "subscription": SUBSCRIPTION}],
    },
    "/v1/groups/g/offsets/commit": {
        "generation_id_or_member_epoch": 1,
        "member_id": "m",
        "group_instance_id": "i",
        "retention_time_ms": -1,
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    {"partition": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": "x"}
                ],
            }
        ],
    },
    "/v1/groups/g/offsets/txn-commit": {
        "transactional_id": "t",
        "producer_id": 1,
        "producer_epoch": 0,
        "generation_id": 1,
        "member_id": "m",
        "group_instance_id": "i",
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    {"partition": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": "x"}
                ],
            }
        ],
    },
    "/v1/transactions/t/end": {"producer_id": 1, "producer_epoch": 0, "committed": True},
    "/v1/groups/g/offsets/fetch": {
        "member_id": "m",
        "member_epoch": 1,
        "topics": [{"name": "orders", "partitions": [0]}],
        "require_stable": False,
    },
    "/v1/offsets/fetch": {
        "groups": [
            {"group_id": "g", "member_id": "m", "member_epoch": 1, "topics": [{"name": "orders", "partitions": [0]}]}
        ],
        "require_stable": False,
    },
}
"""A valid body of every endpoint that has one, with every field in it that may stand together."""

PATHS = tuple(BODIES)

Place = tuple[str | int, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every field of a body that holds no object or list, by its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*place, index))
    else:
        yield place, value


def changed(body: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """A copy of `body` with another value at `place`."""
    copy = deepcopy(body)
    inner: Any = copy
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return copy


def named(place: Place) -> str:
    """How an error calls a place, as far as the decoder can tell (it does not name the keys of a map)."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".").replace(".orders[", "[...][")


IN_64_BITS = {"committed_offset", "retention_time_ms", "producer_id", "end_offset", "lock", *SETTLEMENT} - {"delay_ms"}


def is_large(place: Place) -> bool:
    """Whether a field takes numbers of 64 bits: it, or the list of ranges that it is in."""
    return next(step for step in reversed(place) if isinstance(step, str)) in IN_64_BITS


def test_the_table_has_every_endpoint() -> None:
    from kcoord.asgi import DATA_PLANE_ROUTES

    names = {"{group_id}": "g", "{transactional_id}": "t"}
    with_body = {
        re.sub(r"{\w+}", lambda name: names[name[0]], endpoint.path)
        for endpoint in DATA_PLANE_ROUTES
        if endpoint.request
    }
    assert with_body == set(PATHS)


@pytest.mark.parametrize("path", PATHS)
async def test_the_bodies_of_the_table_are_well_formed(api: httpx.AsyncClient, path: str) -> None:
    assert (await api.post(path, json=BODIES[path])).json().get("error") != "INVALID_REQUEST"


@pytest.mark.parametrize("path", PATHS)
async def test_unknown_fields_are_named(api: httpx.AsyncClient, path: str) -> None:
    response = await api.post(path, json={**BODIES[path], "protocls": 1})
    assert_problem(response, Error.INVALID_REQUEST, field="protocls")


@pytest.mark.parametrize("path", PATHS)
async def test_unknown_fields_further_in_are_named(api: httpx.AsyncClient, path: str) -> None:
    body = deepcopy(BODIES[path])
    lists = ((name, value) for name, value in body.items() if isinstance(value, list) and isinstance(value[0], dict))
    name, items = next(lists, ("", None))
    if items is None:
        body["x"] = [{"y": 1}]
        name, where = "x", "x"
    else:
        items[0]["typo"] = None
        where = f"{name}[0].typo"
    assert_problem(await api.post(path, json=body), Error.INVALID_REQUEST, field=where)


@pytest.mark.parametrize("path", PATHS)
async def test_missing_fields_are_named(api: httpx.AsyncClient, path: str) -> None:
    response = await api.post(path, json={})
    if path == "/v1/groups/g/offsets/fetch":  # nothing given: everything
        assert response.status_code == 200
        return
    body = assert_problem(response, Error.INVALID_REQUEST)
    assert body["field"] in BODIES[path]
    assert "missing" in body["detail"]


@pytest.mark.parametrize("path", PATHS)
async def test_wrong_types_are_named(api: httpx.AsyncClient, path: str) -> None:
    for place, value in leaves(BODIES[path]):
        for wrong in ([], {}, 1.5, "true" if isinstance(value, bool) else True):
            response = await api.post(path, json=changed(BODIES[path], place, wrong))
            assert_problem(response, Error.INVALID_REQUEST, field=named(place))


@pytest.mark.parametrize("path", PATHS)
async def test_numbers_out_of_range_are_named(api: httpx.AsyncClient, path: str) -> None:
    for place, value in leaves(BODIES[path]):
        if isinstance(value, str | bool):
            continue
        for wrong in (2**63, -(2**63) - 1, 10**30) if is_large(place) else (2**31, -(2**31) - 1, 2**63):
            response = await api.post(path, json=changed(BODIES[path], place, wrong))
            assert_problem(response, Error.INVALID_REQUEST, field=named(place))


@pytest.mark.parametrize("path", PATHS)
async def test_characters_that_cannot_be_stored_are_named(api: httpx.AsyncClient, path: str) -> None:
    for place, value in leaves(BODIES[path]):
        if not isinstance(value, str):
            continue
        for escape, what in (("\\u0000", "NUL"), ("\\ud800", "surrogate"), ("\\uDC00x", "surrogate")):
            content = json.dumps(changed(BODIES[path], place, "HERE")).replace("HERE", f"a{escape}")
            response = await api.post(path, content=content, headers=JSON)
            where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
            assert what in assert_problem(response, Error.INVALID_REQUEST, field=where)["detail"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_field_given_twice_is_named(api: httpx.AsyncClient, path: str) -> None:
    name, value = next(iter(BODIES[path].items()))
    content = json.dumps(BODIES[path])[:-1] + f", {json.dumps(name)}: {json.dumps(value)}}}"
    response = await api.post(path, content=content, headers=JSON)
    assert_problem(response, Error.INVALID_REQUEST, field=name)


NO_OBJECTS = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"1",
    b"{} {}",
    b"{'member_id': 1}",
    b'{"member_id": NaN}',
    b"\xff\xfe{}",
    b'{"member_id": "\xff"}',
    b"\xef\xbb\xbf{}",
    b'{"member_id": "a\nb"}',
    b"[" * 100_000,
    b'{"member_id":' * 50_000,
    b'{"member_id": "\\u0000", "x": ' + b"[" * 100_000,
    b'{"\\u0000": 1}',
    b'{"\\ud800": 1}',
)


@pytest.mark.parametrize("path", PATHS)
async def test_what_is_no_json_object_is_refused(api: httpx.AsyncClient, path: str) -> None:
    for content in NO_OBJECTS:
        assert_problem(await api.post(path, content=content, headers=JSON), Error.INVALID_REQUEST)


OTHER_TYPES: tuple[dict[str, str], ...] = (
    {},
    {"content-type": "text/plain"},
    {"content-type": "application/x-www-form-urlencoded"},
    {"content-type": "application/jsonx"},
    {"content-type": "application/problem+json"},
    {"content-type": "application/json; charset=latin-1"},
    {"content-type": "application/json; profile=x"},
    {"content-type": "application/json", "content-encoding": "gzip"},
)


@pytest.mark.parametrize("path", PATHS)
async def test_other_content_types_are_refused(api: httpx.AsyncClient, path: str) -> None:
    for headers in OTHER_TYPES:
        response = await api.post(path, content=json.dumps(BODIES[path]), headers=headers)
        assert_problem(response, Error.INVALID_REQUEST, status=415)


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8";']
)
async def test_json_in_utf_8_is_accepted(api: httpx.AsyncClient, content_type: str) -> None:
    response = await api.post("/v1/heartbeats", content=b'{"heartbeats": []}', headers={"content-type": content_type})
    assert response.status_code == 200


@pytest.mark.parametrize("path", PATHS)
async def test_unknown_parameters_are_refused(api: httpx.AsyncClient, path: str) -> None:
    assert_problem(await api.post(f"{path}?wait=1", json=BODIES[path]), Error.INVALID_REQUEST, field="wait")


GROUP_CALLS = ("join", "sync", "heartbeat", "leave", "offsets/commit", "offsets/fetch")


BAD_GROUP_IDS = (
    *("", "/", "a/b", "a%2Fb", "a%2fb", "%00", "a%0Ab", "%7F", "%C2%85", "%FF", "%ED%A0%80", "%zz", "100%"),
    "x" * 256,
)
GOOD_GROUP_IDS = (
    *("%20", "a%20b", "%E6%97%A5%E6%9C%AC", "%25zz", "join", "a%3Fb", "*"),
    "x" * 255,
    "%F0%9F%98%80" * 255,
)


def url_of(group_id: str, call: str) -> httpx.URL:
    """The address of a call, with the group id as it stands: the client does not mend it."""
    return httpx.URL(scheme="http", host="testserver", raw_path=f"/v1/groups/{group_id}/{call}".encode())


@pytest.mark.parametrize("call", GROUP_CALLS)
async def test_bad_group_ids_are_refused(api: httpx.AsyncClient, call: str) -> None:
    for group_id in BAD_GROUP_IDS:
        response = await api.post(url_of(group_id, call), json=BODIES[f"/v1/groups/g/{call}"])
        assert_problem(response, Error.INVALID_GROUP_ID)


@pytest.mark.parametrize("call", GROUP_CALLS)
async def test_all_other_group_ids_are_accepted(api: httpx.AsyncClient, call: str) -> None:
    for group_id in GOOD_GROUP_IDS:
        response = await api.post(url_of(group_id, call), json=BODIES[f"/v1/groups/g/{call}"])
        error = response.json().get("error")
        assert error not in ("INVALID_GROUP_ID", "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"), group_id


@pytest.mark.parametrize("call", ["offsets/commit", "offsets/fetch"])
async def test_differs_from_kafka_the_empty_group_id_commits_and_fetches_nothing(
    api: httpx.AsyncClient, call: str
) -> None:
    response = await api.post(url_of("", call), json=BODIES[f"/v1/groups/g/{call}"])
    assert_problem(response, Error.INVALID_GROUP_ID)


class TestLimit:
    @pytest.fixture
    def config(self) -> Config:
        return Config({"token.cache.ms": 600_000})

    @pytest.mark.parametrize("path", PATHS)
    async def test_bodies_above_the_limit_are_refused(self, api: httpx.AsyncClient, path: str) -> None:
        content = json.dumps(BODIES[path]).encode().ljust(1_048_577)
        response = await api.post(path, content=content, headers=JSON)
        assert_problem(response, Error.INVALID_REQUEST, status=413)

    async def test_bodies_of_unknown_length_are_counted(self, api: httpx.AsyncClient) -> None:
        sent = 0

        async def chunks() -> Any:
            nonlocal sent
            for _ in range(100):
                sent += 1
                yield b" " * 65_536

        response = await api.post("/v1/heartbeats", content=chunks(), headers=JSON)
        assert_problem(response, Error.INVALID_REQUEST, status=413)
        assert sent <= 18, "reading went on after the limit"

    async def test_a_body_of_just_the_limit_is_read(self, api: httpx.AsyncClient) -> None:
        content = b'{"heartbeats": []}'.ljust(1_048_576)
        assert (await api.post("/v1/heartbeats", content=content, headers=JSON)).status_code == 200

    async def test_the_control_plane_has_the_same_limit(self, api: httpx.AsyncClient) -> None:
        response = await api.post("/v1/topics", content=b"{}".ljust(1_048_577), headers=JSON)
        assert_problem(response, Error.INVALID_REQUEST, status=413)
