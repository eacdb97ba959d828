"""The service endpoints in the OpenAPI document: for load balancers, orchestrators and Prometheus; no token needed.

Source: http-api.md 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

SERVICE_TAG = "service"

_STATUS: Json = {"type": "string", "enum": ["alive", "ready", "not ready"]}

_CHECK: Json = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "detail": {"type": "string", "description": "What is wrong, and how to fix it."},
        "lag_ms": {"type": ["integer", "null"], "description": "Only of the timers: how long ago they last ran."},
    },
    "required": ["ok", "detail"],
}

SERVICE_SCHEMAS: Mapping[str, Json] = {
    "Liveness": {"type": "object", "properties": {"status": _STATUS}, "required": ["status"]},
    "Readiness": {
        "type": "object",
        "properties": {"status": _STATUS, "checks": {"type": "object", "additionalProperties": _CHECK}},
        "required": ["status", "checks"],
    },
}


def _operation(operation_id: str, summary: str, responses: Json) -> Json:
    return {
        "get": {
            "operationId": operation_id,
            "summary": summary,
            "description": summary,
            "tags": [SERVICE_TAG],
            "security": [],
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
        {"200": {"description": "The text format.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    ),
}
