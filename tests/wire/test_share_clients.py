"""Kafka's Java share consumer: it joins, and its poll says that there is no ShareFetch (docs/kafka-clients.md)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.processes.test_examples import TOPIC
from tests.wire import java
from tests.wire.kafka_workers import Listening

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),  # one server for all
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka and Java once each"),
]


def test_a_share_consumer_joins_and_is_told_that_it_cannot_fetch(listening: Listening, tmp_path: Path) -> None:
    settings = tmp_path / "settings.properties"
    java.write_properties(settings, {**java.login_of(listening.login()), "group.id": "java-share"})
    command = [*java.program(Path(__file__).parent / "java_member" / "Share.java"), str(settings), TOPIC, "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr[-3000:])
    assert done.stdout.startswith("! UnsupportedVersionException"), done.stdout + done.stderr
    described = listening.service.describe("java-share")
    assert described["type"] == "share"
    events = listening.service.request("GET", "groups/java-share/events").json()["events"]
    assert "member_joined" in {event["kind"] for event in events}
    assert described["state"] == "Empty", "it left when it was closed"
