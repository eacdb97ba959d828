"""GET /v1/coordinator."""

from __future__ import annotations

import httpx
import pytest

from groups.nodes.directory import named_by
from kcoord.config import Config
from kcoord.door.http.addresses import advertised_url
from kcoord.protocol.errors import Error
from tests.support.api import Members, assert_problem
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


class TestListeningEverywhere:
    @pytest.fixture(params=["0.0.0.0", "::"])
    def config(self, request: pytest.FixtureRequest) -> Config:
        return Config({"host": request.param})

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ("10.0.0.7:8123", ("10.0.0.7:8123", "10.0.0.7", 8123, "http://10.0.0.7:8123")),
            ("groups.example", ("groups.example:80", "groups.example", 80, "http://groups.example")),
            ("[fd00::7]:8000", ("[fd00::7]:8000", "fd00::7", 8000, "http://[fd00::7]:8000")),
        ],
    )
    async def test_the_answer_is_the_address_by_which_the_request_came(
        self, api: httpx.AsyncClient, asked: str, expected: tuple[str, str, int, str]
    ) -> None:
        response = await api.get("/v1/coordinator?group_id=g", headers={"Host": asked})
        (found,) = response.json()["coordinators"]
        assert (found["node_id"], found["host"], found["port"], found["url"]) == expected

    @pytest.mark.parametrize("asked", ["bad/host", "[::::]:8000", "host:99999", "host:0", ""])
    async def test_what_is_no_address_is_not_repeated(self, api: httpx.AsyncClient, config: Config, asked: str) -> None:
        response = await api.get("/v1/coordinator?group_id=g", headers={"Host": asked})
        (found,) = response.json()["coordinators"]
        assert found["url"] == {"0.0.0.0": "http://127.0.0.1:8000", "::": "http://[::1]:8000"}[config.str("host")]

    async def test_so_it_is_in_the_description_of_a_group(self, api: httpx.AsyncClient, members: Members) -> None:
        await members.stable("g")
        response = await api.get("/v1/groups/g", headers={"Host": "localhost:8123"})
        assert response.json()["coordinator"]["url"] == "http://localhost:8123", response.text


@pytest.mark.parametrize("host", ["::1", "fe80::7"])
async def test_an_address_with_colons_is_put_in_brackets(host: str) -> None:
    url = advertised_url(Config({"host": host}), "http://elsewhere")
    assert url == f"http://[{host}]:8000"
    found = named_by(url)
    assert (found.node_id, found.host, found.port) == (f"[{host}]:8000", host, 8000)


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
