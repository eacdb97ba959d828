"""The OpenAPI document: one for both planes, complete, and its examples work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from django.contrib.auth.models import Group as AccountGroup
from django.urls import URLPattern, URLResolver, get_resolver

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.control.openapi.examples import EXAMPLES
from kcoord.door.http.serving import Endpoint
from kcoord.protocol.errors import Action, Error
from tests.support.api import client_of
from tests.support.rest_groups import group, member

METHODS = ("get", "post", "patch", "put", "delete")


@pytest.fixture
def document(django_db_setup: None) -> dict[str, Any]:
    """The document."""
    from kcoord.control.openapi.page import document

    found: dict[str, Any] = json.loads(document())
    return found


def endpoints() -> tuple[Endpoint, ...]:
    """What the data plane serves."""
    from kcoord.asgi import DATA_PLANE_ROUTES

    return DATA_PLANE_ROUTES


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation of both planes."""
    for path, methods in document["paths"].items():
        if not path.startswith("/v1/"):
            continue
        for method, operation in methods.items():
            assert method in METHODS
            yield path, method, operation


def references(tree: Any) -> Iterator[str]:
    """Every reference in a part of the document."""
    if isinstance(tree, dict):
        if "$ref" in tree:
            yield tree["$ref"]
        for item in tree.values():
            yield from references(item)
    elif isinstance(tree, list):
        for item in tree:
            yield from references(item)


