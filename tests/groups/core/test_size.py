"""How much work a decision is said to be: it decides what leaves the event loop."""

from __future__ import annotations

import pytest

from groups.core.machine import FEW_NAMES, size_of, size_of_decision
from groups.core.model.commands import ApplyRegexResolution, ApplyTarget, Command, ConsumerHeartbeat, Tick
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers, RegexResolution
from groups.core.model.types import ClassicGroup, Topic, TopicView

TOPICS = [Topic("f", "foo", 6), Topic("b", "bar", 2)]
VIEW = TopicView(1, {topic.name: topic for topic in TOPICS}, {topic.topic_id: topic for topic in TOPICS})
MEMBERS = [
    ConsumerMember("m1", subscribed_topic_names=frozenset({"foo", "gone"}), assigned={"f": {0: 1, 1: 1, 2: 1}}),
    ConsumerMember("m2", subscribed_topic_names=frozenset({"foo"}), pending_revocation={"f": {3: 1}}),
]
RESOLVED = RegexResolution({"f.*": frozenset({"foo"}), ".*": frozenset({"foo", "bar"})}, 1, 0)
GROUP = ConsumerGroup("g", members=ConsumerMembers(MEMBERS), resolutions={"": RESOLVED, "some": RESOLVED})
HAS = 4 + 2 + 6
"""Partitions that members have, names they subscribe to, names that expressions match."""


def test_a_look_at_a_group_involves_its_partitions_and_names() -> None:
    assert size_of(GROUP) == HAS
    assert size_of(None) == size_of(ClassicGroup("g")) == 0


def beat(*names: str, **fields: object) -> ConsumerHeartbeat:
    return ConsumerHeartbeat("g", "m1", 0, subscribed_topic_names=frozenset(names), **fields)  # type: ignore[arg-type]


COMMANDS: dict[str, tuple[Command, int]] = {
    "nothing": (Tick("g"), 0),
    "a heartbeat that says nothing": (ConsumerHeartbeat("g", "m1", 1), 0),
    "names": (beat("foo", "bar", "gone"), 8),
    "topics that a member owns": (beat("bar", topic_partitions={"f": frozenset({1, 2}), "b": frozenset()}), 4),
    "a target": (
        ApplyTarget("g", 1, "range", {"m1": {"f": frozenset({0})}, "m2": {"f": frozenset(), "b": frozenset()}}),
        3,
    ),
    "no target": (ApplyTarget("g", 1, "range", None), 0),
    "a resolution": (ApplyRegexResolution("g", {"f.*": frozenset({"foo"}), ".*": frozenset({"foo", "bar"})}, 1, 0), 3),
}


@pytest.mark.parametrize(("command", "size"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_brings_what_it_names(command: Command, size: int) -> None:
    assert size_of_decision(None, [command], VIEW) == size
    assert size_of_decision(None, [command, command], VIEW) == 2 * size
    assert size_of_decision(GROUP, [command], VIEW) == HAS + 6 + size, "the partitions of what it subscribes to by name"


@pytest.mark.parametrize("more", [0, 1])
def test_of_many_names_only_the_names_count(more: int) -> None:
    names = [f"t{number}" for number in range(FEW_NAMES + more)]
    view = TopicView(1, {name: Topic(name, name, 10) for name in names})
    assert size_of_decision(None, [beat(*names)], view) == (len(names) if more else 10 * FEW_NAMES)
