"""Connections whose clients do not do their part are closed, and no others: a real server, raw sockets.

Whatever has to outlast the limits is compared with a silent connection that was opened later: when the server has
closed that one, the limits have passed for the others too.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.contrib.auth import get_user_model
from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes import Running, start_server

pytestmark = pytest.mark.processes

TIMEOUT_MS = 2_000
SHORT = {
    "KCOORD_HTTP_HEAD_TIMEOUT_MS": TIMEOUT_MS,
    "KCOORD_HTTP_BODY_TIMEOUT_MS": TIMEOUT_MS,
    "KCOORD_HTTP_WRITE_TIMEOUT_MS": TIMEOUT_MS,
    "KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 60_000,
}
END_SECONDS = 60.0
"""The longest that a test waits for the end of a connection; the server needs some two seconds."""

GOOD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
JOIN = {
    "member_id": "",
    "group_instance_id": "i1",
    "session_timeout_ms": 45_000,
    "rebalance_timeout_ms": 300_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "subscription": {"topics": ["orders"]}}],
    "max_wait_ms": 60_000,
}
BODY = b'{"heartbeats":[]}'


def post(token: str, *headers: str, body: bytes = BODY, version: str = "1.1") -> bytes:
    lines = [
        f"POST /v1/heartbeats HTTP/{version}",
        "Host: localhost",
        "Content-Type: application/json",
        f"Authorization: Bearer {token}",
        *headers,
    ]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


@pytest.fixture(scope="module")
def server(worker_database: str) -> Iterator[Running]:
    """One server with short limits for all tests."""
    with start_server(worker_database, env=SHORT) as server:
        server.wait_ready()
        yield server


def dial(server: Running, *, receive_buffer: int = 0) -> socket.socket:
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(END_SECONDS)
    connection.connect(("127.0.0.1", server.port or 0))
    return connection


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection. Raises TimeoutError where it does not."""
    read = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            read += part
    return read


def answer(connection: socket.socket) -> bytes:
    """One response with a Content-Length."""
    read = b""
    while b"\r\n\r\n" not in read:
        part = connection.recv(65_536)
        assert part, read
        read += part
    head, _, body = read.partition(b"\r\n\r\n")
    length = int(
        next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1]
    )
    while len(body) < length:
        body += connection.recv(length - len(body))
    return head + b"\r\n\r\n" + body


def statuses(read: bytes) -> list[int]:
    return [int(part[:3]) for part in read.split(b"HTTP/1.1 ")[1:]]


def drip(connection: socket.socket, data: bytes) -> bytes:
    """Send byte by byte, slowly, until the server has enough; what it says at the end."""
    for byte in data:
        readable, _, _ = select.select([connection], [], [], 0.1)
        if readable:
            break
        with contextlib.suppress(ConnectionError):
            connection.sendall(bytes([byte]))
    else:
        raise AssertionError("the server took all of it")
    return rest_of(connection)


def counted(server: Running, name: str, **labels: str) -> float:
    """A number of /metrics, 0 where there is none yet."""
    for family in text_string_to_metric_families(httpx.get(f"{server.url}/metrics").text):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return float(sample.value)
    return 0.0


def closed(server: Running, reason: str) -> float:
    return counted(server, "kcoord_http_connections_closed_total", reason=reason)


def outlast_the_limits(server: Running) -> None:
    """Return when every limit has passed for what was there before."""
    for _ in range(2):
        with dial(server) as silent:
            assert rest_of(silent) == b""


UNFINISHED: dict[str, tuple[Callable[[str], bytes], list[int]]] = {
    "nothing": (lambda _: b"", []),
    "half a request line": (lambda _: b"GET /liv", [408]),
    "half a head": (lambda _: GOOD[:-2], [408]),
    "no body": (lambda token: post(token, f"Content-Length: {len(BODY)}", body=b""), [408]),
    "half a body": (lambda token: post(token, f"Content-Length: {len(BODY)}", body=BODY[:9]), [408]),
    "half a body for Django": (
        lambda token: post(token, "Content-Length: 17", body=BODY[:9]).replace(b"/v1/heartbeats", b"/v1/topics"),
        [408],
    ),
    "half a chunk": (lambda token: post(token, "Transfer-Encoding: chunked", body=b'11\r\n{"hea'), [408]),
    "no last chunk": (lambda token: post(token, "Transfer-Encoding: chunked", body=b"11\r\n" + BODY + b"\r\n"), [408]),
    "no body after 100 Continue": (
        lambda token: post(token, f"Content-Length: {len(BODY)}", "Expect: 100-continue", body=b""),
        [100, 408],
    ),
    "half a body of a request that was answered": (
        lambda _: post("no token", f"Content-Length: {len(BODY)}", body=BODY[:9]),
        [401],
    ),
    "half of the next request": (lambda _: GOOD + GOOD[:-2], [200, 408]),
    "half a body of the next request": (
        lambda token: GOOD + post(token, f"Content-Length: {len(BODY)}", body=BODY[:9]),
        [200, 408],
    ),
}


