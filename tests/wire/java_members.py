"""Members of Kafka's Java client: processes that are told by lines what to do."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.processes.test_examples import TOPIC
from tests.wire import java
from tests.wire.kafka_workers import Listening
from tests.wire.process_members import ProcessMember

PROGRAM = Path(__file__).parent / "java_member" / "Member.java"
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


def _settings(
    listening: Listening, group: str, protocol: str, instance: str, assignor: str, session_ms: int
) -> dict[str, Any]:
    settings: dict[str, Any] = {**java.login_of(listening.login())}
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
        topic: str = TOPIC,
    ) -> None:
        command = java.program(PROGRAM)
        directory = tempfile.TemporaryDirectory(prefix="java-member-")
        settings = Path(directory.name) / "settings.properties"
        found = _settings(listening, group, protocol, instance, assignor, session_ms)
        java.write_properties(settings, found)
        super().__init__([*command, str(settings), topic], None, directory)

    def transaction(self, partition: int, offset: int, end: str) -> None:
        """Send an offset in a transaction. `end`: "commit" or "abort"."""
        self.ask("transaction", partition, offset, end)
