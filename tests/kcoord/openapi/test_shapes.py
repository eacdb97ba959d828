"""The document as generators of typed clients see it: what is required, what may be null, what has a name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from kcoord.control.openapi import shapes
from kcoord.control.openapi.shapes import NULL, PREFIX, reachable
from kcoord.protocol.errors import ProblemFields

SOMETIMES_ABSENT = {
    # Bytes that do not decode have none (http-api.md 2, "join").
    ("JoinedMember", "subscription"),
    # Only the parameter of the plan's strategy.
    *(("PlanParameters", name) for name in ("offset", "by", "at", "duration", "from_group", "lines")),
    # Only where they were asked for.
    *(("PlanParameters", name) for name in ("clamp", "keep_unknown")),
    *(("Problem", name) for name in ProblemFields.__annotations__),
    # Only after a fail-over that lost commits.
    *((name, "committed_offsets_lost") for name in ("CommitResult", "FetchResult")),
    # Only the check of the timers has it.
    ("ReadinessCheck", "lag_ms"),
}
"""Fields of responses that are left out where they say nothing. Every other field is always there."""

OPERATIONS = """\
DELETE /v1/acls deleteAcls
DELETE /v1/alerts/receivers/{name} deleteReceiver
DELETE /v1/alerts/rules/{rule_id} deleteAlertRule
DELETE /v1/groups deleteGroups
DELETE /v1/groups/{group_id} deleteGroup
DELETE /v1/groups/{group_id}/hold releaseHold
DELETE /v1/groups/{group_id}/pins deletePin
DELETE /v1/groups/{group_id}/share-offsets deleteShareOffsets
DELETE /v1/tokens/{id} deleteToken
DELETE /v1/topics/{name} deleteTopic
GET /livez livez
GET /metrics metrics
GET /readyz readyz
GET /v1/acls listAcls
GET /v1/alerts listAlerts
GET /v1/alerts/messages listAlertMessages
GET /v1/alerts/receivers listReceivers
GET /v1/alerts/rules listAlertRules
GET /v1/alerts/rules/{rule_id} getAlertRule
GET /v1/archive/runs listRuns
GET /v1/archive/runs/{run_id} describeRun
GET /v1/archive/runs/{run_id}/log readRunLog
GET /v1/audit listAudit
GET /v1/coordinator findCoordinator
GET /v1/coordinator-partitions listCoordinatorPartitions
GET /v1/groups listGroups
GET /v1/groups/{group_id} describeGroup
GET /v1/groups/{group_id}/commits listGroupCommits
GET /v1/groups/{group_id}/config getGroupConfig
GET /v1/groups/{group_id}/dead-letters listDeadLetters
GET /v1/groups/{group_id}/events listGroupEvents
GET /v1/groups/{group_id}/items listItems
GET /v1/groups/{group_id}/labels getGroupLabels
GET /v1/groups/{group_id}/lag describeGroupLag
GET /v1/groups/{group_id}/lag/history listGroupLag
GET /v1/groups/{group_id}/offsets listGroupOffsets
GET /v1/groups/{group_id}/offsets/plans listOffsetPlans
GET /v1/groups/{group_id}/offsets/plans/{plan_id} getOffsetPlan
GET /v1/groups/{group_id}/pins listPins
GET /v1/groups/{group_id}/share-offsets getShareOffsets
GET /v1/nodes listNodes
GET /v1/quotas listQuotas
GET /v1/quotas/throttled listThrottled
GET /v1/reconcile/findings listFindings
GET /v1/tokens listTokens
GET /v1/topics listTopics
GET /v1/topics/{name} getTopic
GET /v1/topics/{name}/watermarks listWatermarks
PATCH /v1/alerts/rules/{rule_id} updateAlertRule
PATCH /v1/groups/{group_id}/config updateGroupConfig
PATCH /v1/groups/{group_id}/labels updateGroupLabels
PATCH /v1/topics/{name} updateTopic
POST /v1/acls createAcls
POST /v1/alerts/receivers/{name}/test testReceiver
POST /v1/alerts/rules createAlertRule
POST /v1/alerts/{alert_id}/mute muteAlert
POST /v1/archive/runs startRun
POST /v1/archive/runs/{run_id}/cancel cancelRun
POST /v1/assign assign
POST /v1/assignments/simulate simulateAssignment
POST /v1/groups createGroup
POST /v1/groups/{group_id}/acquire acquireItems
POST /v1/groups/{group_id}/consumer-heartbeat consumerGroupHeartbeat
POST /v1/groups/{group_id}/dead-letters/discard discardDeadLetters
POST /v1/groups/{group_id}/dead-letters/replay replayDeadLetters
POST /v1/groups/{group_id}/heartbeat heartbeat
POST /v1/groups/{group_id}/hold holdGroup
POST /v1/groups/{group_id}/items/reject rejectItems
POST /v1/groups/{group_id}/items/release releaseItems
POST /v1/groups/{group_id}/join joinGroup
POST /v1/groups/{group_id}/leave leaveGroup
POST /v1/groups/{group_id}/members/{member_id}/kick kickMember
POST /v1/groups/{group_id}/offsets/commit commitOffsets
POST /v1/groups/{group_id}/offsets/delete deleteOffsets
POST /v1/groups/{group_id}/offsets/fetch fetchOffsets
POST /v1/groups/{group_id}/offsets/plan planOffsets
POST /v1/groups/{group_id}/offsets/plans/{plan_id}/apply applyOffsetPlan
POST /v1/groups/{group_id}/offsets/plans/{plan_id}/approve approveOffsetPlan
POST /v1/groups/{group_id}/offsets/plans/{plan_id}/undo undoOffsetPlan
POST /v1/groups/{group_id}/offsets/txn-commit txnCommitOffsets
POST /v1/groups/{group_id}/pins createPin
POST /v1/groups/{group_id}/settle settleItems
POST /v1/groups/{group_id}/share-heartbeat shareGroupHeartbeat
POST /v1/groups/{group_id}/share-offsets alterShareOffsets
POST /v1/groups/{group_id}/sync syncGroup
POST /v1/heartbeats heartbeats
POST /v1/offsets/fetch fetchOffsetsOfManyGroups
POST /v1/quotas alterQuotas
POST /v1/tokens createToken
POST /v1/tokens/{id}/rotate rotateToken
POST /v1/topics createTopic
POST /v1/topics/{name}/watermarks reportWatermarks
POST /v1/transactions/{transactional_id}/end endTransaction
POST /v1/transactions/{transactional_id}/init initProducerId
PUT /v1/alerts/receivers/{name} putReceiver
"""
"""Generators name functions after these: none of them changes. New ones are added."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    from kcoord.control.openapi.page import document

    found: dict[str, Any] = json.loads(document())
    return found