@pytest.fixture(scope="module")
def ends(server: Running, worker_database: str, django_db_setup: None, django_db_blocker: object) -> dict[str, bytes]:
    """What came on a connection of each kind until the server closed it; all of them at the same time."""
    from kcoord.access.tokens import ALL_RULES, create_token

    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        token = create_token(f"unfinished {secrets.token_hex(4)}", ALL_RULES).secret  # several servers, one database
    with contextlib.ExitStack() as stack:
        connections = {}
        for name, (request, _) in UNFINISHED.items():
            connections[name] = stack.enter_context(dial(server))
            connections[name].sendall(request(token))
        return {name: rest_of(connection) for name, connection in connections.items()}


@pytest.mark.parametrize("name", UNFINISHED)
def test_what_is_not_finished_is_closed(ends: dict[str, bytes], name: str) -> None:
    assert statuses(ends[name]) == UNFINISHED[name][1]


def test_late_requests_are_told_so_in_the_shape_of_every_error(ends: dict[str, bytes]) -> None:
    head, _, body = ends["half a body"].partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head
    problem = json.loads(body)
    assert (problem["status"], problem["error"], problem["action"]) == (408, "REQUEST_TIMED_OUT", "retry")


@pytest.mark.whole("waits for the limits again; what is not finished is closed in the default")
def test_dripping_does_not_help(server: Running, token: str) -> None:
    endless = {
        "head": b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 10_000,
        "length": post(token, "Content-Length: 60000", body=b" " * 60_000),
        "chunks": post(token, "Transfer-Encoding: chunked", body=b"1\r\n \r\n" * 10_000),
        "extension": post(token, "Transfer-Encoding: chunked", body=b"1;" + b"x" * 10_000),
    }

    def send(name: str) -> list[int]:
        data = endless[name]
        at = 0 if name == "head" else data.index(b"\r\n\r\n") + 4
        with dial(server) as connection:
            connection.sendall(data[:at])
            return statuses(drip(connection, data[at:]))

    with ThreadPoolExecutor(len(endless)) as threads:
        assert list(threads.map(send, endless)) == [[408]] * len(endless)


def test_both_lengths_are_refused_and_nothing_after_them_is_a_request(server: Running, token: str) -> None:
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    both = ("Content-Length: 4", "Transfer-Encoding: chunked")
    before = closed(server, "framing")
    ambiguous = {
        "both": post(token, *both, body=chunks),
        "the other way round": post(token, *reversed(both), body=chunks),
        "after a good one": GOOD + post(token, *both, body=chunks),
        "chunks before HTTP/1.1": post(token, both[1], body=chunks, version="1.0"),
    }
    for name, request in ambiguous.items():
        with dial(server) as connection:
            connection.sendall(request + GOOD)
            read = rest_of(connection)
        assert statuses(read) == ([200, 400] if name == "after a good one" else [400]), name
        assert b"Transfer-Encoding" in read, name
    assert closed(server, "framing") == before + len(ambiguous)


@pytest.mark.parametrize(
    "header",
    [
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding: chunked;q=1",
        'Transfer-Encoding: "chunked"',
        "Transfer-Encoding: chun\r\n ked",
        "Transfer-Encoding:",
        "Content-Length: 17\r\nTransfer-Encoding: \tCHUNKED ",
        "Content-Length: 17\r\nTransfer-Encoding: xchunked",
        "Content-Length: 17\r\nX: y\nTransfer-Encoding: chunked",
        "Content-Length: 17\r\nTransfer-Encoding:\r\n chunked",
        "Content-Length: 17\r\nContent-Length: 18",
        "Content-Length: 17, 18",
        "Content-Length: +17",
        "Content-Length: 0x11",
        "Content-Length: 1_7",
    ],
)
def test_odd_framing_ends_the_connection(server: Running, token: str, header: str) -> None:
    with dial(server) as connection:
        connection.sendall(post(token, header) + GOOD)
        assert statuses(rest_of(connection)) == [400]


