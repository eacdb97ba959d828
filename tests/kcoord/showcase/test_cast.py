"""Which groups the showcase has, and how its logs grow: no service."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcoord.client import OffsetOutOfRangeError
from kcoord.tools.showcase.__main__ import main
from kcoord.tools.showcase.cast import (
    CLASSIC_ONLY,
    CONSUMER_ONLY,
    LEAST_GROUPS,
    SHARE_ONLY,
    Behaviour,
    Topic,
    cast,
    topics,
)
from kcoord.tools.showcase.logs import GrowingSource, Logs
from kcoord.tools.showcase.run import PERFORM


@settings(max_examples=20)
@given(st.integers(LEAST_GROUPS, 120), st.integers(0, 1000))
def test_every_behaviour_appears_in_each_protocol_that_has_it(groups: int, seed: int) -> None:
    parts = cast(groups, seed)
    assert len(parts) == groups == len({part.group_id for part in parts})
    shown = {(part.behaviour, part.protocol) for part in parts}
    for behaviour in Behaviour:
        assert ((behaviour, "classic") in shown) == (behaviour not in CONSUMER_ONLY | SHARE_ONLY)
        assert ((behaviour, "consumer") in shown) == (behaviour not in CLASSIC_ONLY | SHARE_ONLY)
        assert ((behaviour, "share") in shown) == (behaviour in SHARE_ONLY)


def test_the_same_seed_gives_the_same_groups() -> None:
    assert cast(200, 7) == cast(200, 7) != cast(200, 8)


def test_every_group_has_a_topic_of_its_own_and_every_behaviour_a_performance() -> None:
    parts = cast(300, 1)
    assert len(topics(parts)) == 300
    assert set(PERFORM) == set(Behaviour)


def test_too_few_groups_are_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="at least 45"):
        cast(LEAST_GROUPS - 1, 1)
    assert main(["--groups", "3"]) == 1
    assert "--groups: 3; at least 45" in capsys.readouterr().err


def test_a_source_reads_to_the_end_of_its_log_and_not_beyond() -> None:
    topic = Topic("t", 4, rate=10.0)
    logs = Logs()
    source = GrowingSource(logs, topic)
    end = logs.end(topic, 2)
    (record,) = asyncio.run(source.fetch("t", 2, 0, 500))
    assert end - 1 <= record.offset < logs.end(topic, 2)
    with pytest.raises(OffsetOutOfRangeError, match="beyond the end"):
        asyncio.run(source.fetch("t", 2, end + 1_000_000, 500))


def test_a_slow_member_reads_less_than_there_is() -> None:
    topic = Topic("t", 1, rate=1_000.0)
    source = GrowingSource(Logs(), topic, pace=1.0)
    assert asyncio.run(source.fetch("t", 0, 0, 500)) == []
