"""Real servers: TLS, two nodes, killed clients, outages, stops."""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.members import eventually
from tests.support.processes import ROOT, Running, free_ports, start_server
from tests.support.tls import make_certificate
from tests.wire.client import WireClient
from tests.wire.support import join_fields, sync_fields

pytestmark = pytest.mark.processes
WHOLE = pytest.mark.whole("servers of its own for each; the default has one whose client is killed")

SLOW = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0, "KCOORD_GROUP_MIN_SESSION_TIMEOUT_MS": 1_000}


def server_of(conninfo: str, port: int, **env: object) -> Running:
    """A server that listens for Kafka clients on `port`."""
    return start_server(conninfo, env={"KCOORD_KAFKA_PORT": port, **SLOW, **env})


async def leader(client: WireClient, **changes: object) -> str:
    """Join an empty group and sync; returns the member id."""
    pending = await client.ask("join_group", 9, **join_fields(**changes))
    assert pending.error_code == 79, pending
    joined = await client.ask("join_group", 9, **join_fields(pending.member_id, **changes))
    assert joined.error_code == 0, joined
    synced = await client.ask("sync_group", 5, **sync_fields(joined, {joined.member_id: b"a"}))
    assert synced.error_code == 0
    return str(joined.member_id)


@pytest.fixture
async def port(database: str) -> AsyncIterator[int]:
    """The port for Kafka clients of a running server."""
    found = free_ports(1)
    with server_of(database, found) as server:
        await asyncio.to_thread(server.wait_ready)
        yield found


