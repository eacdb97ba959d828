"""Content Security Policy and static files.

No page loads anything from another host, and only the admin may run inline code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

from frontend import joined

_SHARED = (
    "default-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

POLICY = f"{_SHARED}; script-src 'self'; style-src 'self'"

ADMIN_POLICY = f"{_SHARED}; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'"
"""The admin's theme is built on Alpine: attributes are evaluated as code, and styles are written into elements."""

ADMIN = "/admin/"

Handler = Callable[[HttpRequest], Any]


def policy(path: str) -> str:
    """The policy for a path."""
    return ADMIN_POLICY if path.startswith(ADMIN) else POLICY


@sync_and_async_middleware
def ContentSecurityPolicy(get_response: Handler) -> Handler:  # noqa: N802 - settings name it like a class
    """Set the policy on every response that does not already carry one."""

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


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, sending each file in one piece.

    Its own responses iterate over the open file line by line, which an ASGI server cannot do and Django warns about.
    """

    def add_files(self, root: Any, prefix: Any = None) -> None:
        """Serve a directory if it exists; the one of `collectstatic` may not."""
        if Path(root).is_dir():
            super().add_files(root, prefix)

    def __call__(self, request: HttpRequest) -> Any:
        """Answer with a file, or let the views answer."""
        name = request.path_info.removeprefix(self.static_prefix)
        if name in joined.JOINED:
            return joined.serve(name, request, self.max_age)
        return super().__call__(request)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponseBase:
        """Answer with a file."""
        answer = static_file.get_response(request.method, request.META)
        with contextlib.closing(answer.file) if answer.file is not None else contextlib.nullcontext() as file:
            response = HttpResponse(file.read() if file is not None else b"", status=int(answer.status))
        del response.headers["Content-Type"]
        for name, value in answer.headers:
            response.headers[name] = value
        return response
