"""The workers of docs/examples/kafka as processes, and a server that they connect to."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kcoord.client.live import FAST, Service
from tests.processes.test_examples import EXAMPLES, PARTITIONS, TOPIC, Files, Language, Place, Worker, shared_by
from tests.support.http_members import make_token
from tests.support.processes import environment, free_ports, start_server
from tests.wire import golang, java

WORKERS = EXAMPLES / "kafka"
KAFKA_PYTHON, CONFLUENT = "worker_kafka_python.py", "worker_confluent.py"
JAVA, FRANZ_GO = "Worker.java", "worker.go"
MODULES = {KAFKA_PYTHON: "kafka", CONFLUENT: "confluent_kafka"}


PATIENT = {"KCOORD_KAFKA_LOGIN_TIMEOUT_MS": 60_000}
"""Clients of tests are slow on a machine that is busy."""


@dataclass(frozen=True)
class Listening:
    """A service that Kafka clients can use."""

    service: Service
    port: int

    def login(self) -> dict[str, str]:
        """What a client of librdkafka needs to connect."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "any",
            "sasl.password": self.service.token,
        }


@contextmanager
def listening_on(conninfo: str, **env: object) -> Iterator[Listening]:
    """A server with a port for Kafka clients, and the topic of the workers. `env`: more settings of the server."""
    port = free_ports(1)
    with start_server(conninfo, env={**FAST, **PATIENT, "KCOORD_KAFKA_PORT": port, **env}) as server:
        server.wait_ready()
        service = Service(server, conninfo, make_token(conninfo))
        service.topic(PARTITIONS, TOPIC)
        yield Listening(service, port)


def command_of(name: str) -> list[str]:
    if name in MODULES:
        if importlib.util.find_spec(MODULES[name]) is None:
            pytest.skip(f"{MODULES[name]} is not installed")
        return [sys.executable, str(WORKERS / name)]
    if name == JAVA:
        return java.program(WORKERS / name, heap="256m")
    return [golang.built(WORKERS)]


class JavaWorker(Worker):
    """SIGTERM ends a JVM with 143 after its shutdown hooks, in which the worker leaves its group."""

    in_order = (0, 143)


@dataclass(frozen=True)
class KafkaPlace(Place):
    """A place whose workers connect to the port for Kafka clients."""

    port: int

    def start(self) -> Worker:
        extra = {
            "KCOORD_KAFKA": f"127.0.0.1:{self.port}",
            "KCOORD_TOKEN": self.service.token,
            "KCOORD_GROUP": self.group,
        }
        env = environment(None, self.directory) | extra | {"HOME": os.environ.get("HOME", "/")}
        kind = JavaWorker if self.language.file == JAVA else Worker
        return kind([*self.command, str(self.files.directory)], env, self.directory)


def place_of(listening: Listening, name: str, directory: Path, group: str) -> KafkaPlace:
    """Where workers of a client run. Skips the test where the client is missing."""
    files = directory / "files"
    files.mkdir(parents=True)
    language = Language(name, "", (0, 0), "")
    command = command_of(name)
    return KafkaPlace(listening.service, language, command, Files(files), directory, group, listening.port)


def sharing(place: Place, members: int) -> Callable[[], bool]:
    return lambda: shared_by(place, members)
