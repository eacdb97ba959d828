"""The cases of retention through the whole service and the core; each of their expectations is looked at."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, Suite, parse_case
from tests.conformance.core_driver import CoreBackend
from tests.conformance.http_backend import HttpBackend
from tests.conformance.replay import unnoticed_mutations
from tests.conformance.runner import Status, run_case
from tests.conformance.support import case_file

TOPIC_GOES = {
    "name": "a_deleted_topic_takes_the_offsets_of_all_groups_along",
    "area": "delete",
    "topics": {"foo": 2, "bar": 1},
    "steps": [
        {"call": "OffsetCommit", "args": {"group_id": "g", "offsets": {"foo": {"0": 1, "1": 2}, "bar": {"0": 3}}}},
        {"call": "OffsetCommit", "args": {"group_id": "h", "offsets": {"foo": {"0": 4}}}},
        {"call": "DeleteTopics", "args": {"names": ["foo"]}, "expect": {"error": "NONE"}},
        {
            "call": "OffsetFetch",
            "args": {"groups": [{"group_id": "g", "topics": None}, {"group_id": "h", "topics": None}]},
            "expect": {
                "groups": {
                    "g": {"error": "NONE", "offsets": {"bar": {"0": 3}}},
                    "h": {"error": "NONE", "offsets": {}},
                }
            },
        },
        {"call": "DeleteTopics", "args": {"names": ["foo"]}, "expect": {"error": "UNKNOWN_TOPIC_OR_PARTITION"}},
    ],
}


async def test_deleted_topics(database: str) -> None:
    async with HttpBackend(database) as backend:
        verdict = await run_case(parse_case(Suite.OFFSETS, TOPIC_GOES), backend)
    assert verdict.status is Status.PASSED, str(verdict)


def expires(case: Case) -> bool:
    """A case of retention."""
    return case.area == "expire"


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, expires))
async def test_expiration(case: Case, database: str) -> None:
    async with HttpBackend(database) as backend:
        verdict = await run_case(case, backend)
    assert verdict.status is Status.PASSED, str(verdict)


def expires_in_core(case: Case) -> bool:
    """A case of retention whose calls the core's driver of this convention has."""
    above = {"LeaveGroup", "ConsumerGroupHeartbeat"}
    return expires(case) and not case.calls & above


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, expires_in_core))
async def test_expiration_through_the_core(case: Case) -> None:
    verdict = await run_case(case, CoreBackend())
    assert verdict.status is Status.PASSED, str(verdict)


@pytest.mark.parametrize("case", case_file(Suite.OFFSETS, expires))
async def test_every_mutation_of_an_expiration_is_noticed(case: Case, database: str) -> None:
    async with HttpBackend(database) as backend:
        verdict, unnoticed = await unnoticed_mutations(case, backend)
    assert verdict.status is Status.PASSED, str(verdict)
    assert unnoticed == []
