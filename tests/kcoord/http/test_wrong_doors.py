"""Requests to a wrong host or path, or with fields that nobody knows: the error says what to do."""

from __future__ import annotations

import httpx
import pytest

from kcoord.protocol.errors import Error
from tests.support.api import assert_problem


@pytest.mark.parametrize("path", ["/v1/groups", "/groups", "/nothing"])
async def test_a_wrong_host_names_the_setting(api: httpx.AsyncClient, path: str) -> None:
    headers = {"host": "elsewhere.example", "accept": "application/json"}
    body = assert_problem(await api.get(path, headers=headers), Error.INVALID_REQUEST)
    assert "KCOORD_ALLOWED_HOSTS" in body["detail"]


@pytest.mark.parametrize("path", ["/groups", "/"])
async def test_a_wrong_host_names_the_setting_on_a_page(api: httpx.AsyncClient, path: str) -> None:
    del api.headers["authorization"]
    answer = await api.get(path, headers={"host": "elsewhere.example", "accept": "text/html"})
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")
    assert "KCOORD_ALLOWED_HOSTS" in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"accept": "application/json"}, {"content-type": "application/json"}, {"authorization": "Bearer no-token"}],
    ids=["accept", "content type", "token"],
)
@pytest.mark.parametrize("path", ["/groups", "/groups/g/join", "/topics", "/nothing/here"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_program_at_a_path_of_pages(
    api: httpx.AsyncClient, headers: dict[str, str], path: str, method: str
) -> None:
    del api.headers["authorization"]
    body = assert_problem(await api.request(method, path, headers=headers), Error.INVALID_REQUEST, status=404)
    assert f"/v1{path}" in body["detail"]


@pytest.mark.parametrize(
    ("path", "sent", "field", "known"),
    [
        ("groups/g/join", {"sesion_timeout_ms": 1}, "sesion_timeout_ms", "session_timeout_ms"),
        ("groups/g/offsets/commit", {"topics": [{"nme": "t"}]}, "topics[0].nme", "topic_id"),
        (
            "groups/g/offsets/commit",
            {"topics": [{"name": "t", "partitions": [{"offset": 1}]}]},
            "topics[0].partitions[0].offset",
            "committed_offset",
        ),
        ("assign", {"assignor": "range", "members": [{"subscription": {"topic": []}}]},
         "members[0].subscription.topic", "owned_partitions"),
        ("topics", {"name": "t", "partition": 1}, "partition", "partitions"),
    ],
)  # fmt: skip
async def test_an_unknown_field_lists_the_known_ones(
    api: httpx.AsyncClient, path: str, sent: dict[str, object], field: str, known: str
) -> None:
    body = assert_problem(await api.post(f"/v1/{path}", json=sent), Error.INVALID_REQUEST)
    assert body["field"] == field
    assert known in body["detail"].partition("the fields are ")[2].rstrip(")").split(", ")


@pytest.mark.parametrize(("path", "known"), [("coordinator", "group_id"), ("groups", "cursor")])
async def test_an_unknown_parameter_lists_the_known_ones(api: httpx.AsyncClient, path: str, known: str) -> None:
    body = assert_problem(await api.get(f"/v1/{path}?nope=1"), Error.INVALID_REQUEST)
    assert body["field"] == "nope"
    assert known in body["detail"].partition("the parameters are ")[2].split(", ")
