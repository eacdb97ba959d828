"""What both planes share: request ids, unknown paths and methods, failures, the access log, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from groups.engine.service import GroupService
from kcoord import metrics
from kcoord.config import Config
from kcoord.door.http.middleware import ProblemNet, RequestLog
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Action, Error, ProtocolError
from kcoord.requests.turnstile import Turnstile
from tests.support.api import assert_problem, client_of

HEARTBEAT = {"member_id": "m", "generation_id": 1}


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    """What is logged."""
    with capture_logs() as captured:
        yield captured


def requests(lines: list[Any]) -> list[Any]:
    """The lines of the access log."""
    return [line for line in lines if line["event"] == "request"]


@pytest.mark.parametrize("given", ["abc", "A-1._:/+=@9", "x" * 128])
async def test_a_request_id_is_taken_over(api: httpx.AsyncClient, lines: list[Any], given: str) -> None:
    for path in ("/v1/groups/g/heartbeat", "/v1/nothing", "/livez"):
        response = await api.post(path, json=HEARTBEAT, headers={"X-Request-Id": given})
        assert response.headers.get_list("x-request-id") == [given]
    response = await api.post("/v1/groups/g/heartbeat", json=HEARTBEAT, headers={"X-Request-Id": given})
    assert response.json()["request_id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "é".encode(), '"', "{}"])
async def test_an_unsafe_request_id_is_replaced(api: httpx.AsyncClient, given: Any) -> None:
    response = await api.post("/v1/groups/g/heartbeat", json=HEARTBEAT, headers={"X-Request-Id": given})
    (made,) = response.headers.get_list("x-request-id")
    assert len(made) == 32
    assert response.json()["request_id"] == made


async def test_request_ids_differ(api: httpx.AsyncClient) -> None:
    made = {(await api.get("/livez")).headers["x-request-id"] for _ in range(5)}
    assert len(made) == 5


async def test_one_line_for_each_request(api: httpx.AsyncClient, lines: list[Any]) -> None:
    await api.post("/v1/groups/a%20b/heartbeat?x=secret", json=HEARTBEAT)
    await api.get("/v1/coordinator?group_id=g")
    await api.get("/v1/nothing")
    found = [{key: line[key] for key in ("method", "path", "status", "error")} for line in requests(lines)]
    assert found == [
        {"method": "POST", "path": "/v1/groups/a%20b/heartbeat", "status": 400, "error": "INVALID_REQUEST"},
        {"method": "GET", "path": "/v1/coordinator", "status": 200, "error": None},
        {"method": "GET", "path": "/v1/nothing", "status": 404, "error": "INVALID_REQUEST"},
    ]
    assert all(line["ms"] >= 0 for line in requests(lines))


HOT = {
    "/v1/groups/{group_id}/heartbeat", "/v1/heartbeats", "/v1/groups/{group_id}/consumer-heartbeat",
    "/v1/groups/{group_id}/share-heartbeat", "/v1/groups/{group_id}/acquire", "/v1/groups/{group_id}/settle",
    "/v1/groups/{group_id}/offsets/commit", "/v1/groups/{group_id}/offsets/fetch", "/v1/offsets/fetch",
}  # fmt: skip


def test_which_calls_are_hot() -> None:
    from kcoord.asgi import OPERATIONS

    assert {operation.endpoint.path for operation in OPERATIONS if operation.is_hot} == HOT


async def test_hot_calls_have_a_line_only_if_they_fail(api: httpx.AsyncClient, lines: list[Any]) -> None:
    """Successful ones would be nearly all of the log; the metrics count them."""
    counted = metrics.REQUESTS.labels("/v1/heartbeats", "POST", "200")
    before = counted.value
    assert (await api.post("/v1/heartbeats", json={"heartbeats": []})).status_code == 200
    assert counted.value == before + 1
    assert (await api.post("/v1/heartbeats", json={})).status_code == 400
    assert (await api.get("/v1/heartbeats")).status_code == 405
    assert [line["status"] for line in requests(lines)] == [400, 405]


async def test_probes_do_not_fill_the_log(api: httpx.AsyncClient, lines: list[Any]) -> None:
    await api.get("/livez")
    await api.get("/metrics")
    assert requests(lines) == []


@pytest.mark.parametrize(
    "path", ["/v1/", "/v1/nothing", "/v1/groups/g/joins", "/v1/groups/g/offsets/commits", "/v1/%67roups/g/join"]
)
async def test_unknown_paths(api: httpx.AsyncClient, path: str) -> None:
    assert_problem(await api.get(path), Error.INVALID_REQUEST, status=404)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
async def test_other_methods(api: httpx.AsyncClient, method: str) -> None:
    response = await api.request(method, "/v1/groups/g/join")
    assert_problem(response, Error.INVALID_REQUEST, status=405)
    assert response.headers["allow"] == "POST"


async def test_another_asgi_server_is_told_that_it_carries_out_no_operations(runtime: Runtime) -> None:
    from kcoord.asgi import application

    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        answer = await client.post("/v1/groups/g/join")
    assert "kcoord.stack.server" in assert_problem(answer, Error.UNKNOWN_SERVER_ERROR)["detail"]


async def test_methods_are_not_labels(api: httpx.AsyncClient) -> None:
    await api.request("PROPFIND", "/v1/groups/g/join")
    text = (await api.get("/metrics")).text
    assert "PROPFIND" not in text
    assert 'method="other",route="/v1/groups/{group_id}/join",status="405"' in text


async def test_an_unexpected_failure_tells_nothing_but_the_log(
    api: httpx.AsyncClient, service: GroupService, monkeypatch: pytest.MonkeyPatch, lines: list[Any]
) -> None:
    async def broken(command: Any) -> Any:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(service, "heartbeat", broken)
    response = await api.post("/v1/groups/g/heartbeat", json=HEARTBEAT)
    assert_problem(response, Error.UNKNOWN_SERVER_ERROR)
    assert "hunter2" not in response.text
    failures = [line for line in lines if line["event"] == "request_failed"]
    assert len(failures) == 1
    assert failures[0]["exc_info"]


async def test_errors_say_when_to_come_back(
    api: httpx.AsyncClient, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(command: Any) -> Any:
        raise ProtocolError(Error.THROTTLING_QUOTA_EXCEEDED, "budget 'heartbeats'", retry_after_ms=1_001)

    monkeypatch.setattr(service, "heartbeat", busy)
    response = await api.post("/v1/groups/g/heartbeat", json=HEARTBEAT)
    assert_problem(response, Error.THROTTLING_QUOTA_EXCEEDED)
    assert response.headers["retry-after"] == "2"


async def test_fields_of_an_error_never_replace_the_fixed_ones(
    api: httpx.AsyncClient, service: GroupService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def redirected(command: Any) -> Any:
        raise ProtocolError(
            Error.NOT_COORDINATOR, fields={"coordinator": {"node_id": "n"}, "status": 1}, action=Action.RETRY
        )

    monkeypatch.setattr(service, "heartbeat", redirected)
    response = await api.post("/v1/groups/g/heartbeat", json=HEARTBEAT)
    body = assert_problem(response, Error.NOT_COORDINATOR, action="retry")
    assert body["coordinator"] == {"node_id": "n"}


async def test_before_the_start_and_after_the_stop_the_server_says_so(runtime: Runtime, token: str) -> None:
    runtimes.use(None)
    async with client_of(token) as client:
        assert_problem(await client.get("/v1/coordinator?group_id=g"), Error.COORDINATOR_NOT_AVAILABLE)
        assert (await client.get("/livez")).status_code == 200
        response = await client.get("/readyz")
        assert (response.status_code, response.json()["status"]) == (503, "not ready")


def answering(status: int, content_type: str, *parts: bytes) -> Any:
    """An application in place of Django."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"Content-Type", content_type.encode()), (b"content-length", str(sum(map(len, parts))).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for index, part in enumerate(parts):
            await send({"type": "http.response.body", "body": part, "more_body": index < len(parts) - 1})

    return RequestLog(ProblemNet(application))


