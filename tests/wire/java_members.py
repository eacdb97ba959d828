"""Members of Kafka's Java client: processes that are told by lines what to do."""

from __future__ import annotations

import queue
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.processes.test_examples import TOPIC
from tests.wire import java
from tests.wire.kafka_workers import Listening

PROGRAM = Path(__file__).parent / "java_member" / "Member.java"
ANSWER_SECONDS = 90.0
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


class Java:
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
        self._directory = tempfile.TemporaryDirectory(prefix="java-member-")
        settings = Path(self._directory.name) / "settings.properties"
        found = _settings(listening, group, protocol, instance, assignor, session_ms)
        settings.write_text("".join(f"{name}={value}\n" for name, value in found.items()))
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", java.classpath(), str(PROGRAM)]
        self.revoked: list[set[int]] = []
        self._answers: queue.Queue[str] = queue.Queue()
        self._said = Path(self._directory.name) / "err"
        with self._said.open("wb") as err:
            self._process = subprocess.Popen(
                [*command, str(settings), TOPIC], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("revoked"):
                self.revoked.append({int(number) for number in line.split()[1:]})
            else:
                self._answers.put(line.rstrip("\n"))
        self._answers.put("! it ended")

    def _ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=ANSWER_SECONDS)
        except (BrokenPipeError, queue.Empty) as error:
            raise AssertionError(f"{words}: {error!r}\n{self._said.read_text()[-2_000:]}") from error
        assert answer.startswith("= "), f"{words}: {answer}\n{self._said.read_text()[-2_000:]}"
        return answer[2:]

    def poll(self) -> None:
        """It polls by itself."""

    def numbers(self) -> set[int]:
        return {int(number) for number in self._ask("numbers").split()}

    def commit(self, partition: int, offset: int) -> None:
        self._ask("commit", partition, offset)

    def committed(self, partition: int) -> int:
        return int(self._ask("committed", partition))

    def transaction(self, partition: int, offset: int, end: str) -> None:
        """Send an offset in a transaction. `end`: "commit" or "abort"."""
        self._ask("transaction", partition, offset, end)

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._ended()

    def close(self) -> None:
        """Leave the group, as the client does when it is closed. Nothing after `kill` or a `close` before."""
        if self._process.returncode is None:
            try:
                self._ask("close")
            finally:
                self._process.kill()
                self._ended()

    def _ended(self) -> None:
        self._process.wait()
        self._reader.join()
        self._directory.cleanup()
