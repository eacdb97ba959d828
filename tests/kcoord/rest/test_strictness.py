"""What the control plane makes of requests that are not as they should be: problems that name the cause, no 500."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from rest_framework import exceptions

from groups.topics import TopicService
from kcoord.control.rest.base import problem_handler
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem, client_of

TOPICS = "/v1/topics"
GOOD = b'{"name": "orders", "partitions": 3}'
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"name": "a\\u0000b", "partitions": 1}', "name"),
        (b'{"name": "a\\ud800", "partitions": 1}', "name"),
        (b'{"name": "a", "partitions": 1, "partitions": 2}', "partitions"),
        (b'{"name": "a", "partitions": 1, "lables": {}}', "lables"),
        (b'{"name": "a", "partitions": 1, "labels": {"x": "1", "x": "2"}}', "x"),
        (b'{"name": 1, "partitions": 1}', "name"),
        (b'{"name": "a"}', "partitions"),
        (b'{"name": "a", "partitions": 1e2}', "partitions"),
        (b'{"name": "a", "partitions": null}', "partitions"),
        (b"{}", "name"),
    ],
)
async def test_the_field_at_fault_is_named(api: httpx.AsyncClient, body: bytes, field: str) -> None:
    response = await api.post(TOPICS, content=body, headers=JSON)
    assert_problem(response, Error.INVALID_REQUEST, field=field)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"null",
        b'"text"',
        b"5",
        b'{"name": "a", "partitions": NaN}',
        b'{"name": "a", "partitions": 1',
        b'{"name": "\xff", "partitions": 1}',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b'{"partitions": ' + b"9" * 5_000 + b"}",
        b'{"partitions": 1e999999}',
    ],
)
async def test_a_body_that_is_no_json_object(api: httpx.AsyncClient, body: bytes) -> None:
    assert_problem(await api.post(TOPICS, content=body, headers=JSON), Error.INVALID_REQUEST)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "nonsense"},
        {**JSON, "Content-Encoding": "gzip"},
    ],
)
async def test_a_body_of_another_type(api: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert_problem(await api.post(TOPICS, content=GOOD, headers=headers), Error.INVALID_REQUEST, status=415)


async def test_json_may_say_that_it_is_utf_8(api: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "Application/JSON; charset=UTF-8", "Accept": "text/html"}
    response = await api.post(TOPICS, content=GOOD, headers=headers)
    assert response.status_code == 201
    assert response.headers["content-type"] == "application/json"


async def test_a_body_without_a_length_is_read_all_the_same(api: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield GOOD[:5]
        yield GOOD[5:]

    assert (await api.post(TOPICS, content=pieces(), headers=JSON)).json()["name"] == "orders"

    async def unknown() -> AsyncIterator[bytes]:
        yield b'{"labels": {}, "lables": {}}'

    response = await api.patch(f"{TOPICS}/orders", content=unknown(), headers=JSON)
    assert_problem(response, Error.INVALID_REQUEST, field="lables")


async def test_a_body_that_is_too_large(api: httpx.AsyncClient) -> None:
    response = await api.post(TOPICS, content=GOOD + b" " * 1_048_576, headers=JSON)
    assert_problem(response, Error.INVALID_REQUEST, status=413)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("page=1", "page"),
        ("Q=1", "Q"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=ten", "limit"),
        ("limit=1.5", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        ("q=%00", "q"),
        ("q=" + "x" * 250, "q"),
        ("cursor=", "cursor"),
        ("cursor=AAAA", "cursor"),
        ("cursor=" + "A" * 5_000, "cursor"),
        ("cursor=WzFd", "cursor"),  # [1]: a number where the list has names
        ("cursor=WyJcdTAwMDAiXQ", "cursor"),  # ["\u0000"]
        ("cursor=WyJcdWQ4MDAiXQ", "cursor"),  # ["\ud800"]
        ("cursor=" + "W1tbW1tb" * 500, "cursor"),
    ],
)
async def test_a_bad_parameter_is_named(api: httpx.AsyncClient, query: str, field: str) -> None:
    assert_problem(await api.get(f"{TOPICS}?{query}"), Error.INVALID_REQUEST, field=field)


async def test_more_parameters_than_anybody_means(api: httpx.AsyncClient) -> None:
    assert_problem(await api.get(TOPICS + "?" + "&".join("state=x" for _ in range(1_100))), Error.INVALID_REQUEST)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "GET"])
async def test_parameters_where_there_are_none(api: httpx.AsyncClient, topics: TopicService, method: str) -> None:
    await topics.create("orders", 1)
    path = TOPICS if method == "POST" else f"{TOPICS}/orders"
    response = await api.request(method, f"{path}?force=true", content=GOOD, headers=JSON)
    assert_problem(response, Error.INVALID_REQUEST, field="force")
    assert (await topics.get("orders")).partitions == 1


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic eDp5", "Bearer nope", "Bearer \xff", "nope"])
async def test_no_answer_without_a_token(runtime: object, header: str | None) -> None:
    async with client_of(None) as client:
        headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
        for method, path in (("GET", TOPICS), ("POST", TOPICS), ("GET", "/v1/groups/a%2Fb"), ("PUT", TOPICS)):
            response = await client.request(method, path, headers=headers)
            assert_problem(response, Error.SASL_AUTHENTICATION_FAILED)
            assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", TOPICS, {"GET", "HEAD", "POST"}),
        ("OPTIONS", TOPICS, {"GET", "HEAD", "POST"}),
        ("POST", f"{TOPICS}/orders", {"GET", "HEAD", "PATCH", "DELETE"}),
        ("PATCH", "/v1/groups/g", {"GET", "HEAD", "DELETE"}),
        ("DELETE", "/v1/groups/g/offsets", {"GET", "HEAD"}),
        ("GET", "/v1/tokens/1", {"DELETE"}),
        ("POST", "/v1/openapi.json", {"GET", "HEAD"}),
    ],
)
async def test_a_method_that_is_not_there(api: httpx.AsyncClient, method: str, path: str, allowed: set[str]) -> None:
    response = await api.request(method, path)
    assert_problem(response, Error.INVALID_REQUEST, status=405)
    assert set(response.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize(
    "path", ["/v1/", "/v1/nope", "/v1/topics/a/b", "/v1/topics/a/watermarks/b", "/v1/groups/a/b/c"]
)
async def test_a_path_that_is_not_there(api: httpx.AsyncClient, path: str) -> None:
    assert_problem(await api.get(path), Error.INVALID_REQUEST, status=404)


async def test_a_host_that_django_refuses(api: httpx.AsyncClient) -> None:
    assert_problem(await api.get(TOPICS, headers={"Host": "evil.example"}), Error.INVALID_REQUEST)


async def test_a_failure_of_ours_is_told_without_its_reason(
    api: httpx.AsyncClient, topics: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(name: str) -> None:
        raise KeyError("the secret reason")

    monkeypatch.setattr(topics, "get", broken)
    response = await api.get(f"{TOPICS}/orders")
    assert_problem(response, Error.UNKNOWN_SERVER_ERROR)
    assert "reason" not in response.text


@pytest.mark.parametrize(
    ("failure", "status", "name"),
    [
        (OperationalError("gone"), 503, "COORDINATOR_NOT_AVAILABLE"),
        (PermissionDenied(), 403, "CLUSTER_AUTHORIZATION_FAILED"),
        (exceptions.NotAuthenticated(), 401, "SASL_AUTHENTICATION_FAILED"),
        (exceptions.ParseError("bad"), 400, "INVALID_REQUEST"),
        (exceptions.UnsupportedMediaType("x/y"), 415, "INVALID_REQUEST"),
        (SuspiciousOperation("odd"), 400, "INVALID_REQUEST"),
        (exceptions.ValidationError("odd"), 400, "INVALID_REQUEST"),
        (RuntimeError("odd"), 500, "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_every_exception_becomes_a_problem(failure: Exception, status: int, name: str) -> None:
    response = problem_handler(failure, {})
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert f'"error":"{name}"' in response.content.decode()
    assert ("Retry-After" in response) is (status == 503)
