"""The styles and scripts of the pages, joined into a few files for the browser.

A request costs the server more than the bytes that it carries, and a page has thirty sources. They are joined when the
process first serves them, and compressed once, so nothing has to be built. WhiteNoise serves the sources as well.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.utils.cache import get_conditional_response

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
        "frontend/find.js", "frontend/table-csv.js", "frontend/zone.js", "frontend/crosshair.js",
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
