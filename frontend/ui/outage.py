"""What people and programs see while Postgres cannot be used: 503, soon, and a page that tries again by itself.

No wait of Django's own connection is without a limit (`kcoord.database.django_backend`). What it then raises, in a
view, in the admin, in a template or in another middleware, is answered here, without a session or the database.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views import defaults
from psycopg import errors as pg

from kcoord.database.django_backend.base import limited_statements
from kcoord.door.http import problem
from kcoord.door.http.logs import outage
from kcoord.protocol.errors import Error, ProtocolError

log = structlog.get_logger(__name__)

RETRY_SECONDS = 5
"""How often the page tries again."""

NOT_SENT_AGAIN = "What was sent may or may not have taken effect: go back, look, and send it again if needed."


class DatabaseOutage:
    """Middleware: limits the statements of a request, and answers 503 where a view fails for want of the database."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        self._get_response = get_response
        self._limit_ms = settings.KCOORD.int("database.statement.timeout.ms")
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Serve one request."""
        if self._is_async:
            return self._asynchronous(request)
        with limited_statements(self._limit_ms):
            response: HttpResponseBase = self._get_response(request)
        return response

    async def _asynchronous(self, request: HttpRequest) -> HttpResponseBase:
        with limited_statements(self._limit_ms):
            response: HttpResponseBase = await self._get_response(request)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The answer to what a view raised; None: it has another cause."""
        return unavailable(request, error) if _reason(error) else None


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Django's handler of errors that no view answered: those of middleware come here directly."""
    error = sys.exc_info()[1]
    return unavailable(request, error) if error is not None and _reason(error) else defaults.server_error(request)


def unavailable(request: HttpRequest, error: BaseException) -> HttpResponse:
    """503: a page that tries again, its panel, or a problem body (http-api.md 1) for a client that wants JSON."""
    reason = _reason(error) or "the database is not available"
    log.warning("database_unavailable", path=request.path, reason=" ".join(str(error).split()))
    if wants_json(request):
        failure = Error.COORDINATOR_NOT_AVAILABLE
        response = HttpResponse(
            problem.encoded(problem.body(failure, f"{reason}; the same request may succeed later")),
            content_type=problem.MEDIA_TYPE,
            headers=problem.headers(failure),
        )
    else:
        reads, is_panel = request.method in ("GET", "HEAD"), request.headers.get("HX-Request") == "true"
        context = {
            "reason": f"{reason[:1].upper()}{reason[1:]}.",
            "seconds": RETRY_SECONDS if reads and not is_panel else None,
            "advice": "Try again in a moment." if reads else NOT_SENT_AGAIN,
        }
        name = "frontend/ui/outage_panel.html" if is_panel else "503.html"
        response = HttpResponse(render_to_string(name, context), headers={"Retry-After": str(RETRY_SECONDS)})
    response.status_code = 503
    response.headers["Cache-Control"] = "no-store"
    return response


def _reason(error: BaseException) -> str:
    """Why the database could not be used; "" if the error has another cause."""
    if isinstance(error, ProtocolError):
        return error.detail.partition(";")[0] if error.error.status == 503 else ""
    cause = outage(error)
    if isinstance(cause, pg.QueryCanceled):
        return "the database took too long for this page"
    return "" if cause is None else "the database is not available"


def wants_json(request: HttpRequest) -> bool:
    """Whether the client is a program that reads JSON."""
    if request.path.startswith("/v1/"):
        return True
    return request.get_preferred_type(["text/html", "application/json", problem.MEDIA_TYPE]) not in ("text/html", None)
