"""The settings of the core are Kafka's defaults where nothing else is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groups.core.model.types import GroupConfig, MigrationPolicy

SPECIFICATION = Path(__file__).parents[3] / "docs" / "specification"
NUMBERS = {
    "group.min.session.timeout.ms": "min_session_timeout_ms",
    "group.max.session.timeout.ms": "max_session_timeout_ms",
    "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
    "group.max.size": "max_size",
    "group.consumer.max.size": "consumer_max_size",
    "group.consumer.session.timeout.ms": "consumer_session_timeout_ms",
    "group.consumer.heartbeat.interval.ms": "consumer_heartbeat_interval_ms",
    "group.consumer.regex.refresh.interval.ms": "consumer_regex_refresh_interval_ms",
}


def documented(name: str) -> set[int]:
    """The defaults that the tables of classic.md 10.1 and consumer.md 10 give."""
    pattern = re.compile(rf"^\| `?{re.escape(name)}`?(?: \[[\d.]+\])? \| (\d+)", re.MULTILINE)
    texts = [(SPECIFICATION / file).read_text() for file in ("classic.md", "consumer.md")]
    return {int(number) for text in texts for number in pattern.findall(text)}


@pytest.mark.parametrize(("name", "field"), NUMBERS.items())
def test_defaults_are_those_of_the_specification(name: str, field: str) -> None:
    assert documented(name) == {getattr(GroupConfig(), field)}


def test_groups_may_change_their_protocol_unless_it_is_forbidden() -> None:
    assert GroupConfig().consumer_migration_policy is MigrationPolicy.BIDIRECTIONAL