def parts(tree: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that is not a component of its own, with its place; and those components."""
    if isinstance(tree, dict):
        if not where.endswith(("properties", "responses", "/paths", "/schemas")):
            yield where, tree
        for key, item in tree.items():
            if key not in ("example", "examples"):
                yield from parts(item, f"{where}/{key}")
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from parts(item, f"{where}/{index}")


def fields(document: dict[str, Any], names: set[str]) -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """Schema, field, its schema, and whether it is required."""
    for name in sorted(names):
        schema = document["components"]["schemas"][name]
        for field, found in schema.get("properties", {}).items():
            yield name, field, found, field in schema.get("required", ())


def test_no_schema_is_both_sent_and_answered(document: dict[str, Any]) -> None:
    both = reachable(document, requests=True) & reachable(document, requests=False)
    assert {name for name in both if "properties" in document["components"]["schemas"][name]} == set()


def test_every_schema_is_used(document: dict[str, Any]) -> None:
    used = reachable(document, requests=True) | reachable(document, requests=False)
    parameters = {
        found["$ref"] for where, found in parts(document["paths"]) if "/parameters/" in where and "$ref" in found
    }
    assert set(document["components"]["schemas"]) - used <= {name.removeprefix(PREFIX) for name in parameters}


def test_fields_of_responses_are_required_unless_they_can_be_absent(document: dict[str, Any]) -> None:
    answered = list(fields(document, reachable(document, requests=False)))
    assert {(name, field) for name, field, _, required in answered if not required} == SOMETIMES_ABSENT
    assert [(name, field) for name, field, found, _ in answered if "default" in found] == []


def test_fields_of_requests_are_required_exactly_if_they_have_no_default(document: dict[str, Any]) -> None:
    sent = list(fields(document, reachable(document, requests=True)))
    assert [(name, field) for name, field, found, required in sent if required and "default" in found] == []
    required = {(name, field) for name, field, _, required in sent if required}
    assert {("JoinRequest", "protocols"), ("CommitPartition", "committed_offset"), ("NewRule", "name")} <= required
    assert (
        not {
            ("JoinRequest", "max_wait_ms"),
            ("JoinRequest", "member_id"),
            ("NewRule", "pattern"),
            ("CommitTopic", "name"),
        }
        & required
    )


def test_null_is_written_in_one_way(document: dict[str, Any]) -> None:
    for where, found in parts(document):
        assert "nullable" not in found, where
        assert None not in (found["enum"] if isinstance(found.get("enum"), list) else ()), where
        assert found.get("default", 0) is not None, where
        for choice in ("anyOf", "oneOf"):
            if NULL in found.get(choice, ()):
                others = [one for one in found[choice] if one != NULL]
                assert choice == "anyOf", where
                assert all("$ref" in one for one in others), where


def test_enumerations_have_names(document: dict[str, Any]) -> None:
    inline = [where for where, found in parts(document) if isinstance(found.get("enum"), list) and where.count("/") > 3]
    assert inline == []
    enums = [schema for schema in document["components"]["schemas"].values() if "enum" in schema]
    assert len(enums) > 20
    assert all(schema["type"] == "string" and len(set(schema["enum"])) == len(schema["enum"]) for schema in enums)


def test_objects_have_names(document: dict[str, Any]) -> None:
    assert [where for where, found in parts(document) if "properties" in found and where.count("/") > 3] == []


def test_integers_say_whether_they_fit_32_bits(document: dict[str, Any]) -> None:
    count = 0
    for where, found in parts(document):
        if found.get("type") in ("integer", ["integer", "null"]):
            assert found.get("format") in ("int32", "int64"), where
            if found["format"] == "int32":
                assert -(2**31) <= found["minimum"] <= found["maximum"] < 2**31, where
            count += 1
    assert count > 100
    properties = document["components"]["schemas"]["FetchedPartition"]["properties"]
    assert (properties["partition"]["format"], properties["committed_offset"]["format"]) == ("int32", "int64")


def test_operation_ids_stay(document: dict[str, Any]) -> None:
    found = {
        f"{method.upper()} {path} {operation['operationId']}"
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert sorted(found) == OPERATIONS.splitlines()


def test_an_enumeration_without_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    left = {name: place for name, place in shapes.ENUMS.items() if name != "RunState"}
    monkeypatch.setattr(shapes, "ENUMS", left)
    with pytest.raises(ValueError, match=r"'cancelled', 'failed'.* has no name; give it one in ENUMS"):
        SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
