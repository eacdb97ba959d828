"""Kafka's Java share consumer: it joins, and without ShareFetch it does not stay (docs/kafka-clients.md)."""

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


def test_a_share_consumer_joins_and_sends_no_heartbeats_while_it_waits(listening: Listening, tmp_path: Path) -> None:
    settings = tmp_path / "settings.properties"
    java.write_properties(settings, {**java.login_of(listening.login()), "group.id": "java-share"})
    command = [*java.program(Path(__file__).parent / "java_member" / "Share.java"), str(settings), TOPIC, "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "polled 0\n", done.stdout + done.stderr
    described = listening.service.describe("java-share")
    assert described["type"] == "share"
    events = listening.service.request("GET", "groups/java-share/events").json()["events"]
    assert [event["kind"] for event in events if event["kind"].startswith("member_")][::-1] == [
        "member_joined",
        "member_reconciled",
        "member_expired",
    ]
    assert described["state"] == "Empty", "its session of 6 s was over before it was closed"
