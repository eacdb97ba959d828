"""Commits and fetches on a connection: answers, metrics and lines."""

from __future__ import annotations

from functools import cache
from typing import Any

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from kcoord.requests import current
from tests.kcoord.http.test_asked import asked, other, told
from tests.support.doors import DATE, FORBIDDEN, TOKEN, heartbeat, run
from tests.support.offset_doors import Offsets, commit, fetch, offset_door

ROUTE = "/v1/groups/{group_id}/offsets/commit"
OK = commit("ok")
FETCH = fetch()


def given(*requests: bytes) -> tuple[list[tuple[int, str | None]], Offsets]:
    """What the answers to requests of one connection say, and what was asked for."""
    door, offsets = offset_door()
    return [told(answer) for answer in asked(door, *requests)[0]], offsets


@cache
def alone(request: bytes) -> bytes:
    """The answer to a request that is the only one of its connection."""
    return asked(offset_door()[0], request)[0][0]


def test_a_commit_and_a_fetch_in_full() -> None:
    begin = b"HTTP/1.1 200 OK\r\ndate: " + DATE + b"\r\ncontent-length: %d\r\ncontent-type: application/json\r\n"
    committed = (
        b'{"topics":[{"name":"t","topic_id":"00000000-0000-0000-0000-000000000001","partitions":'
        b'[{"partition":1,"error_code":0,"error":"NONE"}]}],"session_expires_at":"2023-11-14T22:13:32.345Z",'
        b'"error_code":0}'
    )
    door, offsets = offset_door()
    answers = asked(door, OK, OK, FETCH, OK, FETCH)[0]
    expected = begin % len(committed) + b"x-request-id: new\r\n\r\n" + committed
    assert [answers[0], answers[1], answers[3]] == [expected] * 3
    assert answers[2] == answers[4]
    assert b'{"partition":1,"committed_offset":7,"committed_leader_epoch":2,"metadata":"m",' in answers[2]
    assert b'{"partition":2,"committed_offset":-1,"committed_leader_epoch":-1,"metadata":"",' in answers[2]
    assert (len(offsets.begun), len(offsets.fetched)) == (3, 2)


BEGUN = {
    "succeeds": OK,
    "the catalogue changes": commit("slow"),
    "a member that is not known": commit("who"),
    "Postgres is down": commit("down"),
    "a bug": commit("broken"),
    "a request id": commit("ok", b"X-Request-Id: mine"),
    "an error with a request id": commit("who", b"X-Request-Id: mine"),
    "two partitions": commit(
        "ok", partitions=b'[{"partition":1,"committed_offset":7},{"partition":0,"committed_offset":9}]'
    ),
    "a large body": commit("ok", partitions=b'[{"partition":1,"committed_offset":7}%b]' % (b" " * 50_000)),
    "by id": commit("ok", topic=b'"topic_id":"00000000-0000-0000-0000-000000000001"'),
}
OTHERS = {
    "a partition that does not exist": commit("ok", partitions=b'[{"partition":9,"committed_offset":7}]'),
    "a partition twice": commit(
        "ok", partitions=b'[{"partition":1,"committed_offset":7},{"partition":1,"committed_offset":8}]'
    ),
    "no partition": commit("ok", partitions=b"[]"),
    "long metadata": commit(
        "ok", partitions=b'[{"partition":1,"committed_offset":7,"committed_metadata":"%b"}]' % (b"x" * 101)
    ),
    "a field twice": commit("ok", partitions=b'[{"partition":1,"committed_offset":7,"partition":1}]'),
    "an unknown field": commit("ok", partitions=b'[{"partition":1,"committed_offset":7,"x":1}]'),
    "an offset that is not a number": commit("ok", partitions=b'[{"partition":1,"committed_offset":"x"}]'),
    "an offset as text": commit("ok", partitions=b'[{"partition":1,"committed_offset":"7"}]'),
    "a topic that does not exist": other(OK, b'"name":"t"', b'"name":"u"'),
    "no token": other(OK, b"Authorization: Bearer kc_known\r\n", b""),
    "a token without rules": other(OK, TOKEN.encode(), FORBIDDEN.encode()),
    "a query": other(OK, b"/commit", b"/commit?x=1"),
    "no body": heartbeat(b"", call=b"offsets/commit"),
}  # fmt: skip


