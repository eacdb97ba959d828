"""Content Security Policy, compression, and static files, of which the pages' styles and scripts are joined.

No page loads anything from another host, and only the admin may run inline code.

A request costs the server more than the bytes that it carries, and a page has thirty sources. They are joined when the
process first serves them, and compressed once, so nothing has to be built. WhiteNoise serves the sources as well.

Pages, files and exports are sent compressed to browsers that allow it.

An attacker who may choose part of a page and sees its compressed size could guess a secret on it (BREACH). The only
secret on a page is the CSRF token, which Django masks differently in every answer; Django also adds up to 100 random
bytes to each compressed answer. What lives on small pieces that must arrive at once, the stream of changes, is never
compressed, nor are the answers of the API, whose clients have not asked for it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import get_conditional_response
from django.utils.decorators import sync_and_async_middleware
from whitenoise.middleware import WhiteNoiseMiddleware

from kcoord.door.http.hooks import OnLoop

JOINED: Mapping[str, tuple[str, ...]] = {
    # In the order of the cascade.
    "frontend/all.css": tuple(
        f"frontend/{name}.css"
        for name in (
            "base", "components", "map", "consumer", "offsets", "guide", "archive", "nodes", "overview", "charts",
            "navigation", "health", "find", "listing", "topic", "group-pages", "group", "member", "alerts",
        )
    ),
    "frontend/all.js": (
        "vendor/htmx-4.0.1/htmx.min.js", "frontend/clock.js", "frontend/page.js", "frontend/keys.js",
        "frontend/find.js", "frontend/table-csv.js", "frontend/zone.js", "frontend/crosshair.js", "frontend/fields.js",
    ),
    "frontend/all-live.js": (
        "frontend/stream.js", "frontend/live-link.js", "frontend/live-state.js", "frontend/live.js",
    ),
}  # fmt: skip
"""Sources of each joined file, by paths below `STATIC_URL`."""

_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
_GZIP = re.compile(r"\bgzip\b")


@cache
def _contents(name: str) -> tuple[bytes, bytes, str]:
    """A joined file, the same compressed, and its ETag."""
    whole = b"\n".join(Path(str(finders.find(source))).read_bytes() for source in JOINED[name])
    return whole, gzip.compress(whole, mtime=0), f'W/"{hashlib.sha256(whole).hexdigest()[:32]}"'


def serve(name: str, request: HttpRequest, max_age: int) -> HttpResponseBase:
    """Answer with a joined file, or that the browser's copy is still the same.

    `name`: a key of `JOINED`; `max_age`: seconds for which browsers do not ask again.
    """
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    whole, compressed, etag = _contents(name)
    headers = {"Cache-Control": f"max-age={max_age}, public", "ETag": etag, "Vary": "Accept-Encoding"}
    small = _GZIP.search(request.headers.get("Accept-Encoding", ""))
    if small:
        headers["Content-Encoding"] = "gzip"
    response = HttpResponse(compressed if small else whole, content_type=_KINDS[Path(name).suffix], headers=headers)
    return get_conditional_response(request, etag=etag, response=response) or response


COMPRESSED = ("text/html", "text/css", "text/javascript", "text/csv", "text/markdown", "image/svg+xml")
"""Types of answers that are compressed; the stream of changes is `text/event-stream`."""


class Compression(OnLoop, GZipMiddleware):
    """Django's compression, of the types in COMPRESSED only."""

    def needs_thread(self, request: HttpRequest, response: HttpResponseBase) -> bool:
        """Compressing a large page takes milliseconds."""
        return _kind(response) in COMPRESSED

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress the answer if the browser allows it, its type is one of ours, and it becomes smaller."""
        if _kind(response) not in COMPRESSED:
            return response
        return super().process_response(request, response)


def _kind(response: HttpResponseBase) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip()


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
        if name in JOINED:
            return serve(name, request, self.max_age)
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
