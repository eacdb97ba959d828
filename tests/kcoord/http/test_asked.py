"""Requests for operations on a connection: answers, metrics and lines."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from groups.api.handlers import MOST_AT_ONCE
from kcoord.access.rights import Access, digest
from kcoord.config import Config
from kcoord.door.http.connection import MOST_HEADS, HttpProtocol
from kcoord.door.http.door import Admission, Head
from kcoord.requests import current
from kcoord.requests.turnstile import Kind, Turnstile
from tests.support.doors import (
    DATE,
    FORBIDDEN,
    TOKEN,
    Door,
    Service,
    heartbeat,
    post,
    run,
    statuses,
    without_ids,
)
from tests.support.members import eventually

ROUTE = "/v1/groups/{group_id}/heartbeat"
OK = heartbeat()
LATER = heartbeat(b'{"member_id":"later","generation_id":1}')
MANY = post(
    b"/v1/heartbeats",
    b'{"heartbeats":[{"group_id":"a b","member_id":"ok","generation_id":1},'
    b'{"group_id":"c","member_id":"ok2","generation_id":2}]}',
)
CALL = b"consumer-heartbeat"
CONSUMER = heartbeat(b'{"member_id":"ok","member_epoch":3}', call=CALL)


def counted() -> dict[Any, float]:
    """All that is counted of requests."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for metric in REGISTRY.collect()
        if metric.name in ("kcoord_http_requests", "kcoord_http_request_seconds", "kcoord_commands")
        for sample in metric.samples
        if not sample.name.endswith(("_sum", "_bucket")) and sample.value
    }


def asked(door: Door, *requests: bytes) -> tuple[list[bytes], dict[Any, float], list[dict[str, Any]]]:
    """The answers to requests on one connection, each sent when the one before was answered; counts, access lines."""
    before = counted()

    async def conversation() -> list[bytes]:
        async with door.open() as connect:
            client = await connect()
            return [without_ids(await client.ask(request)) for request in requests]

    with capture_logs() as lines:
        answers = run(conversation())
    grown = {key: value - before.get(key, 0) for key, value in counted().items() if value != before.get(key, 0)}
    kept = [{k: v for k, v in line.items() if k not in ("ms", "request_id")} for line in lines]
    return answers, grown, kept


def told(answer: bytes) -> tuple[int, str | None]:
    """The status of an answer, and its error."""
    found = re.search(rb'"error":"(\w+)"', answer)
    (status,) = statuses(answer)
    return status, found[1].decode() if found and status != 200 else None


@cache
def alone(request: bytes) -> bytes:
    """The answer to a request that is the only one of its connection."""
    return asked(Door(Config({})), request)[0][0]


def test_an_answer_in_full() -> None:
    expected = (
        b"HTTP/1.1 200 OK\r\ndate: " + DATE + b"\r\ncontent-length: 64\r\ncontent-type: application/json\r\n"
        b'x-request-id: new\r\n\r\n{"session_expires_at":"2023-11-14T22:13:32.345Z","error_code":0}'
    )
    door = Door(Config({}))
    assert asked(door, OK, OK, OK)[0] == [expected] * 3
    assert len(door.service.at_once) == 3


@pytest.mark.parametrize("request_", [OK, MANY, CONSUMER], ids=["heartbeat", "many", "consumer"])
def test_calls_are_answered_from_memory_if_they_can_be(request_: bytes) -> None:
    door = Door(Config({}))
    asked(door, LATER, request_, request_, heartbeat(b"{}"), request_)
    assert len(door.service.at_once) == (6 if request_ is MANY else 3)
    assert len(door.service.awaited) == 1


def other(request: bytes, old: bytes, new: bytes) -> bytes:
    """A request with something else in it."""
    assert old in request
    return request.replace(old, new)


