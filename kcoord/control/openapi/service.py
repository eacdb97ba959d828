"""The service endpoints in the OpenAPI document: for load balancers, orchestrators and Prometheus; none needs a token.

Source: http-api.md 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcoord.control.rest.schema import TOKEN_SCHEME

Json = dict[str, Any]

SERVICE_TAG = "service"

_CHECK: Json = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "detail": {"type": "string", "description": "What is wrong, and how to fix it; with `ok` a note."},
        "lag_ms": {"type": ["integer", "null"], "description": "Only of the timers: how long ago they last ran."},
    },
    "required": ["ok", "detail"],
}

SERVICE_SCHEMAS: Mapping[str, Json] = {
    "ReadinessCheck": _CHECK,
    "Liveness": {
        "type": "object",
        "properties": {"status": {"type": "string", "enum": ["alive"]}},
        "required": ["status"],
    },
    "Readiness": {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["ready", "not ready"]},
            "checks": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/ReadinessCheck"}},
        },
        "required": ["status", "checks"],
    },
}


def _operation(
    operation_id: str, summary: str, responses: Json, description: str = "", security: Sequence[Json] = ()
) -> Json:
    return {
        "get": {
            "operationId": operation_id,
            "summary": summary,
            "description": description or summary,
            "tags": [SERVICE_TAG],
            "security": list(security),
            "responses": responses,
        }
    }


def _json(description: str, schema: str) -> Json:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}


SERVICE_PATHS: Mapping[str, Json] = {
    "/livez": _operation("livez", "Check that the process answers", {"200": _json("It does.", "Liveness")}),
    "/readyz": _operation(
        "readyz",
        "Check that this server can serve members",
        {"200": _json("It can.", "Readiness"), "503": _json("Not ready; the failed checks say why.", "Readiness")},
    ),
    "/metrics": _operation(
        "metrics",
        "Metrics for Prometheus",
        {
            "200": {"description": "The text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            "401": {"description": "A token was sent, and it is not valid."},
        },
        "Without a token no group or topic is named, unless `metrics.public.groups` allows it; with one, those that it "
        "may describe.",
        [{}, {TOKEN_SCHEME: []}],
    ),
}
