"""What does not even look like a request: bytes on a socket, at a real server.

Whatever comes, the server answers with a status below 500 or hangs up, goes on serving, and writes neither a traceback
nor a token into its log.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from random import Random

import httpx
import pytest

from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

SEED = 20_251_123
MUTATED = 200
ANSWER_SECONDS = 5.0
HEARTBEAT = b'{"member_id":"m","generation_id":1}'
HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
CHUNKS_OF_A_MEGABYTE = b"".join(b"10000\r\n" + b" " * 65_536 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"


def post(*headers: bytes, body: bytes = HEARTBEAT, path: bytes = b"/v1/groups/g/heartbeat") -> bytes:
    """A heartbeat with other headers."""
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + JSON + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + body


def get(target: bytes, *headers: bytes, host: bytes = HOST) -> bytes:
    """A GET of whatever is given for a target."""
    return b"GET " + target + b" HTTP/1.1\r\n" + host + b"".join(h + b"\r\n" for h in headers) + b"\r\n"


COMPLETE = {
    "no request line": b"GARBAGE\r\n\r\n",
    "control characters": b"\x00\x01\x02\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "unknown method": b"FOO /v1/groups/g/join HTTP/1.1\r\n" + HOST + b"\r\n",
    "star": b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no path": get(b"?"),
    "relative path": get(b"v1/coordinator?group_id=a"),
    "two slashes": get(b"//v1/coordinator?group_id=a"),
    "half an address": get(b"http://["),
    "path of 100 kB": get(b"/" + b"a" * 100_000),
    "path not UTF-8": get(b"/v1/groups/\xff\xfe"),
    "query not UTF-8": get(b"/v1/coordinator?group_id=\xff\xfe"),
    "query escaped not UTF-8": get(b"/v1/groups?q=%ff"),
    "NUL in a page's path": get(b"/groups/%00"),
    "out of static": get(b"/static/%2e%2e/%2e%2e/manage.py"),
    "no host": get(b"/", host=b""),
    "another host": get(b"/", host=b"Host: evil.example\r\n"),
    "another host under /v1": get(b"/v1/groups", host=b"Host: evil.example\r\n"),
    "host not ASCII": get(b"/", host=b"Host: \xff\r\n"),
    "host with half a bracket": get(b"/v1/groups", host=b"Host: [::1\r\n"),
    "host with NUL": get(b"/", host=b"Host: local\x00host\r\n"),
    "cookies not ASCII": get(b"/", b"Cookie: \xff\xfe\x80=1; sessionid=\xff; csrftoken=\x01"),
    "token not ASCII": get(b"/v1/groups", b"Authorization: Bearer \xff\xfe"),
    "empty token": get(b"/v1/groups", b"Authorization:"),
    "header of 200 kB": get(b"/", b"X: " + b"y" * 200_000),
    "5,000 headers": get(b"/", *(b"X-%d: y" % n for n in range(5_000))),
    "folded header": get(b"/", b" folded: x"),
    "negative length": post(b"Content-Length: -1"),
    "length of 26 digits": post(b"Content-Length: " + b"9" * 26),
    "length of 5,000 digits": post(b"Content-Length: " + b"9" * 5_000),
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 35"),
    "length too small": post(b"Content-Length: 3"),
    "chunk size that is none": post(b"Transfer-Encoding: chunked", body=b"ZZ\r\n" + HEARTBEAT),
    "chunks beyond the limit": post(b"Transfer-Encoding: chunked", body=CHUNKS_OF_A_MEGABYTE),
    "chunks beyond the limit, for Django": post(
        b"Transfer-Encoding: chunked", body=CHUNKS_OF_A_MEGABYTE, path=b"/v1/topics"
    ),
    "web socket": get(b"/v1/coordinator", b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Key: x"),
}
"""Requests that are over, so that there must be an answer."""


@pytest.fixture(scope="module")
def server(worker_database: str) -> Iterator[Running]:
    """One server for all tests."""
    with start_server(worker_database) as server:
        server.wait_ready()
        yield server


def answer(server: Running, request: bytes, seconds: float = ANSWER_SECONDS) -> list[int] | None:
    """The statuses that come back; None where neither an answer nor the end of the connection came."""
    read = b""
    with socket.create_connection(("127.0.0.1", server.port or 0)) as connection:
        connection.settimeout(seconds)
        try:
            connection.sendall(request)
            while part := connection.recv(65_536):
                read += part
                if b"\r\n\r\n" in read:
                    break
        except TimeoutError:
            return None
        except ConnectionError:
            pass  # it hung up while we were still talking
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d{3})", read)]


def assert_unharmed(server: Running, written: int, token: str) -> None:
    """It serves, and what it wrote since holds no traceback and no secret."""
    assert httpx.get(f"{server.url}/livez").status_code == 200
    assert "Traceback" not in server.output[written:]
    assert token not in server.output[written:]


@pytest.mark.parametrize("name", COMPLETE)
def test_odd_bytes_are_answered_or_hung_up_on(server: Running, token: str, name: str) -> None:
    request = COMPLETE[name]
    if b"Authorization" not in request:
        request = request.replace(HOST, HOST + b"Authorization: Bearer " + token.encode() + b"\r\n", 1)
    written = len(server.output)
    statuses = answer(server, request)
    assert statuses is not None, "it left us waiting"
    assert all(status < 500 for status in statuses)
    assert_unharmed(server, written, token)


@pytest.mark.whole("hundreds of damaged requests, some of which are waited for")
def test_requests_cut_short_and_damaged(server: Running, token: str) -> None:
    random, written = Random(SEED), len(server.output)
    print(f"seed {SEED}")
    good = post(b"Authorization: Bearer " + token.encode(), b"Content-Length: %d" % len(HEARTBEAT))
    assert answer(server, good) == [404]
    for end in range(0, len(good), 5):
        with socket.create_connection(("127.0.0.1", server.port or 0)) as connection:
            connection.sendall(good[:end])
    for _ in range(MUTATED):
        damaged = bytearray(good)
        for _ in range(random.choice((1, 2, 5))):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        statuses = answer(server, bytes(damaged), 0.1)  # some promise more than they send
        assert all(status < 500 for status in statuses or ()), bytes(damaged)
    assert_unharmed(server, written, token)


def everything(server: Running, *parts: bytes, wait_for: bytes = b"") -> bytes:
    """What comes back until the server closes the connection. Later parts are sent after `wait_for` has come."""
    read = b""
    with socket.create_connection(("127.0.0.1", server.port or 0)) as connection:
        connection.settimeout(60)
        connection.sendall(parts[0])
        for part in parts[1:]:
            while wait_for not in read:
                more = connection.recv(65_536)
                assert more, read
                read += more
            connection.sendall(part)
        while more := connection.recv(65_536):
            read += more
    return read


def statuses_of(read: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d{3})", read)]


LAST = get(b"/livez", b"Connection: close")


def test_pipelined_requests_are_answered_in_their_order(server: Running, token: str) -> None:
    bearer = b"Authorization: Bearer " + token.encode()
    length = b"Content-Length: %d" % len(HEARTBEAT)
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HEARTBEAT), HEARTBEAT)
    requests = [
        get(b"/livez"),
        post(bearer, length),
        post(length),
        get(b"/nowhere"),
        post(bearer, b"Transfer-Encoding: chunked", body=chunks),
        LAST,
    ]
    expected = [200, 404, 401, 404, 404, 200]
    assert statuses_of(everything(server, b"".join(requests))) == expected
    assert statuses_of(everything(server, *requests)) == expected


def test_a_body_is_asked_for_when_it_is_wanted(server: Running, token: str) -> None:
    expecting = (b"Content-Length: %d" % len(HEARTBEAT), b"Expect: 100-continue", b"Connection: close")
    wanted = post(b"Authorization: Bearer " + token.encode(), *expecting, body=b"")
    assert statuses_of(everything(server, wanted, HEARTBEAT, wait_for=b"100 Continue\r\n\r\n")) == [100, 404]
    assert statuses_of(everything(server, wanted + HEARTBEAT))[-1] == 404, "it came without being asked for"


def test_a_body_that_is_not_wanted_is_not_asked_for(server: Running, token: str) -> None:
    expecting = (b"Content-Length: %d" % len(HEARTBEAT), b"Expect: 100-continue")
    refused = post(b"Authorization: Bearer none", *expecting, body=b"")
    assert statuses_of(everything(server, refused, HEARTBEAT + LAST, wait_for=b"401")) == [401, 200]
    too_large = post(b"Authorization: Bearer " + token.encode(), b"Content-Length: 9999999", *expecting[1:], body=b"")
    assert statuses_of(everything(server, too_large.replace(b"Expect", b"Connection: close\r\nExpect"))) == [413]
