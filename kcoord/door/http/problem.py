"""Problem responses (RFC 9457), one shape for both planes.

Source: http-api.md 1, "Problem body".
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from kcoord.protocol.errors import Action, Error, ProblemFields, ProtocolError
from kcoord.requests import current

MEDIA_TYPE = "application/problem+json"
TYPE_BASE = "https://kcoord.dev/errors/"

DEFAULT_RETRY_AFTER_MS = 1_000


def body(
    error: Error,
    detail: str = "",
    *,
    status: int | None = None,
    action: Action | None = None,
    fields: ProblemFields | None = None,
) -> dict[str, Any]:
    """The members of a problem body.

    Parameters: `status` and `action` where they differ from the registry's (an unknown path is an INVALID_REQUEST
    with status 404); `fields` are added to the fixed members and never replace them.
    """
    info = error.value
    chosen = action or info.action
    fixed = {
        "type": TYPE_BASE + error.name,
        "title": error.name,
        "status": status or info.status,
        "detail": detail or info.help,
        "error": error.name,
        "error_code": info.code,
        # A wait that timed out is answered with an error that Kafka does not call retriable; here the same request is.
        "retriable": info.retriable or (chosen is Action.RETRY and info.action is not Action.RETRY),
        "action": chosen.value,
        "request_id": current.request_id(),
    }
    return {**fixed, **{name: value for name, value in (fields or {}).items() if name not in fixed}}


def encoded(content: Mapping[str, Any]) -> bytes:
    """A problem body as JSON. A text of Django's may contain unpaired surrogates, which msgspec refuses."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def headers(error: Error, retry_after_ms: int | None = None) -> dict[str, str]:
    """Headers for an error: Retry-After in whole seconds, rounded up, and the challenge of a 401."""
    found: dict[str, str] = {}
    if retry_after_ms is not None or error.status in (429, 503):
        wait_ms = DEFAULT_RETRY_AFTER_MS if retry_after_ms is None else retry_after_ms
        found["retry-after"] = str(max(1, math.ceil(wait_ms / 1000)))
    if error.status == 401:
        found["www-authenticate"] = 'Bearer realm="kcoord"'
    return found


def response(
    error: Error,
    detail: str = "",
    *,
    status: int | None = None,
    action: Action | None = None,
    fields: ProblemFields | None = None,
    retry_after_ms: int | None = None,
    extra_headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem as a response; records the error for the access log."""
    request = current.request()
    if request is not None:
        request.error = error.name
    content = body(error, detail, status=status, action=action, fields=fields)
    return Response(
        msgspec.json.encode(content),
        status_code=content["status"],
        headers={**headers(error, retry_after_ms), **(extra_headers or {})},
        media_type=MEDIA_TYPE,
    )


def from_error(error: ProtocolError, default_retry_after_ms: int = DEFAULT_RETRY_AFTER_MS) -> Response:
    """The response for a protocol error. `default_retry_after_ms` is for errors that do not specify a time."""
    retry_after_ms = error.retry_after_ms
    if retry_after_ms is None and error.error.status in (429, 503):
        retry_after_ms = default_retry_after_ms
    return response(
        error.error,
        error.detail,
        status=getattr(error, "status", None),
        action=error.action,
        fields=error.fields,
        retry_after_ms=retry_after_ms,
    )


class RequestRefused(ProtocolError):
    """INVALID_REQUEST with a status specific to HTTP: 404, 405, 413, 415."""

    def __init__(self, status: int, detail: str, *, fields: ProblemFields | None = None) -> None:
        super().__init__(Error.INVALID_REQUEST, detail, fields=fields)
        self.status = status


def no_such_parameter(name: str, known: Collection[str]) -> ProtocolError:
    """INVALID_REQUEST for a query parameter that an operation does not have; `known` are those that it has."""
    said = f"; the parameters are {', '.join(known)}" if known else "; there are none here"
    return invalid(f"{name[:100]}: no such query parameter{said}", name[:100])


def invalid(detail: str, field: str | None = None) -> ProtocolError:
    """INVALID_REQUEST; `field` is the path of the field at fault, such as `protocols[0].metadata`."""
    return ProtocolError(Error.INVALID_REQUEST, detail, fields={} if field is None else {"field": field})