UNKNOWN = 404, "UNKNOWN_MEMBER_ID"
INVALID = 400, "INVALID_REQUEST"
REFUSED = {
    "a member that is not known": UNKNOWN,
    "Postgres is down": (503, "COORDINATOR_NOT_AVAILABLE"),
    "a bug": (500, "UNKNOWN_SERVER_ERROR"),
    "an error with a request id": UNKNOWN,
    "a field twice": INVALID,
    "an unknown field": INVALID,
    "an offset that is not a number": INVALID,
    "no token": (401, "SASL_AUTHENTICATION_FAILED"),
    "a token without rules": (403, "GROUP_AUTHORIZATION_FAILED"),
    "a query": INVALID,
    "no body": INVALID,
    "of a member that is not known": UNKNOWN,
    "without a name": INVALID,
    "with another field": INVALID,
}
WELL = 200, None


@pytest.mark.parametrize("name", BEGUN)
def test_what_is_written(name: str) -> None:
    answers, asked_for = given(OK, BEGUN[name], BEGUN[name], OK)
    assert answers == [WELL, *[REFUSED.get(name, WELL)] * 2, WELL]
    assert len(asked_for.begun) == 4
    assert len(asked_for.awaited) == (2 if name == "the catalogue changes" else 0), "it was carried out once"


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_well_formed_is_not_written(name: str) -> None:
    answers, asked_for = given(OK, OK, OTHERS[name], OTHERS[name], OK)
    assert answers == [WELL, WELL, *[REFUSED.get(name, WELL)] * 2, WELL]
    assert len(asked_for.begun) == (3 if name in REFUSED else 5)


FETCHES = {
    "of a member": (fetch(more=b',"member_id":"m","member_epoch":3'), True),
    "of a member that is not known": (fetch(more=b',"member_id":"none","member_epoch":3'), True),
    "of no partitions": (fetch(topics=b'[{"name":"t","partitions":[]}]'), False),
    "of open transactions": (fetch(more=b',"require_stable":true'), False),
    "of everything": (fetch(topics=b"null"), False),
    "of an unknown topic": (fetch(topics=b'[{"name":"u","partitions":[1]}]'), True),
    "by id": (fetch(topics=b'[{"topic_id":"00000000-0000-0000-0000-000000000001","partitions":[1]}]'), True),
    "without a name": (fetch(topics=b'[{"partitions":[1]}]'), False),
    "with another field": (fetch(more=b',"x":1'), False),
}


@pytest.mark.parametrize("name", FETCHES)
def test_fetches(name: str) -> None:
    request, is_begun = FETCHES[name]
    answers, asked_for = given(FETCH, request, FETCH)
    assert answers == [WELL, REFUSED.get(name, WELL), WELL]
    assert len(asked_for.fetched) == (3 if is_begun else 2)


ANY = st.sampled_from(
    [OK, FETCH, heartbeat(), *BEGUN.values(), *OTHERS.values(), *(one for one, _ in FETCHES.values())]
)


@settings(deadline=None, max_examples=60)
@hypothesis.given(st.lists(ANY, min_size=1, max_size=8))
def test_what_came_before_on_a_connection_makes_no_difference(requests: list[bytes]) -> None:
    assert asked(offset_door()[0], *requests)[0] == [alone(request) for request in requests]


def test_metrics_and_lines() -> None:
    door, _ = offset_door(**{"log.hot.requests": 1})
    _, grown, lines = asked(door, OK, OK, commit("who"), OK)
    assert grown["kcoord_http_requests_total", ("method", "POST"), ("route", ROUTE), ("status", "200")] == 3
    assert grown["kcoord_http_requests_total", ("method", "POST"), ("route", ROUTE), ("status", "404")] == 1
    assert grown["kcoord_http_request_seconds_count", ("route", ROUTE)] == 4
    assert grown["kcoord_commands_total", ("command", "commit"), ("error", "NONE")] == 3
    assert [(line["status"], line["error"]) for line in lines] == [
        (200, None), (200, None), (404, "UNKNOWN_MEMBER_ID"), (200, None)
    ]  # fmt: skip


def test_what_code_can_know_of_the_request() -> None:
    """While it is begun, and still when it goes on off the lane."""
    door, offsets = offset_door()
    seen: list[tuple[Any, ...]] = []

    def look() -> None:
        request = current.request()
        assert request is not None
        assert request.scope is not None
        seen.append((request.request_id, request.scope["path"], current.receipt()))

    async def conversation() -> None:
        async with door.open() as connect:
            first, second = await connect(), await connect()
            await first.ask(OK)
            offsets.seen = look
            offsets.may_land.clear()
            first.writer.write(commit("slow", b"X-Request-Id: a", group=b"a"))
            while len(offsets.begun) < 1:
                await second.ask(heartbeat())
            await second.ask(heartbeat(group=b"b"))
            offsets.may_land.set()
            await first.answer()

    run(conversation())
    assert [entry[:2] for entry in seen] == [("a", "/v1/groups/a/offsets/commit")] * 2
    assert seen[0][2] is not None
    assert seen[0][2] is seen[1][2], "it is as old as its receipt"
