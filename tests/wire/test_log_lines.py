"""What a real server logs of peers that are no Kafka clients, or have no token: one line each; nobody is disturbed."""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from tests.support.database import cloned_database
from tests.support.members import eventually
from tests.support.tls import make_certificate
from tests.wire.client import WireClient, request_frame
from tests.wire.kafka_workers import Listening, listening_on

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("kafka-clients")]

WRONG = "kc_wrong-secret-of-a-client"


@pytest.fixture(scope="module")
def over_tls(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server whose port for Kafka clients has TLS."""
    key, certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    tls = {"KCOORD_KAFKA_TLS_CERTIFICATE": certificate, "KCOORD_KAFKA_TLS_KEY": key}
    with cloned_database(postgres) as conninfo, listening_on(conninfo, **tls) as found:
        yield found


class Log:
    """What a server logs from now on."""

    def __init__(self, listening: Listening) -> None:
        self._server = listening.service.server
        self._from = len(self._server.output)

    def lines(self) -> list[dict[str, Any]]:
        """Those that are complete."""
        return [json.loads(line) for line in self._server.output[self._from :].split("\n")[:-1]]

    async def connections(self) -> list[tuple[str, str, str]]:
        """Event, reason and detail of each line, of which there is at least one."""

        async def some() -> list[dict[str, Any]]:
            return self.lines()

        await eventually(some, "something is logged")
        return [(line["event"], line.get("reason", ""), line.get("detail", "")) for line in self.lines()]


@asynccontextmanager
async def bystander(listening: Listening, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    """A client that is connected all the time, and served afterwards."""
    async with WireClient(listening.port, tls=tls) as client:
        await client.log_in(listening.service.token)
        yield
        assert (await client.ask("heartbeat", 4, group_id="g", generation_id=1, member_id="m")).error_code == 25


async def wrong_password(port: int) -> None:
    async with WireClient(port) as client:
        await client.ask("sasl_handshake", 1, mechanism="PLAIN")
        answer = await client.ask("sasl_authenticate", 2, auth_bytes=f"\0user\0{WRONG}".encode())
        assert answer.error_code == 58
        assert await client.is_closed()


async def wrong_password_and_more(port: int) -> None:
    """It does not wait for the answer, and may not get it: its requests are not read before it is closed."""
    async with WireClient(port) as client:
        await client.ask("sasl_handshake", 1, mechanism="PLAIN")
        login = request_frame("sasl_authenticate", 2, {"auth_bytes": f"\0user\0{WRONG}".encode()})
        more = request_frame("metadata", 12, {"topics": None})
        client.writer.write(b"".join(struct.pack(">i", len(frame)) + frame for frame in (login, *[more] * 20)))
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                await client.reader.read()


async def wrong_bare_token(port: int) -> None:
    async with WireClient(port) as client:
        await client.ask("sasl_handshake", 0, mechanism="PLAIN")
        client.send_raw(f"\0user\0{WRONG}".encode())
        assert await client.is_closed()


async def http(port: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.TransportError):
            await client.get(f"http://127.0.0.1:{port}/v1/groups")


async def tls_on_the_plain_port(port: int) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(OSError):  # an SSLError, or a reset
        await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def garbage(port: int) -> None:
    async with WireClient(port) as client:
        client.writer.write(b"\xde\xad\xbe\xef" * 100)
        assert await client.is_closed()


Peer = Callable[[int], Awaitable[None]]
FAILED = "the login failed: the password is not a token"
PEERS = [
    (wrong_password, "refused", FAILED),
    (wrong_password_and_more, "refused", FAILED),
    (wrong_bare_token, "refused", "unknown token; create a token and send it"),
    (http, "invalid", "HTTP on the port for Kafka clients"),
    (tls_on_the_plain_port, "invalid", "TLS on a port without TLS"),
    (garbage, "invalid", "-559038737 is not the size of a request"),
]


@pytest.mark.parametrize(("peer", "reason", "detail"), PEERS, ids=lambda value: getattr(value, "__name__", ""))
async def test_one_line_for_a_peer_that_is_turned_away(
    listening: Listening, peer: Peer, reason: str, detail: str
) -> None:
    async with bystander(listening):
        log = Log(listening)
        await peer(listening.port)
    assert await log.connections() == [("kafka_connection_closed", reason, detail)]
    assert WRONG not in str(log.lines())


async def test_a_client_that_tries_again_is_one_line_for_each_connection(listening: Listening) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    settings = {**listening.login(), "sasl.password": WRONG, "group.id": "none", "reconnect.backoff.max.ms": 100}
    async with bystander(listening):
        log = Log(listening)
        consumer = confluent.Consumer({**settings, "log_level": 0})

        async def twice() -> bool:
            return len(log.lines()) >= 2

        try:
            await eventually(twice, "it has tried again")
        finally:
            await asyncio.to_thread(consumer.close)
    assert set(await log.connections()) == {("kafka_connection_closed", "refused", FAILED)}
    peers = [line["peer"] for line in log.lines()]
    assert len(set(peers)) == len(peers)


async def test_one_line_for_a_plain_client_on_the_port_with_tls(over_tls: Listening) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with bystander(over_tls, context):
        log = Log(over_tls)
        async with WireClient(over_tls.port) as plain:
            plain.send("api_versions", 0)
            host, port = plain.writer.get_extra_info("sockname")
            assert await plain.is_closed()
    ((event, reason, _),) = await log.connections()
    assert (event, reason) == ("kafka_connection_closed", "handshake")
    assert log.lines()[0]["peer"] == f"{host}:{port}"