async def test_a_killed_client_loses_its_session_and_disturbs_nobody(port: int, token: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from tests.wire.client import WireClient\n"
        "from tests.wire.test_servers import leader\n"
        "async def main():\n"
        "    async with WireClient(int(sys.argv[1])) as client:\n"
        "        await client.log_in(sys.argv[2])\n"
        "        print(await leader(client, session_timeout=1_000), flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(port), token, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert victim.stdout is not None
    member_id = (await victim.stdout.readline()).decode().strip()
    victim.kill()
    await victim.wait()
    async with WireClient(port) as client:
        await client.log_in(token)
        successor = await leader(client)
        assert successor != member_id


@WHOLE
async def test_tls(database: str, token: str, tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    port = free_ports(1)
    tls = {"KCOORD_KAFKA_TLS_CERTIFICATE": certificate, "KCOORD_KAFKA_TLS_KEY": key}
    with server_of(database, port, **tls) as server:
        await asyncio.to_thread(server.wait_ready)
        context = ssl.create_default_context(cafile=str(certificate))
        context.check_hostname = False
        async with WireClient(port, tls=context) as client:
            await client.log_in(token)
            await leader(client)
        async with WireClient(port) as plain:
            plain.send("api_versions", 0)
            assert await plain.is_closed()
        async with WireClient(port, tls=context) as client:
            await client.log_in(token)


@WHOLE
async def test_nodes_are_brokers_and_send_members_to_the_owner(database: str, token: str) -> None:
    port = free_ports(2)
    routed = {"KCOORD_COORDINATOR_ROUTING": "owner"}
    with (
        server_of(database, port, KCOORD_NODE_ID="a", **routed) as first,
        server_of(database, port + 1, KCOORD_NODE_ID="b", **routed) as second,
    ):
        for server in (first, second):
            await asyncio.to_thread(server.wait_ready)
        async with WireClient(port) as one, WireClient(port + 1) as two:
            await one.log_in(token)
            await two.log_in(token)

            async def are_brokers() -> bool:
                answers = [await client.ask("metadata", 12, topics=[]) for client in (one, two)]
                return all({b.port for b in answer.brokers} == {port, port + 1} for answer in answers)

            await eventually(are_brokers, "both nodes are brokers")
            by_port = {b.port: b.broker_id for b in (await one.ask("describe_cluster", 1)).brokers}
            assert sorted(by_port.values()) == [1, 2]
            groups = [f"g{number}" for number in range(20)]

            async def are_spread() -> dict[str, int]:
                found = await one.ask("find_coordinator", 4, key_type=0, coordinator_keys=groups)
                owners = {entry.key: entry.port for entry in found.coordinators}
                return owners if set(owners.values()) == {port, port + 1} else {}

            owners = await eventually(are_spread, "both nodes own groups")
            mine = next(group for group, owner in owners.items() if owner == port)

            async def is_taken() -> bool:
                return (await one.ask("join_group", 9, **join_fields(group_id=mine))).error_code == 79

            await eventually(is_taken, "the owner has loaded the partition")
            assert (await two.ask("join_group", 9, **join_fields(group_id=mine))).error_code == 16
            beat = {"group_id": mine, "generation_id": 1, "member_id": "x"}
            assert (await two.ask("heartbeat", 4, **beat)).error_code == 16
            first.terminate()

            async def has_moved() -> bool:
                return (await two.ask("join_group", 9, **join_fields(group_id=mine))).error_code == 79

            await eventually(has_moved, "the other node has taken over")
        with server_of(database, port, KCOORD_NODE_ID="a", **routed) as again:
            await asyncio.to_thread(again.wait_ready)
            async with WireClient(port) as one:
                await one.log_in(token)

                async def keeps_its_number() -> bool:
                    brokers = (await one.ask("describe_cluster", 1)).brokers
                    return {b.port: b.broker_id for b in brokers} == by_port

                await eventually(keeps_its_number, "a node keeps its number over a restart")


@WHOLE
async def test_a_token_rotated_or_revoked_at_one_server_ends_connections_to_the_other(
    database: str, token: str
) -> None:
    """Long before the other would look it up again."""
    port = free_ports(2)
    cached = {"KCOORD_TOKEN_CACHE_MS": 600_000}
    with server_of(database, port, **cached) as here, server_of(database, port + 1, **cached) as there:
        for server in (here, there):
            await asyncio.to_thread(server.wait_ready)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=here.url, headers=headers) as api:
            rules = [{"operation": "read", "resource": "group", "pattern": "prefix", "name": ""}]
            made = (await api.post("/v1/tokens", json={"name": "brief", "rules": rules})).json()
            async with WireClient(port + 1) as client, WireClient(port + 1) as again:
                await client.log_in(made["secret"])
                rotated = await api.post(f"/v1/tokens/{made['id']}/rotate", json={"overlap_ms": 0})
                assert rotated.status_code == 200, rotated.text
                assert await client.is_closed()
                assert await refuses(again, made["secret"])
            async with WireClient(port + 1) as client, WireClient(port + 1) as again:
                await client.log_in(rotated.json()["secret"])
                assert (await api.delete(f"/v1/tokens/{made['id']}")).is_success
                assert await client.is_closed()
                assert await refuses(again, rotated.json()["secret"])


async def refuses(client: WireClient, secret: str) -> bool:
    """Whether a login with this secret is answered SASL_AUTHENTICATION_FAILED."""
    await client.ask("sasl_handshake", 1, mechanism="PLAIN")
    answer = await client.ask("sasl_authenticate", 2, auth_bytes=f"\0user\0{secret}".encode())
    return bool(answer.error_code == 58)


@WHOLE
async def test_a_stop_answers_who_waits_and_ends(database: str, token: str) -> None:
    port = free_ports(1)
    env = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 600_000}
    with server_of(database, port, **env) as server:
        await asyncio.to_thread(server.wait_ready)
        async with WireClient(port) as client, WireClient(port) as idle:
            await client.log_in(token)
            await idle.log_in(token)
            pending = await client.ask("join_group", 9, **join_fields())
            client.send("join_group", 9, **join_fields(pending.member_id))
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(base_url=server.url, headers=headers) as api:

                async def is_parked() -> bool:
                    group = (await api.get("/v1/groups/g")).json()
                    return bool([m for m in group.get("members", ()) if m["state"] == "awaiting_join"])

                await eventually(is_parked, "the join waits")
            server.send(signal.SIGTERM)
            async with asyncio.timeout(30):
                answer = await client.receive("join_group", 9)
            assert answer.error_code == 15
            assert await client.is_closed()
            assert await idle.is_closed()
        # uvicorn raises the signal again when it has stopped.
        assert await asyncio.to_thread(server.wait) in (0, -signal.SIGTERM)
