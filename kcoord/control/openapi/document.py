"""One OpenAPI 3.1 document for the whole service: drf-spectacular's, the data plane and the service endpoints.

The data plane describes itself by `Endpoint`s, whose msgspec structs are JSON Schema already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from kcoord.control.openapi.examples import EXAMPLES
from kcoord.control.openapi.service import SERVICE_PATHS, SERVICE_SCHEMAS, SERVICE_TAG
from kcoord.control.openapi.shapes import shape
from kcoord.control.rest.answers import ANSWERS, PREFIX, SCHEMAS
from kcoord.control.rest.schema import GROUP_ID, TOKEN_SCHEME, Name, error_texts
from kcoord.door.http.problem import MEDIA_TYPE
from kcoord.door.http.serving import COMMON_ERRORS, Endpoint, Query

Json = dict[str, Any]

REFERENCE = PREFIX + "{name}"

TAGS = (
    ("membership", "Members of groups: join, sync, heartbeat, leave."),
    ("offsets", "Committed offsets: commit, fetch, lag; transactions."),
    ("groups", "Groups, for operators."),
    ("topics", "The catalogue of topics and watermarks that assignment and lag need."),
    ("nodes", "Coordinator nodes, the partitions they own, and hand-overs."),
    ("items", "Items of share groups: who has which, dead letters, and how far groups are."),
    ("alerts", "Rules that tell people and programs what is wrong with groups."),
    ("archive", "Runs of the Spark jobs, and what reconcile found."),
    ("tokens", "Access."),
    ("quotas", "How much principals may use."),
    ("audit", "Who did what, and what was refused."),
    (SERVICE_TAG, "Health and metrics."),
)

TRANSACTIONAL_ID = Name("transactional_id", "The transactional id, percent-encoded.", GROUP_ID.schema)
PATH_NAMES = (GROUP_ID, TRANSACTIONAL_ID)

OFFSETS = ("/offsets/", "/transactions/")
"""Substrings of the paths of operations on offsets."""


def add_data_plane(result: Json, generator: Any, request: Any, public: bool) -> Json:
    """Post-processing hook of drf-spectacular: extends the control plane's document to cover everything."""
    from kcoord.asgi import DATA_PLANE_ROUTES  # the composition root imports the URLs, and those import this module

    _close_requests(result)
    _drop_enum_ids(result)
    _add_components(result, DATA_PLANE_ROUTES)
    for endpoint in DATA_PLANE_ROUTES:
        result["paths"].setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    result["paths"] = dict(sorted({**result["paths"], **SERVICE_PATHS}.items()))
    result = deepcopy(result)  # parts of it belong to modules
    shape(result)
    result["components"]["schemas"] = dict(sorted(result["components"]["schemas"].items()))
    result["tags"] = [{"name": name, "description": description} for name, description in TAGS]
    return result


def _operation(endpoint: Endpoint) -> Json:
    operation: Json = {
        "operationId": endpoint.operation_id,
        "summary": endpoint.summary,
        "description": endpoint.description or endpoint.summary,
        "tags": ["offsets" if any(part in endpoint.path for part in OFFSETS) else "membership"],
        "security": [{TOKEN_SCHEME: []}],
        "responses": _responses(endpoint),
    }
    parameters = [_query(parameter) for parameter in endpoint.query]
    for name in PATH_NAMES:
        if f"{{{name.name}}}" in endpoint.path:
            path = {"name": name.name, "in": "path", "required": True, "description": name.description}
            parameters.insert(0, {**path, "schema": dict(name.schema)})
    if parameters:
        operation["parameters"] = parameters
    if endpoint.request is not None:
        content = _content(endpoint.request, EXAMPLES.get(endpoint.operation_id, {}).get("request"))
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _responses(endpoint: Endpoint) -> Json:
    content = _content(endpoint.response, EXAMPLES.get(endpoint.operation_id, {}).get("response"))
    responses: Json = {"200": {"description": "Done.", "content": {"application/json": content}}}
    problem = {"schema": {"$ref": REFERENCE.format(name="Problem")}}
    texts = error_texts((*COMMON_ERRORS, *endpoint.errors), has_body=endpoint.request is not None)
    for status, text in texts.items():
        responses[str(status)] = {"description": text, "content": {MEDIA_TYPE: problem}}
    return responses


def _query(parameter: Query) -> Json:
    text = {"type": "string"}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": {"type": "array", "items": text, "minItems": 1} if parameter.repeated else text,
    }


def _content(struct: type, example: Any) -> Json:
    content: Json = {"schema": {"$ref": REFERENCE.format(name=struct.__name__)}}
    return content if example is None else {**content, "example": example}


def _add_components(result: Json, endpoints: Iterable[Endpoint]) -> None:
    structs = [struct for e in endpoints for struct in (e.request, e.response) if struct is not None]
    answers = sorted(ANSWERS, key=lambda answer: answer.__name__)
    _, found = msgspec.json.schema_components([*structs, *answers], ref_template=REFERENCE)
    schemas = {**result["components"]["schemas"], **SCHEMAS, **SERVICE_SCHEMAS}
    both = sorted(set(schemas) & set(found))
    if both:
        raise ValueError(f"both planes have a schema named {', '.join(both)}; rename one of each pair")
    result["components"]["schemas"] = {**schemas, **found}


def _drop_enum_ids(tree: Any) -> None:
    """Remove what drf-spectacular records for its own hook that names enums."""
    if isinstance(tree, dict):
        tree.pop("x-spec-enum-id", None)
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _drop_enum_ids(item)


def _close_requests(result: Json) -> None:
    """State in the document that requests have no other fields than these: the server refuses them."""
    schemas = result["components"]["schemas"]
    for path in result["paths"].values():
        for operation in path.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                _close(content["schema"], schemas)


def _close(schema: Any, schemas: Mapping[str, Any]) -> None:
    if isinstance(schema, list):
        for item in schema:
            _close(item, schemas)
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        _close(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    if "properties" in schema:
        schema["additionalProperties"] = False
    for item in schema.values():
        _close(item, schemas)
