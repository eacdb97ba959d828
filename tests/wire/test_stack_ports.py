"""Where the servers of a stack listen for Kafka clients."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kcoord.config import Config
from kcoord.stack.preflight import StartProblem, check_kafka, nodes_of
from tests.support.processes import free_ports


def test_off_by_default() -> None:
    assert [node.kafka_port for node in nodes_of(Config({}))] == [0]
    assert "KCOORD_KAFKA_PORT" not in nodes_of(Config({"nodes": 2}))[1].identity


def test_loopback_by_default() -> None:
    assert Config({}).str("kafka.host") == "127.0.0.1"


def test_one_server_has_the_port_itself() -> None:
    assert [node.kafka_port for node in nodes_of(Config({"kafka.port": 9092}))] == [9092]


def test_several_servers_have_ports_one_after_the_other() -> None:
    nodes = nodes_of(Config({"kafka.port": 9092, "nodes": 3}))
    assert [node.kafka_port for node in nodes] == [9092, 9093, 9094]
    assert [node.identity["KCOORD_KAFKA_PORT"] for node in nodes] == ["9092", "9093", "9094"]


@pytest.mark.parametrize("wrong", [{"kafka.port": 65_535}, {"kafka.port": 9092, "kafka.advertised.port": 1}])
def test_ports_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(StartProblem, match="KCOORD_KAFKA"):
        nodes_of(Config({"nodes": 2, **wrong}))


def test_a_taken_port_is_named_before_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = Config({"kafka.port": taken.getsockname()[1]})
        with pytest.raises(StartProblem, match="server cannot listen for Kafka clients: port"):
            check_kafka(config, nodes_of(config))


def test_a_certificate_must_be_readable(tmp_path: Path) -> None:
    config = Config({"kafka.port": free_ports(1), "kafka.tls.certificate": str(tmp_path / "none.pem")})
    with pytest.raises(StartProblem, match="KCOORD_KAFKA_TLS_CERTIFICATE"):
        check_kafka(config, nodes_of(config))