async def ask(application: Any, path: str) -> httpx.Response:
    """One request to an application."""
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        return await client.get(path)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, Error.INVALID_REQUEST),
        (401, Error.SASL_AUTHENTICATION_FAILED),
        (403, Error.CLUSTER_AUTHORIZATION_FAILED),
        (404, Error.INVALID_REQUEST),
        (418, Error.INVALID_REQUEST),
        (500, Error.UNKNOWN_SERVER_ERROR),
        (502, Error.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_error_pages_of_django_become_problems(status: int, error: Error) -> None:
    response = await ask(answering(status, "text/html", b"<h1>", b"secret</h1>"), "/v1/x")
    assert_problem(response, error, status=status)
    assert "secret" not in response.text


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


async def test_lists_wait_for_a_place_which_they_leave_when_their_answer_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Runtime(Config({"http.max.big.requests": 1, "http.max.big.queue": 0}), "")
    places = running.get(Turnstile).big
    seen: list[bool] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(places.locked())
        await page(scope, receive, noting(send))

    def noting(send: Send) -> Send:
        async def sent(message: Message) -> None:
            await send(message)
            seen.append(places.locked())

        return sent

    monkeypatch.setattr("kcoord.process.runtime._current", running)
    net = RequestLog(ProblemNet(application))
    assert (await ask(net, "/v1/groups")).status_code == 200
    assert seen == [True, False, False]
    async with running.get(Turnstile).place():
        refused = await ask(net, "/v1/groups")
        assert_problem(refused, Error.COORDINATOR_NOT_AVAILABLE, status=503)
        assert (await ask(net, "/groups")).status_code == 200, "pages do not"


async def test_pages_keep_their_errors() -> None:
    response = await ask(answering(404, "text/html", b"<h1>no such group</h1>"), "/groups/x")
    assert (response.status_code, response.text) == (404, "<h1>no such group</h1>")


async def test_problems_of_views_pass_and_are_logged(lines: list[Any]) -> None:
    body = b'{"error": "TOPIC_ALREADY_EXISTS", "status": 409}'
    response = await ask(answering(409, "application/problem+json", body[:9], body[9:]), "/v1/topics")
    assert response.content == body
    assert requests(lines)[0]["error"] == "TOPIC_ALREADY_EXISTS"


async def test_successes_pass_as_they_are() -> None:
    response = await ask(answering(200, "text/event-stream", b"a", b"b"), "/v1/groups/g/events/stream")
    assert (response.status_code, response.content) == (200, b"ab")


async def test_an_application_that_throws_is_a_problem_too(lines: list[Any]) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    assert_problem(await ask(RequestLog(broken), "/v1/x"), Error.UNKNOWN_SERVER_ERROR)
    assert requests(lines)[0]["status"] == 500


async def test_commands_are_counted_by_error(api: httpx.AsyncClient) -> None:
    counter = metrics.COMMANDS.labels("heartbeat", "UNKNOWN_MEMBER_ID")
    before = counter.value
    await api.post("/v1/groups/g/heartbeat", json=HEARTBEAT)
    assert counter.value == before + 1
