"""Content security, and static files.

No page loads anything from another host, and only the admin may run what is written in a page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

_SHARED = (
    "default-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

POLICY = f"{_SHARED}; script-src 'self'; style-src 'self'"

ADMIN_POLICY = f"{_SHARED}; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'"
"""The admin's theme is built on Alpine: attributes that are evaluated, and styles written into elements."""

ADMIN = "/admin/"

Handler = Callable[[HttpRequest], Any]


def policy(path: str) -> str:
    """The policy of a path."""
    return ADMIN_POLICY if path.startswith(ADMIN) else POLICY


@sync_and_async_middleware
def ContentSecurityPolicy(get_response: Handler) -> Handler:  # noqa: N802 - settings name it like a class
    """Set the policy on every response that does not carry one of its own."""

    def finish(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", policy(request.path))
        return response

    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            awaited: Awaitable[HttpResponseBase] = get_response(request)
            return finish(request, await awaited)

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        return finish(request, get_response(request))

    return synchronous