BODY = b'{"member_id":"ok","generation_id":1}'
CHUNKS = b"24\r\n" + BODY + b"\r\n0\r\n\r\n"
KINDS = {
    "no token": other(OK, b"Authorization: Bearer kc_known\r\n", b""),
    "unknown token": heartbeat(token="kc_other"),
    "token without rules": heartbeat(token=FORBIDDEN),
    "token in another scheme": other(OK, b"Bearer", b"Basic"),
    "two tokens, the first unknown": other(OK, b"Host: a\r\n", b"Host: a\r\nAuthorization: Bearer x\r\n"),
    "HEAD": other(OK, b"POST", b"HEAD"),
    "GET": other(OK, b"POST", b"GET"),
    "a query": other(OK, b"/heartbeat", b"/heartbeat?x=1"),
    "an empty query": other(OK, b"/heartbeat", b"/heartbeat?"),
    "expects 100": heartbeat(BODY, b"Expect: 200-maybe"),
    "an upgrade": heartbeat(BODY, b"Connection: upgrade", b"Upgrade: h2c"),
    "chunks": other(other(OK, b"Content-Length: 36", b"Transfer-Encoding: chunked"), BODY, CHUNKS),
    "a content encoding": heartbeat(BODY, b"Content-Encoding: identity"),
    "another type": other(OK, b"application/json", b"text/plain"),
    "another charset": other(OK, b"application/json", b"application/json; charset=latin-1"),
    "no type": other(OK, b"Content-Type: application/json\r\n", b""),
    "no body": heartbeat(b""),
    "not JSON": heartbeat(b"{"),
    "not UTF-8": heartbeat(b'{"member_id":"ok\xff","generation_id":1}'),
    "a field twice": heartbeat(b'{"member_id":"ok","generation_id":1,"member_id":"ok"}'),
    "a field twice, once escaped": heartbeat(b'{"member_id":"ok","generation_id":1,"m\\u0065mber_id":"ok"}'),
    "an unknown field": heartbeat(b'{"member_id":"ok","generation_id":1,"x":1}'),
    "a field that is missing": heartbeat(b'{"member_id":"ok"}'),
    "a NUL": heartbeat(b'{"member_id":"ok\\u0000","generation_id":1}'),
    "a member that is not known": heartbeat(b'{"member_id":"none","generation_id":1}'),
    "an escaped group": heartbeat(group=b"a%20b"),
    "a group that is not UTF-8": heartbeat(group=b"%ff"),
    "no group": heartbeat(group=b""),
    "a slash in the group": heartbeat(group=b"a/b"),
    "a long group": heartbeat(group=b"g" * 256),
    "a longer group": heartbeat(group=b"g" * 3_000),
    "another path": post(b"/v1/group/g/heartbeat", BODY),
    "a whole address": post(b"http://a/v1/groups/g/heartbeat", BODY),
    "many, one not known": post(
        b"/v1/heartbeats",
        b'{"heartbeats":[{"group_id":"a","member_id":"ok","generation_id":1},'
        b'{"group_id":"c","member_id":"none","generation_id":2}]}',
    ),
    "a consumer that joins": heartbeat(b'{"member_id":"ok","member_epoch":0}', call=CALL),
    "a consumer that waits": heartbeat(b'{"member_id":"ok","member_epoch":1,"max_wait_ms":1}', call=CALL),
    "a consumer that subscribes": heartbeat(
        b'{"member_id":"ok","member_epoch":1,"subscribed_topic_names":["t"]}', call=CALL
    ),
    "a request id": heartbeat(BODY, b"X-Request-Id: mine"),
    "a request id that is not safe": heartbeat(BODY, b'X-Request-Id: "'),
    "two request ids": heartbeat(BODY, b"X-Request-Id: a", b"X-Request-Id: b"),
    "a charset": other(OK, b"application/json", b"Application/JSON; charset=UTF-8"),
    "other case": other(OK, b"Authorization: Bearer", b"AUTHORIZATION:  bearer"),
    "an instance": heartbeat(b'{"member_id":"ok","generation_id":1,"group_instance_id":"i"}'),
    "blanks": heartbeat(b' { "member_id" : "ok" , "generation_id" : 1 } '),
    "a value like a field": heartbeat(b'{"member_id":"ok","generation_id":1,"group_instance_id":"member_id"}'),
    "escapes": heartbeat(b'{"member_id":"ok\\u00e9\\"","generation_id":1}'),
    "a group with points": heartbeat(group=b"a.b_c-d~e"),
    "the longest group": heartbeat(group=b"g" * 255),
    "keep-alive": heartbeat(BODY, b"Connection: keep-alive"),
}  # fmt: skip


