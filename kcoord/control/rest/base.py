"""What every REST view of the control plane shares: authentication, strict input, problem responses.

Strict means, as on the data plane: an unknown field or parameter, a number in a string, a field given twice, NUL and
unpaired surrogates are refused with INVALID_REQUEST naming the field. The fields in `kcoord.control.rest.fields` do
this. Source: http-api.md 1 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.connections import Connections
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import Access, Principal, bearer, trusted_caller
from kcoord.door.http import body as bodies
from kcoord.door.http import problem
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.requests import current

log = structlog.get_logger(__name__)

NOTHING_HERE = "no such path; /v1/openapi.json lists all paths"


class BearerAuthentication(BaseAuthentication):
    """The token of the Authorization header. Users signed in to the dashboard do not use this API."""

    def authenticate(self, request: Request) -> tuple[None, Principal]:
        """The principal as `request.auth`. Raises ProtocolError SASL_AUTHENTICATION_FAILED."""
        trusted = trusted_caller(getattr(request._request, "scope", {}))
        if trusted is not None:
            current.identify(trusted.name)
            return None, trusted
        header = request.META.get("HTTP_AUTHORIZATION")
        secret = bearer([] if header is None else [(b"authorization", header.encode("latin-1", "replace"))])
        return None, bridge.call(lambda runtime: _admitted(runtime, secret, request))


async def _admitted(runtime: Runtime, secret: str, request: Request) -> Principal:
    """The holder of a secret whose request is within its quotas. Raises THROTTLING_QUOTA_EXCEEDED."""
    principal = await runtime.get(Access).authenticate(secret)
    current.identify(principal.name, principal.token_id)
    quotas = runtime.get(Quotas)
    if quotas.limits_connections:
        runtime.get(Connections).claim_of(getattr(request._request, "scope", {}), principal)
    budget = Budget.READS if request.method in ("GET", "HEAD") else Budget.WRITES
    quotas.admit(principal, {budget: 1, Budget.BYTES: 0})
    return principal


class HasToken(BasePermission):
    """Nothing without a token; each view checks what the token may do."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the request carries a valid token."""
        return isinstance(request.auth, Principal)


class StrictJSONParser(BaseParser):
    """JSON, parsed as on the data plane."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """The value of a body. Raises ProtocolError INVALID_REQUEST, or 415 for another content type."""
        request = (parser_context or {}).get("request")
        if request is not None:
            names = (("CONTENT_TYPE", b"content-type"), ("HTTP_CONTENT_ENCODING", b"content-encoding"))
            meta = request.META
            bodies.check_content_type(
                [(to, meta[key].encode("latin-1", "replace")) for key, to in names if key in meta]
            )
        return strict_json(stream.read())


_ENCODER = msgspec.json.Encoder(decimal_format="number")


class AnswerRenderer(BaseRenderer):
    """JSON of what `kcoord.control.rest.answers.shown` returns."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """The body; empty without data."""
        return b"" if data is None else _ENCODER.encode(data)


_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def strict_json(body: bytes) -> Any:
    """The value of a JSON text. Raises ProtocolError INVALID_REQUEST naming the fault."""
    try:
        return bodies.decode(_DECODER, body)
    except RecursionError:
        raise problem.invalid("the body is nested too deeply") from None
    except ValueError:  # a number of thousands of digits
        raise problem.invalid("the body contains a number that is too long") from None


def problem_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Every failure of a view as a problem response (`EXCEPTION_HANDLER` of Django REST framework)."""
    failure = _as_protocol_error(error)
    status = getattr(failure, "status", None)
    content = problem.body(failure.error, failure.detail, status=status, action=failure.action, fields=failure.fields)
    return HttpResponse(
        problem.encoded(content),
        status=content["status"],
        content_type=problem.MEDIA_TYPE,
        headers=problem.headers(failure.error, failure.retry_after_ms),
    )


def _as_protocol_error(error: Exception) -> ProtocolError:
    match error:
        case ProtocolError():
            return error
        case exceptions.ValidationError():
            return _invalid_field(error.detail)
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return ProtocolError(Error.SASL_AUTHENTICATION_FAILED)
        case exceptions.PermissionDenied() | PermissionDenied():
            return ProtocolError(Error.CLUSTER_AUTHORIZATION_FAILED)
        case Http404():
            return problem.RequestRefused(404, NOTHING_HERE)
        case exceptions.MethodNotAllowed():
            return problem.RequestRefused(405, f"{error.detail} The Allow header lists the allowed methods.")
        case exceptions.APIException():
            return problem.RequestRefused(error.status_code, str(error.detail))
        case SuspiciousOperation():
            return problem.invalid(f"the request is not well formed: {error}")
        case OperationalError() | InterfaceError():
            log.warning("database_unavailable", reason=str(error).strip())
            return ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "the database is not available; try again later")
    log.error("request_failed", exc_info=error)
    return ProtocolError(Error.UNKNOWN_SERVER_ERROR)


def _invalid_field(detail: Any) -> ProtocolError:
    path, message = first_complaint(detail)
    field = path or None
    return problem.invalid(f"{path}: {message}" if path else f"the body: {message}", field)


def first_complaint(detail: Any, path: str = "") -> tuple[str, str]:
    """The first error in a serializer's errors, with the path of its field."""
    if isinstance(detail, Mapping):
        name, inner = next((name, inner) for name, inner in detail.items() if inner)
        if name == "non_field_errors":
            return first_complaint(inner, path)
        return first_complaint(inner, f"{path}[{name}]" if isinstance(name, int) else f"{path}.{name}".lstrip("."))
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        index, inner = next((index, inner) for index, inner in enumerate(detail) if inner)
        return first_complaint(inner, path if isinstance(inner, str) else f"{path}[{index}]")
    return path, str(detail)
