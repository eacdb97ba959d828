"""A server process on its own: how it starts, refuses and ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from kcoord.access.tokens import ALL_RULES, create_token
from kcoord.stack.alive import wait_until_ready
from tests.support.processes import free_port, start, start_server

pytestmark = pytest.mark.processes

LONG_MS = 60_000


def test_requests_that_wait_are_answered_when_the_server_stops(database: str, token: str) -> None:
    settings = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": LONG_MS}
    with start_server(database, env=settings) as server:
        server.wait_ready()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client, ThreadPoolExecutor() as pool:
            join = {
                "member_id": "",
                "group_instance_id": "i1",
                "session_timeout_ms": 45_000,
                "rebalance_timeout_ms": 300_000,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "subscription": {"topics": ["orders"]}}],
                "max_wait_ms": LONG_MS,
            }
            waiting = pool.submit(client.post, "/v1/groups/billing/join", json=join)
            _wait_for_state(client, "billing", "PreparingRebalance")
            assert not waiting.done()
            server.send(signal.SIGTERM)
            answer = waiting.result(timeout=20)
        assert answer.json()["action"] == "retry", answer.text
        assert server.wait() in (0, -signal.SIGTERM)
        assert "Cancel" not in server.output


def _wait_for_state(client: httpx.Client, group: str, state: str) -> None:
    deadline = time.monotonic() + 20
    while True:
        answer = client.get(f"/v1/groups/{group}")
        if answer.status_code == 200 and answer.json()["state"] == state:
            return
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.02)


def test_an_address_in_use_is_one_line_and_status_2(database: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with start("server", ["-m", "kcoord.stack.server"], database, {"KCOORD_PORT": port}) as server:
            assert server.wait() == 2
            (line,) = server.output.splitlines()
            assert line.startswith(f"kcoord: port {port} of 127.0.0.1 is in use")


def test_a_server_binds_its_address_itself_where_nobody_did(database: str) -> None:
    port = free_port()
    with start("server", ["-m", "kcoord.stack.server"], database, {"KCOORD_PORT": port}, forked=True) as server:
        server.port = port
        server.wait_ready()
        secret = create_token("a member", ALL_RULES).secret
        answer = httpx.get(f"{server.url}/v1/groups", headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 200


@pytest.mark.parametrize("host", ["::1", "::"])
def test_a_server_on_ipv6_tells_its_address_in_brackets(database: str, host: str) -> None:
    port = free_port()
    settings = {"KCOORD_PORT": port, "KCOORD_HOST": host}
    with start("server", ["-m", "kcoord.stack.server"], database, settings, forked=True):
        asyncio.run(asyncio.wait_for(wait_until_ready(host, port, "/livez"), 60))
        secret = create_token("a member", ALL_RULES).secret
        headers = {"Authorization": f"Bearer {secret}"}
        answer = httpx.get(f"http://[::1]:{port}/v1/coordinator?group_id=g", headers=headers)
        assert answer.json()["coordinators"][0]["url"] == f"http://[::1]:{port}", answer.text


def test_alive_is_a_server_without_its_database() -> None:
    """What the image's health check asks, on another port and on all addresses."""
    port = free_port()
    settings = {"KCOORD_PORT": port, "KCOORD_HOST": "0.0.0.0"}
    nowhere = f"host=127.0.0.1 port={free_port()} dbname=none user=none"
    with start("server", ["-m", "kcoord.stack.server"], nowhere, settings, forked=True) as server:
        server.port = port
        asyncio.run(asyncio.wait_for(wait_until_ready("127.0.0.1", port, "/livez"), 60))
        assert httpx.get(f"{server.url}/readyz", timeout=30).status_code == 503
        with start("alive", ["-m", "kcoord.stack.alive"], nowhere, settings) as alive:
            assert (alive.wait(), alive.output) == (0, "")
    with start("alive", ["-m", "kcoord.stack.alive"], nowhere, settings) as alive:
        assert alive.wait() == 1
        assert alive.output == f"kcoord: /livez on port {port} of 0.0.0.0 does not answer\n"