INVALID = 400, "INVALID_REQUEST"
NO_GROUP = 400, "INVALID_GROUP_ID"
UNKNOWN_TOKEN = 401, "SASL_AUTHENTICATION_FAILED"
REFUSED = {
    "no token": UNKNOWN_TOKEN,
    "unknown token": UNKNOWN_TOKEN,
    "token without rules": (403, "GROUP_AUTHORIZATION_FAILED"),
    "token in another scheme": UNKNOWN_TOKEN,
    "two tokens, the first unknown": UNKNOWN_TOKEN,
    "HEAD": (405, None),
    "GET": (405, "INVALID_REQUEST"),
    "a query": INVALID,
    "another type": (415, "INVALID_REQUEST"),
    "another charset": (415, "INVALID_REQUEST"),
    "no type": (415, "INVALID_REQUEST"),
    "no body": INVALID,
    "not JSON": INVALID,
    "not UTF-8": INVALID,
    "a field twice": INVALID,
    "a field twice, once escaped": INVALID,
    "an unknown field": INVALID,
    "a field that is missing": INVALID,
    "a NUL": INVALID,
    "a member that is not known": (404, "UNKNOWN_MEMBER_ID"),
    "a group that is not UTF-8": NO_GROUP,
    "no group": NO_GROUP,
    "a slash in the group": NO_GROUP,
    "a long group": NO_GROUP,
    "a longer group": NO_GROUP,
    "another path": (404, None),
    "a whole address": (404, None),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_request(name: str) -> None:
    assert told(alone(KINDS[name])) == REFUSED.get(name, (200, None))


@pytest.mark.parametrize(("count", "turns"), [(MOST_AT_ONCE, 1), (3 * MOST_AT_ONCE, 3)])
def test_others_have_turns_while_very_many_heartbeats_are_answered(count: int, turns: int) -> None:
    members = ["later" if number % 7 == 6 else f"ok{number}" for number in range(count)]
    beats = [{"group_id": "g", "member_id": member, "generation_id": 1} for member in members]
    door, seen_at, turn = Door(Config({})), set[int](), 0
    door.service.seen = lambda: seen_at.add(turn)

    async def conversation() -> bytes:
        async def count_turns() -> None:
            nonlocal turn
            while True:
                await asyncio.sleep(0)
                turn += 1

        async with door.open() as connect:
            client = await connect()
            await door.runtime.get(Access).authenticate(TOKEN)
            counting = asyncio.create_task(count_turns())
            answer = await client.ask(post(b"/v1/heartbeats", json.dumps({"heartbeats": beats}).encode()))
            counting.cancel()
            return answer

    results = json.loads(run(conversation()).partition(b"\r\n\r\n")[2])["heartbeats"]
    assert [result["member_id"] for result in results] == members
    assert {result["error_code"] for result in results} == {0}
    at_once = len(door.service.at_once)
    assert at_once == count - members.count("later")
    assert len(seen_at) >= turns
    if turns == 1:
        assert len(seen_at) <= 2, "those from memory in one turn, those that are awaited in another"


ANY = st.sampled_from([OK, LATER, MANY, CONSUMER, *KINDS.values()])


@settings(deadline=None, max_examples=60)
@given(st.lists(ANY, min_size=1, max_size=8))
def test_what_came_before_on_a_connection_makes_no_difference(requests: list[bytes]) -> None:
    assert asked(Door(Config({})), *requests)[0] == [alone(request) for request in requests]


@pytest.mark.parametrize(("kinds", "parsed"), [(MOST_HEADS, MOST_HEADS), (MOST_HEADS + 1, 3 * (MOST_HEADS + 1))])
def test_a_few_kinds_of_requests_on_one_connection_are_parsed_once_each(
    monkeypatch: pytest.MonkeyPatch, kinds: int, parsed: int
) -> None:
    read, heads = HttpProtocol._read, []

    def counted(self: HttpProtocol, method: bytes, version: bytes, head: bytes) -> Head:
        heads.append(head)
        return read(self, method, version, head)

    monkeypatch.setattr(HttpProtocol, "_read", counted)
    each = [heartbeat(BODY + b" " * blanks) for blanks in range(kinds)]
    answers = asked(Door(Config({})), *each, *each, *each)[0]
    assert all(answer.startswith(b"HTTP/1.1 200 OK") for answer in answers)
    assert len(heads) == parsed


@pytest.mark.parametrize("size", [35, 36, 37])
def test_the_limit_of_bodies(size: int) -> None:
    door = Door(Config({"http.max.body.bytes": size}))
    answers = asked(door, OK, OK)[0]
    assert len(door.service.at_once) == (2 if size >= 36 else 0)
    assert (b"413" in answers[0]) == (size < 36)


@pytest.mark.parametrize(("one_of", "lines"), [(0, 0), (1, 13), (5, 2)])
def test_access_lines_are_sampled(one_of: int, lines: int) -> None:
    found = asked(Door(Config({"log.hot.requests": one_of})), LATER, *[OK] * 12)[2]
    assert [line["path"] for line in found] == ["/v1/groups/g/heartbeat"] * lines


def test_metrics_of_answers() -> None:
    _, grown, _ = asked(Door(Config({})), OK, OK, OK)
    assert grown["kcoord_http_requests_total", ("method", "POST"), ("route", ROUTE), ("status", "200")] == 3
    assert grown["kcoord_http_request_seconds_count", ("route", ROUTE)] == 3
    assert grown["kcoord_commands_total", ("command", "heartbeat"), ("error", "NONE")] == 3


def test_what_code_can_know_of_the_request() -> None:
    seen: list[Any] = []

    def look() -> None:
        request = current.request()
        assert request is not None
        assert request.scope is not None
        seen.append((request.request_id, request.route, request.scope["path"], request.scope["client"][0]))
        seen.append(current.receipt())

    door = Door(Config({}), Service(seen=look))
    asked(door, heartbeat(BODY, b"X-Request-Id: mine"))
    assert seen[0] == ("mine", ROUTE, "/v1/groups/g/heartbeat", "127.0.0.1")
    assert seen[1].database_ms is not None


def test_a_client_says_how_long_it_waits() -> None:
    seen: list[float] = []

    def look() -> None:
        receipt = current.receipt()
        assert receipt is not None
        seen.append(receipt.patience_ms)

    door = Door(Config({}), Service(seen=look))
    stated = [
        heartbeat(BODY, b"X-Request-Timeout-Ms: " + value) for value in (b"1500", b"0", b"soon", b"-1", b"9999999999")
    ]
    answers, _, _ = asked(door, OK, *stated)
    assert seen == [float("inf"), 1_500.0, 0.0]
    assert statuses(b"".join(answers)) == [200, 200, 200, 400, 400, 400]
    assert b"X-Request-Timeout-Ms" in answers[3]


def test_a_token_is_asked_for_each_time() -> None:
    door = Door(Config({}))

    async def conversation() -> list[int]:
        async with door.open() as connect:
            client = await connect()
            answers = [await client.ask(OK), await client.ask(OK)]
            door.tokens.clear()
            door.runtime.get(Access)._refused[digest(TOKEN)] = "it was revoked", float("inf")
            answers.append(await client.ask(OK))
            return statuses(b"".join(answers))

    assert run(conversation()) == [200, 200, 401]


def test_a_failure_is_logged_and_answered() -> None:
    class Broken(Service):
        def heartbeat(self, command: Any) -> Any:
            raise RuntimeError("broken")

    answers, _, lines = asked(Door(Config({}), Broken()), OK, OK)
    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 500"] * 2
    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["request_failed"] * 2


def test_a_heartbeat_that_needs_a_task_does_not_wait_for_other_requests() -> None:
    async def conversation() -> None:
        door = Door(Config({}))

        class Busy(Turnstile):
            def is_free(self, kind: Kind) -> bool:
                return kind is not Kind.REQUEST

            def later(
                self, kind: Kind, begin: Callable[[], object], holder: Hashable = None, *, again: bool = False
            ) -> None:
                waiting.append(again)

        waiting: list[bool] = []
        async with door.open() as connect:
            client = await connect()
            await client.ask(LATER)
            door.runtime.get(Admission).turnstile = Busy(door.runtime)
            for _ in range(3):
                assert (await client.ask(LATER)).startswith(b"HTTP/1.1 200")
            assert not waiting
            client.writer.write(heartbeat(call=b"leave"))
            (await connect()).writer.write(heartbeat(call=b"leave"))
            await eventually(lambda: sorted(waiting) == [False, True], "others do; one of them was answered before")

    run(conversation())
