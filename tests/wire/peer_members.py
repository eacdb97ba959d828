"""Members of clients that others write, each in a process; in the classic protocol unless their name says otherwise."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.processes.test_examples import TOPIC
from tests.support.processes import environment
from tests.wire import golang, packages, rust
from tests.wire.kafka_workers import Listening
from tests.wire.process_members import ProcessMember

PEERS = Path(__file__).parent / "peers"
KAFKAJS, NODE_RDKAFKA, PLATFORMATIC = "2.2.4", "3.6.1", "1.35.0"
"""Later versions of @platformatic/kafka need Node 22."""

Program = tuple[Sequence[str], dict[str, str]]
"""A command and what it needs in its environment."""


def _kafkajs() -> Program:
    found = packages.of_npm("kafkajs", KAFKAJS)
    return ["node", str(PEERS / "kafkajs_member.js")], {"NODE_PATH": str(found), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}


def _node_rdkafka() -> Program:
    """Its installation compiles librdkafka."""
    found = packages.of_npm("node-rdkafka", NODE_RDKAFKA)
    return ["node", str(PEERS / "rdkafka_member.js")], {"NODE_PATH": str(found)}


def _platformatic(protocol: str) -> Program:
    found = packages.of_npm("@platformatic/kafka", PLATFORMATIC)
    return ["node", str(PEERS / "platformatic_member.js")], {"NODE_PATH": str(found), "KCOORD_PROTOCOL": protocol}


PROGRAMS: dict[str, Callable[[], Program]] = {
    "aiokafka": lambda: ([sys.executable, str(PEERS / "aiokafka_member.py")], {}),
    "kafkajs": _kafkajs,
    "node-rdkafka": _node_rdkafka,
    "platformatic": lambda: _platformatic("classic"),
    "platformatic-consumer": lambda: _platformatic("consumer"),
    "rust-rdkafka": lambda: ([rust.built(PEERS / "rust_rdkafka")], {}),
    "sarama": lambda: ([golang.built(PEERS / "sarama")], {}),
    "kafka-go": lambda: ([golang.built(PEERS / "kafka_go")], {}),
}
"""What runs a member of each client. Skips the test where the client or its language cannot be had."""


class Peer(ProcessMember):
    """A member of the topic of the workers, with the client's own assignor."""

    def __init__(self, client: str, listening: Listening, group: str, session_ms: int) -> None:
        command, needs = PROGRAMS[client]()
        directory = tempfile.TemporaryDirectory(prefix="peer-member-")
        env = environment(None, Path(directory.name), {"KCOORD_TOKEN": listening.service.token, **needs})
        given = [f"127.0.0.1:{listening.port}", group, TOPIC, str(session_ms)]
        super().__init__([*command, *given], env, directory)
