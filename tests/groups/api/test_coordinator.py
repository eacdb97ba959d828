"""GET /v1/coordinator."""

from __future__ import annotations

import httpx
import pytest

from kcoord.config import Config
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith


async def test_every_group_asked_is_answered_in_order(api: httpx.AsyncClient) -> None:
    response = await api.get("/v1/coordinator", params={"group_id": ["foo", "日本", "foo"]})
    assert response.status_code == 200
    here = {
        "node_id": "127.0.0.1:8000",
        "host": "127.0.0.1",
        "port": 8000,
        "url": "http://127.0.0.1:8000",
        "error_code": 0,
        "error": "NONE",
    }
    assert response.json() == {
        "error_code": 0,
        "coordinators": [
            {"key": "foo", "partition": 24, **here},
            {"key": "日本", "partition": 47, **here},
            {"key": "foo", "partition": 24, **here},
        ],
    }


class TestAdvertised:
    @pytest.fixture
    def config(self) -> Config:
        return Config({"advertised.url": "https://groups.example.org/", "offsets.topic.num.partitions": 3})

    async def test_clients_are_sent_where_the_settings_say(self, api: httpx.AsyncClient) -> None:
        response = await api.get("/v1/coordinator?group_id=group-1")
        (found,) = response.json()["coordinators"]
        assert (found["host"], found["port"], found["url"]) == (
            "groups.example.org",
            443,
            "https://groups.example.org",
        )
        assert found["partition"] == 2


async def test_the_empty_group_id_has_a_partition_too(api: httpx.AsyncClient) -> None:
    (found,) = (await api.get("/v1/coordinator?group_id=")).json()["coordinators"]
    assert (found["key"], found["partition"], found["error"]) == ("", 0, "NONE")


async def test_what_cannot_be_told_is_an_error_of_that_key(client_with: ClientWith) -> None:
    client = await client_with("describe:group:mine")
    response = await client.get("/v1/coordinator", params={"group_id": ["mine", "theirs", "a\n", "a/b"]})
    assert [found["error_code"] for found in response.json()["coordinators"]] == [
        0,
        Error.GROUP_AUTHORIZATION_FAILED.code,
        Error.INVALID_GROUP_ID.code,
        Error.INVALID_GROUP_ID.code,
    ]


@pytest.mark.parametrize("query", ["", "?group_id=a&" * 1 + "x=1", "?group_id=%ff", "?" + "group_id=a&" * 1001])
async def test_bad_queries_are_refused(api: httpx.AsyncClient, query: str) -> None:
    assert_problem(await api.get(f"/v1/coordinator{query}"), Error.INVALID_REQUEST)
