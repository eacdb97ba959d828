"""Members with one regular expression and tokens of different rules: each is given what its own token may describe."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groups.topics import TopicService
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from tests.support.api_consumers import Consumers, partitions
from tests.support.fixtures import ClientWith
from tests.support.members import eventually

EVERY = {"subscribed_topic_names": None, "subscribed_topic_regex": ".*"}


@pytest.fixture
def config() -> Config:
    """Rules that change hold at once."""
    return Config({"token.cache.ms": 0})


class Crowd:
    """Members that report what they have with every heartbeat, until nothing changes any more."""

    def __init__(self, runtime: Runtime, **members: Any) -> None:
        self.group = {name: Consumers(api, runtime) for name, api in members.items()}
        self.answers: dict[str, dict[str, Any]] = {}
        self.owned: dict[str, dict[str, list[int]]] = {}

    async def join(self, name: str) -> None:
        """One joins with the expression that matches everything."""
        self._note(name, await self.group[name].join(name, **EVERY))
        await self._resolved(name)

    async def settle(self, rounds: int = 6) -> dict[str, set[str]]:
        """The topics that each has in the end."""
        for _ in range(rounds):
            for name, consumers in self.group.items():
                if name in self.answers:
                    held = [{"topic": topic, "partitions": held} for topic, held in self.owned[name].items()]
                    self._note(name, await consumers.go_on(self.answers[name], topic_partitions=held))
                    await self._resolved(name)
        return {name: set(held) for name, held in self.owned.items()}

    def _note(self, name: str, answer: dict[str, Any]) -> None:
        self.answers[name] = answer
        if answer["assignment"] is not None:
            self.owned[name] = partitions(answer) or {}

    async def _resolved(self, name: str) -> None:
        await eventually(lambda: not self.group[name].service.busy, "what is to be resolved is")


@pytest.fixture
async def topics(runtime: Runtime) -> None:
    """Two that both members may describe, one that only one may, one that neither may."""
    for name in ("orders", "order-items", "secret", "vault"):
        await runtime.get(TopicService).create(name, 2)


async def test_same_expression_gives_members_with_other_rights_other_topics(
    runtime: Runtime, topics: None, client_with: ClientWith
) -> None:
    wide = await client_with("read:group:g", "describe:topic:order*", "describe:topic:secret")
    narrow = await client_with("read:group:g", "describe:topic:order*")
    crowd = Crowd(runtime, wide=wide, narrow=narrow)
    await crowd.join("wide")
    await crowd.join("narrow")
    held = await crowd.settle()
    assert "secret" in held["wide"]
    assert held["narrow"] <= {"orders", "order-items"}
    everything = {(topic, number) for owned in crowd.owned.values() for topic in owned for number in owned[topic]}
    assert everything == {(topic, number) for topic in ("orders", "order-items", "secret") for number in (0, 1)}
    assert "vault" not in (await crowd.group["wide"].group()).subscribed_topics(), (
        "what nobody may describe is nobody's"
    )


async def test_a_rule_that_is_taken_away_takes_its_topic_with_the_next_heartbeat(
    runtime: Runtime, topics: None, client_with: ClientWith
) -> None:
    both = await client_with("read:group:g", "describe:topic:orders", "describe:topic:secret")
    crowd = Crowd(runtime, both=both)
    await crowd.join("both")
    assert await crowd.settle() == {"both": {"orders", "secret"}}
    await asyncio.to_thread(_withdraw, "secret")
    assert await crowd.settle(1) == {"both": {"orders"}}
    assert "secret" not in (await crowd.group["both"].group()).subscribed_topics()


def _withdraw(topic: str) -> None:
    from django.db import connections

    from kcoord.models import AccessRule

    try:
        assert AccessRule.objects.filter(resource="topic", name=topic).delete()[0]
    finally:
        connections.close_all()
