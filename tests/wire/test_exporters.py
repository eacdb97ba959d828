"""A lag exporter, unmodified, against a real server."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.processes.test_examples import PARTITIONS, TOPIC
from tests.support.database import cloned_database
from tests.support.processes import environment, free_port
from tests.wire import golang
from tests.wire.kafka_workers import Listening, listening_on
from tests.wire.members import member_of, polled

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"),
]

KAFKA_EXPORTER = "github.com/danielqsj/kafka_exporter", "v1.9.0"
SECONDS = 60.0
SERIES = re.compile(r'^(kafka_\w+)\{(?:consumergroup="([^"]+)",)?partition="(\d)",topic="lines"\} (\S+)$', re.MULTILINE)


@pytest.fixture(scope="module")
def listening(postgres: str) -> Iterator[Listening]:
    """One of its own: watermarks of the topic are known here."""
    golang.installed(*KAFKA_EXPORTER)
    with cloned_database(postgres) as conninfo, listening_on(conninfo) as found:
        yield found


@contextmanager
def kafka_exporter(listening: Listening, directory: Path) -> Iterator[str]:
    """The address of its metrics. Skips the test where it cannot be had."""
    program, login, port = golang.installed(*KAFKA_EXPORTER), listening.login(), free_port()
    given = {
        "kafka.server": login["bootstrap.servers"],
        "sasl.mechanism": "plain",
        "sasl.username": login["sasl.username"],
        "sasl.password": login["sasl.password"],
        "web.listen-address": f"127.0.0.1:{port}",
    }
    command = [program, "--sasl.enabled", *(f"--{name}={value}" for name, value in given.items())]
    with (directory / "said").open("wb") as said:
        running = subprocess.Popen(command, env=environment(None, directory), stdout=said, stderr=said)
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        running.kill()
        running.wait()


def scraped(address: str, directory: Path) -> dict[tuple[str, str, int], float]:
    """Values by name, group and partition; waits until it answers."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            text = httpx.get(address, timeout=SECONDS, trust_env=False).text
        except httpx.TransportError:
            assert time.monotonic() < deadline, (directory / "said").read_text()
            time.sleep(0.1)
        else:
            return {(name, group, int(number)): float(value) for name, group, number, value in SERIES.findall(text)}


@pytest.mark.parametrize("kind", ["confluent", "confluent-consumer"])
def test_kafka_exporter_knows_offsets_ends_and_lag(listening: Listening, kind: str, tmp_path: Path) -> None:
    """Of a group of either protocol."""
    group = f"exported-{kind}"
    watermark = {"partitions": [{"partition": 2, "log_start_offset": 5, "log_end_offset": 90}]}
    assert listening.service.request("POST", f"topics/{TOPIC}/watermarks", json=watermark).status_code == 200
    with closing(member_of(kind, listening, group)) as member:
        polled(lambda: member.numbers() == set(range(PARTITIONS)), member)
        member.commit(2, 40)
        with kafka_exporter(listening, tmp_path) as address:
            found = scraped(address, tmp_path)
    assert found["kafka_topic_partition_current_offset", "", 2] == 90
    assert found["kafka_topic_partition_oldest_offset", "", 2] == 5
    assert found["kafka_consumergroup_current_offset", group, 2] == 40
    assert found["kafka_consumergroup_lag", group, 2] == 50
