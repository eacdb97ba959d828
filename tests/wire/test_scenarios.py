"""Requests about groups and offsets, in every version, are answered as a broker of Kafka 4.4.0 answered them."""

from __future__ import annotations

import pytest

from kcoord.config import Config
from kcoord.door.kafka.gateway import Gateway
from tests.differential.playing import prepared
from tests.differential.scenarios import ALL
from tests.differential.scenes import SILENT, heard, recorded, unexpected

APIS = sorted({one.api for one in ALL})


@pytest.fixture
def config() -> Config:
    """As the broker was set whose answers are recorded."""
    return Config(
        {
            "group.initial.rebalance.delay.ms": 0,
            "group.consumer.assignors": "range,uniform",
            "notifications.repair.interval.ms": 60_000,
        }
    )


def test_every_scenario_is_recorded_in_every_version_that_is_served() -> None:
    assert set(recorded()) == {(one.name, version) for one in ALL for version in one.versions}


@pytest.mark.parametrize("api", APIS)
async def test_the_newest_version_is_answered_as_by_a_broker(gateway: Gateway, token: str, api: str) -> None:
    await _equal(gateway, token, api, slice(-1, None))


@pytest.mark.whole("the same answers in older versions of Kafka's requests")
@pytest.mark.parametrize("api", APIS)
async def test_older_versions_are_answered_as_by_a_broker(gateway: Gateway, token: str, api: str) -> None:
    await _equal(gateway, token, api, slice(None, -1))


async def _equal(gateway: Gateway, token: str, api: str, which: slice) -> None:
    place, answers = await prepared(gateway.port, token), recorded()
    plays = [(one, version) for one in ALL if one.api == api for version in one.versions[which]]
    for number, (one, version) in enumerate(plays):
        ours = await heard(place, one, version, f"g{number}")
        if SILENT in ours:  # a busy machine refuses what became too old, and what waits for it hears nothing: once more
            ours = await heard(place, one, version, f"g{number}-again")
        assert unexpected(one, ours, answers[one.name, version]) == [], f"{one.name}, version {version}"
