"""The three scenario conventions: how each one compares, and what its short forms mean.

Sources: classic.md 0.1, offsets.md 0, consumer.md 0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.cases import ConventionError, Step, Suite
from tests.conformance.matching import Rules

RULES: Mapping[Suite, Rules] = {
    Suite.CLASSIC: Rules(
        unordered_lists=frozenset({"member_ids"}),
        matchers=frozenset({"not", "any_of", "prefix", "len", "member_ids", "unordered"}),
    ),
    Suite.OFFSETS: Rules(
        exact_maps=frozenset({"partitions", "groups", "offsets", "results", "coordinators", "members"}),
        nested_exact=frozenset({"partitions", "offsets"}),
        unordered_lists=frozenset({"tombstones", "deleted_groups", "records"}),
    ),
    Suite.CONSUMER: Rules(
        exact_maps=frozenset(
            {
                "assignment",
                "target",
                "assigned",
                "pending_revocation",
                "target_assignment",
                "offsets",
                "partitions",
                "results",
                "members",
            }
        ),
        nested_exact=frozenset({"offsets", "partitions"}),
        matchers=frozenset({"$any", "$count"}),
    ),
}

NEWEST_VERSIONS: Mapping[str, int] = {
    "JoinGroup": 9,
    "SyncGroup": 5,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
    "ConsumerGroupHeartbeat": 1,
}
"""The versions the HTTP API behaves as (http-api.md opening)."""


def expand(suite: Suite, step: Step, args: Mapping[str, Any], expect: Mapping[str, Any]) -> Mapping[str, Any]:
    """The expectation with the short forms of its convention written out. `args` are those of the call it is about.

    Raises ConventionError for a form the convention does not have.
    """
    if suite is not Suite.OFFSETS:
        return expect
    if "all" in expect:
        if "offsets" not in args:
            raise ConventionError(f"{step}: `all` needs a call with offsets")
        each = expect["all"]
        spread = {topic: dict.fromkeys(partitions, each) for topic, partitions in args["offsets"].items()}
        return {**{key: value for key, value in expect.items() if key != "all"}, "partitions": spread}
    if "groups" in expect and isinstance(expect["groups"], Mapping):
        return {**expect, "groups": {group: _fetched(answer) for group, answer in expect["groups"].items()}}
    return expect


def _fetched(answer: Any) -> Any:
    """A group's answer to a fetch: N means offset N without error, a name means that error with offset -1."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("offsets"), Mapping):
        return answer
    offsets = {
        topic: {partition: _fetched_offset(value) for partition, value in partitions.items()}
        for topic, partitions in answer["offsets"].items()
    }
    return {**answer, "offsets": offsets}


def _fetched_offset(value: Any) -> Any:
    if isinstance(value, str):
        return {"error": value, "offset": -1}
    if isinstance(value, int):
        return {"error": "NONE", "offset": value}
    return value
