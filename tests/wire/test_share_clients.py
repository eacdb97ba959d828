"""Kafka's Java share consumer: it is given nothing, and stays in its group (docs/kafka-clients.md)."""

from __future__ import annotations

import subprocess
from datetime import datetime
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


SESSION_MS, SECONDS = 2_000, 10


def test_a_share_consumer_stays_in_its_group_beyond_its_session(listening: Listening, tmp_path: Path) -> None:
    settings = tmp_path / "settings.properties"
    java.write_properties(settings, {**java.login_of(listening.login()), "group.id": "java-share"})
    listening.service.request("PATCH", "groups/java-share/config", json={"share.session.timeout.ms": SESSION_MS})
    command = [*java.program(Path(__file__).parent / "java_member" / "Share.java"), str(settings), TOPIC, str(SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "polled 0\n", done.stdout + done.stderr
    events = listening.service.request("GET", "groups/java-share/events").json()["events"]
    found = {event["kind"]: event["at"] for event in events if event["kind"].startswith("member_")}
    assert list(found)[::-1] == ["member_joined", "member_reconciled", "member_left"], "it left when it was closed"
    stayed = datetime.fromisoformat(found["member_left"]) - datetime.fromisoformat(found["member_joined"])
    assert stayed.total_seconds() * 1000 > 3 * SESSION_MS
