"""What a connection begins with: ApiVersions and the login."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kcoord.door.kafka import dispatch
from kcoord.door.kafka.dispatch import API_VERSIONS
from kcoord.door.kafka.gateway import Gateway
from tests.wire.client import read_answer, request_frame
from tests.wire.conftest import Connect


@pytest.mark.parametrize("version", range(6))
async def test_api_versions_lists_what_is_served(connect: Connect, gateway: Gateway, version: int) -> None:
    client = await connect(None)
    answer = await client.ask("api_versions", version, client_software_name="franz-go", client_software_version="1.20")
    assert answer.error_code == 0
    assert {(k.api_key, k.min_version, k.max_version) for k in answer.api_keys} == {
        (api.key, *api.versions) for api in gateway.apis.values()
    }
    if version >= 3:
        levels = {"group.version": 1, "share.version": 1, "transaction.version": 2}
        assert answer.finalized_features == [
            {"name": name, "max_version_level": level, "min_version_level": level} for name, level in levels.items()
        ]
        assert answer.supported_features == [
            {"name": name, "min_version": level, "max_version": level} for name, level in levels.items()
        ]
        assert answer.finalized_features_epoch == 0


async def test_a_version_that_is_too_high_is_answered_in_version_0(connect: Connect) -> None:
    client = await connect(None)
    client.send_raw(struct.pack(">hhih", API_VERSIONS, 99, 7, 1) + b"t\xff\xff\xff")
    correlation_id, answer = read_answer("api_versions", 0, await client.receive_raw())
    assert correlation_id == 7
    assert answer.error_code == 35
    assert [key.max_version for key in answer.api_keys if key.api_key == API_VERSIONS] == [5]
    assert (await client.ask("api_versions", 0)).error_code == 0


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"cluster_id": "kcoord", "node_id": 1}, 0),
        ({"cluster_id": "other", "node_id": 1}, 129),
        ({"cluster_id": "kcoord", "node_id": 6}, 129),
        ({"cluster_id": "kcoord"}, 42),
        ({"node_id": 1}, 42),
        ({"cluster_id": "", "node_id": -1}, 42),
        ({"cluster_id": "other", "node_id": 1, "client_software_name": "<>"}, 42),
    ],
    ids=str,
)
async def test_a_client_that_wants_another_node_has_to_ask_again_who_there_is(
    connect: Connect, wanted: dict[str, Any], code: int
) -> None:
    """KIP-1242. The codes are those of a broker of Kafka 4.4.0."""
    client = await connect(None)
    asked = {"client_software_name": "x", "client_software_version": "1", **wanted}
    answer = await client.ask("api_versions", 5, **asked)
    assert (answer.error_code, bool(answer.api_keys)) == (code, code == 0)


async def test_software_is_remembered_by_client_and_host(connect: Connect, gateway: Gateway) -> None:
    client = await connect(None, client_id="billing")
    body = {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"}
    await client.ask("api_versions", 3, **body)
    assert gateway.software.of("billing", "127.0.0.1") == ("apache-kafka-java", "4.3.1")
    assert gateway.software.of("billing", "10.0.0.1") == ("", "")


async def test_a_name_of_software_has_kafkas_form(connect: Connect) -> None:
    client = await connect(None)
    answer = await client.ask("api_versions", 3, client_software_name="<b>", client_software_version="1")
    assert (answer.error_code, answer.api_keys) == (42, [])


@pytest.mark.parametrize("version", range(3))
async def test_a_token_is_the_password(connect: Connect, token: str, version: int) -> None:
    client = await connect(None)
    await client.log_in(token, version)


async def test_after_a_handshake_of_version_0_the_token_comes_bare(connect: Connect, token: str) -> None:
    client = await connect(None)
    await client.ask("sasl_handshake", 0, mechanism="PLAIN")
    client.send_raw(f"\0user\0{token}".encode())
    assert await client.receive_raw() == b""
    assert (await client.ask("sasl_handshake", 1, mechanism="PLAIN")).error_code == 34


async def test_a_wrong_token_is_refused_and_the_connection_closed(connect: Connect) -> None:
    client = await connect(None)
    await client.ask("sasl_handshake", 1, mechanism="PLAIN")
    answer = await client.ask("sasl_authenticate", 2, auth_bytes=b"\0user\0nonsense")
    assert answer.error_code == 58
    assert await client.is_closed()


@pytest.mark.parametrize("message", [b"", b"token", b"\0\0\0\0", b"\0u\0\xff"])
async def test_a_message_that_is_not_plain_is_refused(connect: Connect, message: bytes) -> None:
    client = await connect(None)
    await client.ask("sasl_handshake", 1, mechanism="PLAIN")
    assert (await client.ask("sasl_authenticate", 2, auth_bytes=message)).error_code == 58


async def test_other_mechanisms_are_not_supported(connect: Connect) -> None:
    client = await connect(None)
    answer = await client.ask("sasl_handshake", 1, mechanism="SCRAM-SHA-256")
    assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN"])


async def test_a_login_needs_a_handshake(connect: Connect, token: str) -> None:
    client = await connect(None)
    assert (await client.ask("sasl_authenticate", 2, auth_bytes=f"\0u\0{token}".encode())).error_code == 34


async def test_without_a_login_the_connection_is_closed(connect: Connect) -> None:
    client = await connect(None)
    client.send_raw(request_frame("init_producer_id", 4, {}))
    assert await client.is_closed()


async def test_what_is_not_served_is_answered_unsupported_version(connect: Connect, token: str) -> None:
    client = await connect(token)
    client.send_raw(struct.pack(">hhih", 27, 1, 5, -1) + b"\0\1\0")  # WriteTxnMarkers: no error at the top
    assert await client.is_closed()
    client = await connect(token)
    client.send_raw(struct.pack(">hhih", 55, 0, 5, -1) + b"\0\1\0")  # DescribeQuorum
    answer = await client.receive_raw()
    assert struct.unpack_from(">ibh", answer) == (5, 0, 35)
    assert dispatch._name_with_error.cache_info().maxsize is not None, "clients choose the versions"