def signed_in(browser: httpx.Client, username: str, password: str) -> None:
    browser.get("/sign-in")
    fields = {"username": username, "password": password, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    assert browser.post("/sign-in", data=fields).status_code == 302


@pytest.mark.whole("waits for the limits twice")
def test_what_is_in_order_outlasts_the_limits(server: Running, database: str, token: str) -> None:
    """A connection between two requests, a held join, and the stream of events of a page."""
    group, username = f"outlasting-{server.port}", f"peer-{server.port}"
    get_user_model().objects.create_superuser(username, password="a long password")
    headers = {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=server.url, headers=headers, timeout=END_SECONDS) as client,
        httpx.Client(base_url=server.url, timeout=END_SECONDS) as browser,
    ):
        signed_in(browser, username, "a long password")
        with browser.stream("GET", "/live") as stream, dial(server) as idle:
            events = stream.iter_text()
            assert next(events).startswith("retry:")
            idle.sendall(GOOD)
            assert statuses(answer(idle)) == [200]
            body = json.dumps(JOIN).encode()
            request = post(token, f"Content-Length: {len(body)}", body=body)
            with dial(server) as parked:
                parked.sendall(request.replace(b"/v1/heartbeats", f"/v1/groups/{group}/join".encode()))
                wait_for_state(client, group, "PreparingRebalance")
                assert any("event: changed" in event for event in events)
                outlast_the_limits(server)
                readable, _, _ = select.select([parked], [], [], 0)
                assert not readable, parked.recv(1_000)
            idle.sendall(GOOD)
            assert statuses(answer(idle)) == [200]
            assert client.post("/v1/groups", json={"group_id": f"another-{server.port}"}).status_code == 201
            assert any("event: changed" in event for event in events)


def wait_for_state(client: httpx.Client, group: str, state: str) -> None:
    deadline = time.monotonic() + END_SECONDS
    while True:
        response = client.get(f"/v1/groups/{group}")
        if response.status_code == 200 and response.json()["state"] == state:
            return
        assert time.monotonic() < deadline, response.text
        time.sleep(0.02)


@pytest.mark.whole("waits for the limit; the door of Kafka has this in the default")
def test_a_client_that_does_not_read_is_closed(server: Running) -> None:
    before = closed(server, "write_timeout")
    with dial(server, receive_buffer=4_096) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3_000)
        ended = select.poll()
        ended.register(connection, select.POLLERR | select.POLLHUP)
        assert ended.poll(END_SECONDS * 1_000), "it may go on without reading"
    assert closed(server, "write_timeout") == before + 1


def test_too_many_connections_are_refused_until_there_are_fewer(database: str) -> None:
    limit = 10
    settings = {"KCOORD_HTTP_MAX_CONNECTIONS": limit}
    with start_server(database, env=settings) as server, contextlib.ExitStack() as stack:
        server.wait_ready()
        wait_for_connections(server, 1)
        held = [stack.enter_context(dial(server)) for _ in range(limit)]
        for connection in held:
            connection.sendall(GOOD)
            assert statuses(answer(connection)) == [200]
        for _ in range(3 * limit):
            with dial(server) as refused:
                head, _, body = rest_of(refused).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
                assert b"retry-after: 1\r\n" in head + b"\r\n"
                assert json.loads(body)["error"] == "COORDINATOR_NOT_AVAILABLE"
        held[0].sendall(GOOD)
        assert statuses(answer(held[0])) == [200], "who is connected is served"
        for connection in held:
            connection.close()
        wait_for_connections(server, 1)
        assert closed(server, "limit") >= 3 * limit


def wait_for_connections(server: Running, count: int) -> None:
    """Until so many connections are open; the one that asks is among them."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        with contextlib.suppress(httpx.TransportError):
            response = httpx.get(f"{server.url}/metrics")
            if response.status_code == 200 and f"kcoord_http_connections {count}.0" in response.text:
                return
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.whole("a freeze of its own; the default has one")
def test_a_server_that_was_stopped_does_not_blame_its_clients(database: str) -> None:
    """Its timers are late when it goes on; what came meanwhile has to be read first, and what did not may yet come."""
    timeout = 4.0
    settings = {"KCOORD_HTTP_HEAD_TIMEOUT_MS": int(timeout * 1_000)}
    with (
        start_server(database, env=settings) as server,
        contextlib.ExitStack() as stack,
    ):
        server.wait_ready()
        while_stopped, afterwards = (stack.enter_context(dial(server)) for _ in range(2))
        for connection in (while_stopped, afterwards):
            connection.sendall(GOOD[:-2])
        assert httpx.get(f"{server.url}/livez").status_code == 200
        server.send(signal.SIGSTOP)
        try:
            time.sleep(timeout + 1)
            while_stopped.sendall(GOOD[-2:])
        finally:
            server.send(signal.SIGCONT)
        assert statuses(answer(while_stopped)) == [200]
        afterwards.sendall(GOOD[-2:])
        assert statuses(answer(afterwards)) == [200]
        assert closed(server, "head_timeout") == 0


def test_the_server_is_unharmed(server: Running) -> None:
    """After all of the above."""
    assert httpx.get(f"{server.url}/livez").status_code == 200
    assert "Traceback" not in server.output, server.report("wrote a traceback")
