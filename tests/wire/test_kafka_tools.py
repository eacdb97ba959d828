"""Kafka's own command-line tools, as they are released, against a real server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes.test_examples import PARTITIONS, TOPIC, until
from tests.wire import java
from tests.wire.kafka_workers import KAFKA_PYTHON, Listening, place_of
from tests.wire.members import KINDS, member_of, polled

pytestmark = [
    pytest.mark.processes,
    pytest.mark.xdist_group("kafka-clients"),
    pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"),
]

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def own(listening: Listening) -> str:
    """A topic that no other test uses."""
    return listening.service.topic(PARTITIONS, "of-tools")


@pytest.fixture
def options(listening: Listening, tmp_path: Path) -> list[str]:
    """With which a tool connects, and logs in with the token of the service."""
    login = tmp_path / "login.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="tool" password="{listening.service.token}";\n'
    )
    return ["--bootstrap-server", f"127.0.0.1:{listening.port}", "--command-config", str(login)]


@pytest.fixture
def tool(options: list[str]) -> Tool:
    """Runs a tool."""
    return lambda name, *arguments: java.tool(name, *options, *arguments)


def commit(listening: Listening, group: str, topic: str, offset: int) -> None:
    body = {"topics": [{"name": topic, "partitions": [{"partition": 0, "committed_offset": offset}]}]}
    assert listening.service.request("POST", f"groups/{group}/offsets/commit", json=body).status_code == 200


def test_kafka_consumer_groups_describes_and_resets(listening: Listening, tool: Tool, own: str) -> None:
    service = listening.service
    commit(listening, "tool", own, 40)

    def described() -> list[str]:
        shown = tool(GROUPS, "--group", "tool", "--describe")
        rows = [line.split() for line in shown.splitlines()]
        return next((row[1:6] for row in rows if row[:1] == ["tool"]), [shown])

    def reset(*how: str) -> int:
        tool(GROUPS, "--group", "tool", "--reset-offsets", "--topic", f"{own}:0", *how, "--execute")
        return int(service.request("GET", "groups/tool/offsets").json()["offsets"][0]["committed_offset"])

    assert described() == [own, "0", "40", "40", "0"], "without a watermark the end is what was committed"
    assert reset("--to-latest") == 40, "latest does not lead back"
    watermark = {"partitions": [{"partition": 0, "log_start_offset": 5, "log_end_offset": 90}]}
    assert service.request("POST", f"topics/{own}/watermarks", json=watermark).status_code == 200
    assert reset("--to-latest") == 90
    assert reset("--shift-by", "-10") == 80
    assert described() == [own, "0", "80", "90", "10"]
    assert reset("--to-earliest") == 5


def test_a_reset_is_refused_while_a_client_is_a_member_and_is_where_it_goes_on(
    listening: Listening, tool: Tool, options: list[str], tmp_path: Path
) -> None:
    place = place_of(listening, KAFKA_PYTHON, tmp_path, "reset-by-tool")
    for _ in range(5):
        place.files.append()
    reset = ["--group", place.group, "--reset-offsets", "--topic", f"{TOPIC}:1", "--to-offset", "2", "--execute"]
    with place.start() as first:
        until(lambda: set(place.committed().values()) == {5}, first, what="all is committed")
        refused = java.run(GROUPS, *options, *reset)
        assert "Assignments can only be reset if the group 'reset-by-tool' is inactive" in refused.stdout, refused
        assert "but the current state is Stable." in refused.stdout
        assert place.committed()[1] == 5
        first.stop()
    tool(GROUPS, *reset)
    assert place.committed() == {0: 5, 1: 2, 2: 5, 3: 5}
    with place.start() as second:
        until(lambda: set(place.committed().values()) == {5}, second, what="all is committed again")
        second.stop()
    assert second.lines == [f"1 {number} line {number} of 1" for number in (2, 3, 4)]


def test_each_client_is_told_what_the_tool_reset(listening: Listening, tool: Tool) -> None:
    groups = {kind: f"reset-of-{kind}" for kind in KINDS}
    for group in groups.values():
        commit(listening, group, TOPIC, 9)
    named = [word for group in groups.values() for word in ("--group", group)]
    tool(GROUPS, *named, "--reset-offsets", "--topic", f"{TOPIC}:0", "--to-offset", "4", "--execute")
    for kind, group in groups.items():
        with closing(member_of(kind, listening, group)) as member:
            polled(lambda member=member: len(member.numbers()) == PARTITIONS, member)  # type: ignore[misc]
            assert member.committed(0) == 4, kind


def test_kafka_consumer_groups_lists_and_deletes(listening: Listening, tool: Tool, own: str) -> None:
    service = listening.service
    commit(listening, "gone", own, 1)
    assert "gone" in tool(GROUPS, "--list").split()
    state = tool(GROUPS, "--group", "gone", "--describe", "--state")
    assert [line.split()[-2:] for line in state.splitlines() if line.startswith("gone")] == [["Empty", "0"]]
    tool(GROUPS, "--group", "gone", "--delete-offsets", "--topic", f"{own}:0")
    assert service.request("GET", "groups/gone/offsets").json()["offsets"] == []
    tool(GROUPS, "--group", "gone", "--delete")
    assert service.request("GET", "groups/gone").status_code == 404


def test_kafka_topics_creates_describes_and_deletes(tool: Tool) -> None:
    tool(TOPICS, "--create", "--topic", "of-the-tool", "--partitions", "2", "--replication-factor", "1")
    assert {TOPIC, "of-the-tool"} <= set(tool(TOPICS, "--list").split())
    assert "PartitionCount: 2" in tool(TOPICS, "--describe", "--topic", "of-the-tool")
    tool(TOPICS, "--alter", "--topic", "of-the-tool", "--partitions", "3")
    assert "PartitionCount: 3" in tool(TOPICS, "--describe", "--topic", "of-the-tool")
    assert f"PartitionCount: {PARTITIONS}" in tool(TOPICS, "--describe", "--topic", TOPIC)
    tool(TOPICS, "--delete", "--topic", "of-the-tool")
    assert "of-the-tool" not in tool(TOPICS, "--list").split()