def routed(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Path templates and view classes of the control plane, from the URLs."""
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routed(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and route.startswith("v1/") and hasattr(pattern.callback, "cls"):
            if pattern.callback.cls.schema is None:
                continue  # the document does not describe itself
            yield "/" + route.replace("<anything:", "{").replace(">", "}"), pattern.callback.cls


async def test_it_is_served_to_anybody(runtime: object) -> None:
    async with client_of(None) as client:
        response = await client.get("/v1/openapi.json")
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        assert response.json()["openapi"].startswith("3.1")
        assert (await client.get("/docs")).status_code == 200


def test_every_route_of_both_planes_is_in_it(document: dict[str, Any]) -> None:
    described = {(path, method) for path, method, _ in operations(document)}
    control = {
        (path, method)
        for path, view in routed(get_resolver().url_patterns)
        for method in METHODS
        if hasattr(view, method)
    }
    data = {(endpoint.path, endpoint.method.lower()) for endpoint in endpoints()}
    assert len(control) >= 14
    assert len(data) >= 9
    assert described == control | data


def test_every_operation_says_what_it_is_and_how_it_fails(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    known = {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert set(operation["tags"]) <= known, where
        assert operation["security"] == [{"token": []}], where
        problems = {code: found for code, found in operation["responses"].items() if not code.startswith("2")}
        assert {"400", "401", "500", "503"} <= set(problems), where
        assert ("415" in problems) is ("requestBody" in operation), where
        for code, found in problems.items():
            assert list(found["content"]) == ["application/problem+json"], f"{where} {code}"
            assert found["content"]["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
        for parameter in operation.get("parameters", ()):
            assert parameter["in"] in ("path", "query"), where
            assert parameter["description"], f"{where} {parameter['name']}"
        named = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}, where


def test_the_service_endpoints_are_in_it_and_need_no_token(document: dict[str, Any]) -> None:
    from kcoord.door.http.health import routes
    from kcoord.door.http.metrics_page import PATH

    described = {path for path in document["paths"] if not path.startswith("/v1/")}
    assert described == {*(route.path for route in routes(lambda runtime: {})), PATH}
    needed = {path: document["paths"][path]["get"]["security"] for path in described}
    assert needed == {"/livez": [], "/readyz": [], "/metrics": [{}, {"token": []}]}, "an empty one: none is needed"


def test_every_error_of_the_data_plane_is_under_its_status(document: dict[str, Any]) -> None:
    for endpoint in endpoints():
        responses = document["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        for error in endpoint.errors:
            assert f"`{error.name}`" in responses[str(error.status)]["description"], endpoint.operation_id


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas


def test_the_problem_lists_every_error_and_action(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    properties = schemas["Problem"]["properties"]
    assert properties["error"]["$ref"].endswith("/ErrorName")
    assert set(schemas["ErrorName"]["enum"]) == {error.name for error in Error} - {"NONE"}
    assert properties["action"]["$ref"].endswith("/Action")
    assert set(schemas["Action"]["enum"]) == {action.value for action in Action}


def test_requests_have_no_other_fields_than_the_document_says(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    todo = [
        content["schema"]
        for _, _, operation in operations(document)
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    closed: set[str] = set()
    while todo:
        for reference in references(todo.pop()):
            name = reference.rsplit("/", 1)[1]
            if name not in closed:
                if "properties" in schemas[name]:
                    assert schemas[name]["additionalProperties"] is False, name
                closed.add(name)
                todo.append(schemas[name])
    assert {"NewTopic", "WatermarkInput", "NewRule", "JoinRequest", "JoinProtocol", "CommitPartition"} <= closed


def test_examples_of_the_data_plane_are_what_its_structs_take() -> None:
    by_id = {endpoint.operation_id: endpoint for endpoint in endpoints()}
    assert {"joinGroup", "syncGroup", "heartbeat", "commitOffsets", "fetchOffsets"} <= set(EXAMPLES)
    for operation_id, examples in EXAMPLES.items():
        endpoint = by_id[operation_id]
        assert endpoint.request is not None
        msgspec.convert(examples["request"], endpoint.request)
        if "response" in examples:
            answer = msgspec.convert(examples["response"], endpoint.response)
            assert msgspec.to_builtins(answer) == examples["response"], operation_id


def turn(operation: tuple[str, str, dict[str, Any]]) -> int:
    """A kick and a simulation need a member, others a group that has none, and topics; a hold keeps commits out."""
    path = operation[0]
    return (
        path.endswith("/simulate"),
        "{member_id}" in path,
        path == "/v1/topics",
        not path.endswith("/hold"),
        True,
    ).index(True)


async def test_examples_of_the_control_plane_work(
    api: httpx.AsyncClient, topics: TopicService, service: GroupService, document: dict[str, Any]
) -> None:
    names = {"name": "example", "group_id": "example", "member_id": "example"}
    await service.put(group("example", GroupState.STABLE, member("example", session_deadline=None)))
    await AccountGroup.objects.acreate(name="billing-operators")
    sent = 0
    for path, method, operation in sorted(operations(document), key=turn):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            for example in content.get("examples", {}).values():
                if path.endswith("/watermarks"):
                    await topics.create("example", 1)
                if path == "/v1/groups/{group_id}/offsets/plan" or path.endswith("/offsets/delete"):
                    await consumed(api, topics, "orders")
                if path == "/v1/archive/runs":
                    continue  # starts a process; test_runs.py sends it
                if path == "/v1/alerts/rules":
                    continue  # takes a file of receivers; tests/offsets/alerts sends it
                response = await api.request(method.upper(), path.format(**names), json=example["value"])
                if path == "/v1/tokens":
                    names["id"] = response.json()["id"]
                assert response.status_code in (200, 201, 204), response.text
                sent += 1
    assert sent >= 3


async def consumed(api: httpx.AsyncClient, topics: TopicService, name: str) -> None:
    """A topic whose log is known and of which the group `example` has committed."""
    known = {topic.name for topic in (await topics.search()).items}
    if name not in known:
        await topics.create(name, 2)
    await topics.set_watermarks(name, [Watermark(partition, 0, 10) for partition in (0, 1)])
    body = {"topics": [{"name": name, "partitions": [{"partition": 0, "committed_offset": 5}]}]}
    assert (await api.post("/v1/groups/example/offsets/commit", json=body)).status_code == 200
