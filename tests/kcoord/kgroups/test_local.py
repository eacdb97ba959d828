"""The HTTP API without a network, and why nobody on the network can use its way in."""

from __future__ import annotations

import asyncio
import getpass
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from groups.topics import TopicService
from kcoord.access.rights import TRUSTED_CALLER, Principal, Rules, trusted_caller
from kcoord.door.http.local_transport import BASE_URL, LocalTransport, local_operator
from kcoord.process import bridge
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.api import assert_problem, client_of

NOBODY = Principal(0, "local:nobody", Rules(()))

CONTROL_PLANE = ("GET", "/v1/groups", None)
DATA_PLANE = ("POST", "/v1/groups/g/offsets/fetch", {"topics": None})
PLANES = pytest.mark.parametrize("plane", [CONTROL_PLANE, DATA_PLANE], ids=["control", "data"])

CLAIMS: list[dict[str, str]] = [
    {TRUSTED_CALLER: "local:root"},
    {"kcoord-trusted-caller": "local:root"},
    {"X-Kcoord.Trusted_Caller": "local:root"},
    {"Authorization": "Bearer local:root"},
]


def ask(client: httpx.Client, plane: tuple[str, str, Any], **options: Any) -> httpx.Response:
    """The answer of a plane."""
    method, path, body = plane
    return client.request(method, path, json=body, **options)


def ask_as(principal: Principal, plane: tuple[str, str, Any]) -> httpx.Response:
    """The answer of a plane to a caller in this process."""
    with httpx.Client(transport=LocalTransport(principal), base_url=BASE_URL) as client:
        return ask(client, plane)


@pytest.fixture
def alone(database: str) -> Iterator[None]:
    """A process without a runtime of its own."""
    assert not runtimes.is_running()
    before = settings.CONNINFO
    settings.CONNINFO = database
    yield
    bridge.close()
    settings.CONNINFO = before


@PLANES
def test_a_process_without_a_runtime_gets_one_for_as_long_as_the_client_is_open(
    alone: None, plane: tuple[str, str, Any]
) -> None:
    with httpx.Client(transport=LocalTransport(local_operator()), base_url=BASE_URL) as client:
        assert ask(client, plane).status_code == 200
        assert runtimes.is_running()
    assert not runtimes.is_running()


@PLANES
async def test_in_a_serving_process_its_runtime_answers(runtime: Runtime, plane: tuple[str, str, Any]) -> None:
    assert (await asyncio.to_thread(ask_as, local_operator(), plane)).status_code == 200
    assert runtimes.current() is runtime


async def test_the_rules_of_the_caller_are_asked(runtime: Runtime) -> None:
    await runtime.get(TopicService).create("orders", 1)
    topics = ("GET", "/v1/topics", None)
    seen = [(await asyncio.to_thread(ask_as, who, topics)).json()["topics"] for who in (local_operator(), NOBODY)]
    assert [len(found) for found in seen] == [1, 0]
    refused = await asyncio.to_thread(ask_as, NOBODY, DATA_PLANE)
    assert_problem(refused, Error.GROUP_AUTHORIZATION_FAILED)


def test_an_answer_that_comes_too_late_is_a_timeout(alone: None) -> None:
    with (
        httpx.Client(transport=LocalTransport(local_operator()), base_url=BASE_URL) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.get("/v1/groups", timeout=0.000_001)


def test_a_process_that_stops_cannot_be_reached(alone: None, clock: Any, config: Any, database: str) -> None:
    runtimes.use(Runtime(config, database, clock))  # not started: it has no loop
    try:
        with pytest.raises(httpx.ConnectError, match="starting or stopping"):
            ask_as(local_operator(), CONTROL_PLANE)
    finally:
        runtimes.use(None)


def test_the_operator_is_the_account_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_operator().name == f"local:{getpass.getuser()}"

    def nameless() -> str:
        raise OSError("no name for this uid")

    monkeypatch.setattr("kcoord.door.http.local_transport.getpass.getuser", nameless)
    assert local_operator().name.removeprefix("local:").isdecimal()


@pytest.mark.parametrize("claim", ["local:root", b"local:root", {"name": "local:root"}, True, None])
def test_only_a_principal_in_the_state_is_believed(claim: object) -> None:
    assert trusted_caller({"state": {TRUSTED_CALLER: claim}, TRUSTED_CALLER: NOBODY}) is None
    assert trusted_caller({}) is None
    assert trusted_caller({"state": {TRUSTED_CALLER: NOBODY}}) is NOBODY


@PLANES
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
async def test_nothing_that_a_request_carries_is_believed(
    runtime: Runtime, plane: tuple[str, str, Any], claim: dict[str, str]
) -> None:
    method, path, body = plane
    async with client_of(None) as client:
        response = await client.request(method, path, json=body, headers=claim)
        assert_problem(response, Error.SASL_AUTHENTICATION_FAILED)
        response = await client.request(
            method, path, json=body, params=claim, headers={"Cookie": f"{TRUSTED_CALLER}=x"}
        )
    assert_problem(response, Error.SASL_AUTHENTICATION_FAILED)


class Held:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.answered = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self.asked.set()
        assert await asyncio.to_thread(self.may_answer.wait, 30)
        await Response()(scope, receive, send)
        self.answered = True


held = Held()


def test_closing_waits_for_requests_that_nobody_waits_for_any_more(
    alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the process would end its loop under their threads, and never end itself."""
    monkeypatch.setattr(settings, "ASGI_APPLICATION", f"{__name__}.held")
    transport = LocalTransport(local_operator())
    client = httpx.Client(transport=transport, base_url=BASE_URL)
    while not held.asked.is_set():  # a request that is given up at once may never have begun
        with pytest.raises(httpx.ReadTimeout):
            client.get("/", timeout=0.05)
    closing = threading.Thread(target=client.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    held.may_answer.set()
    closing.join(30)
    assert (closing.is_alive(), held.answered) == (False, True)
    assert not runtimes.is_running()
