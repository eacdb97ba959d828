"""Members of Kafka's Java client: processes that are told by lines what to do."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.processes.test_examples import TOPIC
from tests.wire import java
from tests.wire.kafka_workers import Listening
from tests.wire.process_members import ProcessMember

PROGRAM = Path(__file__).parent / "java_member" / "Member.java"
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def _settings(
    listening: Listening, group: str, protocol: str, instance: str, assignor: str, session_ms: int
) -> dict[str, Any]:
    login = listening.login()
    jaas = f'{LOGIN} required username="any" password="{login["sasl.password"]}";'
    settings: dict[str, Any] = {name: login[name] for name in ("bootstrap.servers", "security.protocol")}
    settings |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    settings |= {"group.id": group, "group.protocol": protocol, "enable.auto.commit": "false"}
    settings |= {"auto.offset.reset": "earliest", "transactional.id": f"tx-{group}"}
    if instance:
        settings["group.instance.id"] = instance
    if protocol == "classic":
        settings |= {"session.timeout.ms": session_ms, "heartbeat.interval.ms": 500}
        settings |= {"partition.assignment.strategy": ASSIGNORS[assignor]}
    return settings


class Java(ProcessMember):
    """A member of Kafka's Java client. Skips the test without a JDK or the client's jars."""

    def __init__(
        self,
        listening: Listening,
        group: str,
        protocol: str,
        instance: str,
        assignor: str,
        session_ms: int = 120_000,
    ) -> None:
        if shutil.which("javac") is None:
            pytest.skip("no javac: java cannot run a program from its source")
        directory = tempfile.TemporaryDirectory(prefix="java-member-")
        settings = Path(directory.name) / "settings.properties"
        found = _settings(listening, group, protocol, instance, assignor, session_ms)
        settings.write_text("".join(f"{name}={value}\n" for name, value in found.items()))
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", java.classpath(), str(PROGRAM)]
        super().__init__([*command, str(settings), TOPIC], None, directory)

    def transaction(self, partition: int, offset: int, end: str) -> None:
        """Send an offset in a transaction. `end`: "commit" or "abort"."""
        self.ask("transaction", partition, offset, end)
