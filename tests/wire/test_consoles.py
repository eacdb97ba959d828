"""What AKHQ and Kafbat UI ask of a cluster for their pages, with the versions of Kafka's Java client that they use.

Neither console could be had as a program. `java_console/Console.java` makes the calls that their sources make: AKHQ as
of February 2025, which has the client 3.6.2, and Kafbat UI as of July 2026, which has 3.9.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.wire import java
from tests.wire.kafka_workers import Listening
from tests.wire.members import member_of, polled
from tests.wire.process_members import ProcessMember

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"),
]

PROGRAM = Path(__file__).parent / "java_console" / "Console.java"
VERSIONS = ["3.6.2", "3.9.1", java.VERSION]
LIVING = {"console-classic": "kafka-python", "console-consumer": "confluent-consumer"}
"""Groups with one member each."""
WHOLE = "[lines-0,lines-1,lines-2,lines-3]"

UNSUPPORTED = [
    "acls", "add-acl", "delete-acls", "quorum", "quotas", "alter-quota", "users", "delegation-tokens",
    "reassignments", "reassign lines", "elect lines", "delete-records lines", "move lines",
]  # fmt: skip
"""Calls that are not served. Both consoles take the refusal of the first four as "this cluster has none of that"."""


class Console(NamedTuple):
    """A process of the program with one version of the client, and a topic and a group of its own."""

    process: ProcessMember
    version: str
    topic: str
    group: str

    def ask(self, *words: object) -> str:
        """The answer to a line."""
        return self.process.ask(*words)

    def error(self, *words: object) -> str:
        """The error that answers a line."""
        answer = self.process.attempt(*words)
        assert answer.startswith("! "), answer
        return answer[2:]


@pytest.fixture(scope="module", params=VERSIONS)
def console(listening: Listening, request: pytest.FixtureRequest) -> Iterator[Console]:
    version: str = request.param
    jars = java.classpath() if version == java.VERSION else java.classpath(java.CLIENTS, version)
    command = java.program(PROGRAM, jars)
    directory = tempfile.TemporaryDirectory(prefix="java-console-")
    settings = Path(directory.name) / "settings.properties"
    java.write_properties(settings, java.login_of(listening.login()))
    with closing(ProcessMember([*command, str(settings)], None, directory)) as process:
        name = f"console-{version}"
        listening.service.topic(2, name)
        watermark = {"partitions": [{"partition": 0, "log_start_offset": 5, "log_end_offset": 90}]}
        assert listening.service.request("POST", f"topics/{name}/watermarks", json=watermark).status_code == 200
        yield Console(process, version, name, name)


@pytest.fixture(scope="module")
def living(listening: Listening) -> Iterator[None]:
    """The groups with members, which send their heartbeats by themselves."""
    members = [member_of(kind, listening, group) for group, kind in LIVING.items()]
    try:
        polled(lambda: all(len(member.numbers()) == 4 for member in members), *members)
        yield
    finally:
        for member in members:
            member.close()


def test_pages_of_the_cluster(console: Console) -> None:
    assert console.ask("cluster") == "kcoord controller=1 nodes=1"
    levels = re.findall(
        r"([\w.]+)=FinalizedVersionRange\[min_version_level:\d, max_version_level:(\d)", console.ask("features")
    )
    assert dict(levels) == {"group.version": "1", "share.version": "1", "transaction.version": "2"}
    assert console.ask("broker-settings", 1) == ""
    assert console.ask("directories") == "1:/no-records=0"


def test_pages_of_a_topic(console: Console) -> None:
    topic = console.topic
    assert topic in console.ask("topics").split()
    assert console.ask("topic", topic) == "0:1:1:1 1:1:1:1"
    assert console.ask("topic-settings", topic) == ""
    assert console.ask("producers", topic) == f"{topic}-0=0 {topic}-1=0"
    assert console.ask("ends", topic) == f"{topic}-0=5 {topic}-1=0 {topic}-0=90 {topic}-1=0"
    assert console.ask("ends-of-consumer", topic) == "0:5-90 1:0-0"
    assert console.ask("messages", topic) == "0"
    assert console.error("produce", topic).startswith("PolicyViolationException: kcoord coordinates groups")


def test_a_topic_is_created_changed_and_deleted(console: Console) -> None:
    name = f"made-{console.version}"
    console.ask("create", name, 1, "cleanup.policy=delete", "retention.ms=86400000", "min.insync.replicas=1")
    assert console.ask("topic", name) == "0:1:1:1"
    console.ask("grow", name, 2)
    assert console.ask("topic", name) == "0:1:1:1 1:1:1:1"
    assert console.error("alter-topic", name) == "InvalidConfigurationException: topics have no settings here"
    console.ask("delete-topic", name)
    assert name not in console.ask("topics").split()


@pytest.mark.usefixtures("living")
def test_pages_of_groups(console: Console) -> None:
    listed = console.ask("groups").split()
    assert {f"{group}:Stable:false" for group in LIVING} <= set(listed)
    classic = console.ask("group", "console-classic")
    assert classic.startswith("Stable range coordinator=1 kafka-python")
    assert classic.endswith(f"@/127.0.0.1{WHOLE}")
    consumer = console.ask("group", "console-consumer")
    if console.version == "3.6.2":  # it does not know ConsumerGroupDescribe; a broker of Kafka answers it so, too
        assert consumer == "Dead  coordinator=1 "
    else:
        assert consumer.startswith("Stable uniform coordinator=1 rdkafka@")
        assert consumer.endswith(WHOLE)


@pytest.mark.usefixtures("living")
def test_a_group_with_members_is_left_alone(console: Console) -> None:
    for group in LIVING:
        assert console.error("delete-group", group).startswith("GroupNotEmptyException")
        assert console.error("reset", group, "lines", 0, 1).startswith("UnknownMemberIdException")
        assert console.error("reset-by-consumer", group, "lines", 0, 1).startswith("CommitFailedException")
        assert console.error("delete-offsets", group, "lines").startswith("GroupSubscribedToTopicException")


def test_offsets_are_reset_and_deleted(console: Console) -> None:
    group, topic = console.group, console.topic
    console.ask("reset", group, topic, 0, 40)
    assert f"{group}:Empty:true" in console.ask("groups").split()
    assert console.ask("offsets", group) == f"{topic}-0=40"
    assert console.ask("offsets", group, topic) == f"{topic}-0=40 {topic}-1=none"
    console.ask("reset-by-consumer", group, topic, 0, 30)
    assert console.ask("offsets", group) == f"{topic}-0=30"
    console.ask("delete-offsets", group, topic)
    assert console.ask("offsets", group) == ""
    console.ask("reset", group, topic, 1, 7)
    console.ask("delete-group", group)
    assert not any(listed.startswith(f"{group}:") for listed in console.ask("groups").split())


@pytest.mark.parametrize("call", UNSUPPORTED)
def test_what_is_not_served_is_refused_at_once(console: Console, call: str) -> None:
    assert console.error(*call.split()).startswith("UnsupportedVersionException")


def test_settings_of_brokers_and_whole_settings_of_topics_are_refused(console: Console) -> None:
    assert console.error("alter-broker", 1).startswith("InvalidConfigurationException: settings of the server")
    gone = console.version == java.VERSION
    expected = "NoSuchMethodException" if gone else "InvalidConfigurationException: topics have no settings"
    assert console.error("alter-topic-whole", console.topic).startswith(expected)
