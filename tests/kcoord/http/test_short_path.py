"""The short path and the usual way: the same answers, metrics and lines, whatever is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from kcoord.access.rights import Access, digest
from kcoord.config import Config
from kcoord.database import request_age
from kcoord.http import context, short_path
from kcoord.http.short_path import Head
from kcoord.http.starts import Starts
from kcoord.process import runtime as runtimes
from kcoord.stack.shortcut import MOST_HEADS, Shortcut
from tests.support.doors import (
    DATE,
    FORBIDDEN,
    TOKEN,
    Door,
    Service,
    heartbeat,
    post,
    run,
    ways,
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


def both(*requests: bytes, **settings: Any) -> Door:
    """Asks on both ways, the same tokens known, and compares; the door with the short path."""
    doors = [Door(Config(settings), is_short=is_short) for is_short in (True, False)]
    found = [asked(door, *requests) for door in doors]
    assert found[0] == found[1]
    short, usual = (door.service for door in doors)
    assert {*short.at_once, *short.awaited} == {*usual.awaited}
    assert usual.at_once == []
    return doors[0]


def test_an_answer_in_full() -> None:
    """Spelled out once: everything else is compared with the usual way."""
    expected = (
        b"HTTP/1.1 200 OK\r\ndate: " + DATE + b"\r\ncontent-length: 64\r\ncontent-type: application/json\r\n"
        b'x-request-id: new\r\n\r\n{"session_expires_at":"2023-11-14T22:13:32.345Z","error_code":0}'
    )
    for door in ways():
        assert asked(door, OK, OK, OK)[0] == [expected] * 3
        assert len(door.service.at_once) == (2 if door.is_short else 0), "only the token of the first was not known"


@pytest.mark.parametrize("request_", [OK, MANY, CONSUMER], ids=["heartbeat", "many", "consumer"])
def test_each_call_is_answered_as_on_the_usual_way(request_: bytes) -> None:
    door = both(LATER, request_, request_, heartbeat(b"{}"), request_)
    assert len(door.service.at_once) == (6 if request_ is MANY else 3)
    assert len(door.service.awaited) == 1


def other(request: bytes, old: bytes, new: bytes) -> bytes:
    """A request with something else in it."""
    assert old in request
    return request.replace(old, new)


BODY = b'{"member_id":"ok","generation_id":1}'
CHUNKS = b"24\r\n" + BODY + b"\r\n0\r\n\r\n"
NOT_SHORT = {
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
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_SHORT)
def test_what_is_not_simple_goes_the_usual_way(name: str) -> None:
    odd = NOT_SHORT[name]
    door = both(OK, OK, odd, odd, OK)
    assert [command.member_id for command in door.service.at_once][:1] == ["ok"]
    assert len(door.service.at_once) == (4 if name == "many, one not known" else 2)


SIMPLE = {
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
}


@pytest.mark.parametrize("name", SIMPLE)
def test_what_is_simple_is_short(name: str) -> None:
    assert len(both(OK, SIMPLE[name], SIMPLE[name], OK).service.at_once) == 3


ANY = st.sampled_from([OK, LATER, MANY, CONSUMER, *NOT_SHORT.values(), *SIMPLE.values()])


@settings(deadline=None, max_examples=60)
@given(st.lists(ANY, min_size=1, max_size=8))
def test_any_requests_one_after_the_other(requests: list[bytes]) -> None:
    both(*requests)


@pytest.mark.parametrize(("kinds", "parsed"), [(MOST_HEADS, MOST_HEADS), (MOST_HEADS + 1, 3 * (MOST_HEADS + 1))])
def test_a_few_kinds_of_requests_on_one_connection_are_parsed_once_each(
    monkeypatch: pytest.MonkeyPatch, kinds: int, parsed: int
) -> None:
    learn, heads = Shortcut.learn, []

    def counted(self: Shortcut, target: bytes, head: bytes, *args: Any, **more: Any) -> Head | None:
        heads.append(head)
        return learn(self, target, head, *args, **more)

    monkeypatch.setattr(Shortcut, "learn", counted)
    each = [heartbeat(BODY + b" " * blanks) for blanks in range(kinds)]
    answers = asked(Door(Config({})), *each, *each, *each)[0]
    assert all(answer.startswith(b"HTTP/1.1 200 OK") for answer in answers)
    assert len(heads) == parsed


@pytest.mark.parametrize("size", [35, 36, 37])
def test_the_limit_of_bodies(size: int) -> None:
    door = Door(Config({"http.max.body.bytes": size}))
    answers = asked(door, OK, OK)[0]
    assert answers == asked(Door(door.config, is_short=False), OK, OK)[0]
    assert len(door.service.at_once) == (1 if size >= 36 else 0)
    assert (b"413" in answers[0]) == (size < 36)


@pytest.mark.parametrize(("one_of", "lines"), [(0, 0), (1, 12), (5, 2)])
def test_access_lines_are_sampled(one_of: int, lines: int) -> None:
    for door in (Door(Config({"log.hot.requests": one_of}), is_short=is_short) for is_short in (True, False)):
        door.runtime.get(Access)
        found = asked(door, LATER, *[OK] * 12)[2]
        if door.is_short:
            assert len(door.service.at_once) == 12
            assert [line for line in found if line["path"] == "/v1/groups/g/heartbeat"] == found
        assert len(found) in (lines, lines + bool(one_of == 1)), "the first is counted with those of its way"


def test_metrics_of_short_answers() -> None:
    _, grown, _ = asked(Door(Config({})), OK, OK, OK)
    assert grown["kcoord_http_requests_total", ("method", "POST"), ("route", ROUTE), ("status", "200")] == 3
    assert grown["kcoord_http_request_seconds_count", ("route", ROUTE)] == 3
    assert grown["kcoord_commands_total", ("command", "heartbeat"), ("error", "NONE")] == 3


@pytest.fixture
def door() -> Iterator[Door]:
    """A short path that is asked directly."""
    found = Door(Config({}))
    runtimes.use(found.runtime)
    asyncio.run(found.runtime.get(Access).authenticate(TOKEN))
    yield found
    runtimes.use(None)


def straight(door: Door, body: bytes = BODY, token: str = TOKEN) -> bytes | None:
    """The answer to a heartbeat, without a connection."""
    path = short_path.ShortPath(door.runtime, door_operations())
    headers = [
        (b"host", b"a"),
        (b"authorization", b"Bearer " + token.encode()),
        (b"content-type", b"application/json"),
        (b"x-request-id", b"mine"),
    ]
    scope = {"client": ("10.0.0.1", 1), "scheme": "http", "headers": headers, "server": ("a", 80)}
    head, route = path.head(scope, len(body), keeps_alive=True), path.route(b"/v1/groups/g/heartbeat")
    assert head is not None
    assert route is not None
    return path.answer(route, head, body, [])


def door_operations() -> Any:
    from groups.api.routes import OPERATIONS

    return OPERATIONS


def test_what_code_can_know_of_the_request(door: Door) -> None:
    seen: list[Any] = []

    def look() -> None:
        request = context.current()
        assert request is not None
        assert request.scope is not None
        seen.append((request.request_id, request.route, request.scope["path"], request.scope["client"]))
        seen.append(request_age.current())

    door.service.seen = look
    assert straight(door) is not None
    assert seen[0] == ("mine", ROUTE, "/v1/groups/g/heartbeat", ("10.0.0.1", 1))
    assert seen[1] is not None
    assert seen[1].database_ms is not None
    assert context.current() is None
    assert request_age.current() is None


def test_a_token_is_asked_for_each_time(door: Door) -> None:
    assert straight(door) is not None
    key = digest(TOKEN)
    principal, until = door.tokens[key]
    door.tokens[key] = principal, until - 7_200
    assert straight(door) is None, "what was known is too old, or the token has expired"
    door.tokens[key] = principal, until
    assert straight(door) is not None
    del door.tokens[key]
    assert straight(door) is None, "it was revoked"


def test_a_process_that_stops_answers_nothing_at_once(door: Door) -> None:
    runtimes.use(None)
    assert straight(door) is None
    assert door.service.at_once == []


def test_a_failure_is_logged_and_leaves_the_request_to_the_usual_way() -> None:
    class Broken(Service):
        def heartbeat_at_once(self, command: Any) -> Any:
            raise RuntimeError("broken")

    door = Door(Config({}), Broken())
    answers, _, lines = asked(door, OK, OK)
    assert [answer[:15] for answer in answers] == [b"HTTP/1.1 200 OK"] * 2
    assert [line["event"] for line in lines] == ["request_failed"]
    assert door.service.awaited[0].member_id == "ok"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, True), ({"http.short.path": False}, False), ({"otlp.endpoint": "http://collector:4318"}, False)],
)
def test_the_switch(settings: dict[str, Any], expected: bool) -> None:
    """Requests on the short path are in no trace."""
    assert short_path.is_on(Config(settings)) is expected


def test_a_heartbeat_that_needs_the_application_does_not_wait_for_those_that_are_started() -> None:
    async def asked() -> None:
        door = Door(Config({}))

        class Busy(Starts):
            def is_free(self) -> bool:
                return False

            def later(self, start: Callable[[], None], *, again: bool = False) -> None:
                waiting.append(again)

        waiting: list[bool] = []
        door.peers.starts = Busy()
        async with door.open() as connect:
            client = await connect()
            for _ in range(3):
                assert (await client.ask(LATER)).startswith(b"HTTP/1.1 200")
            assert not waiting
            client.writer.write(heartbeat(call=b"leave"))
            (await connect()).writer.write(heartbeat(call=b"leave"))
            await eventually(lambda: sorted(waiting) == [False, True], "others do; one of them was answered before")

    run(asked())
