"""Pages, files and exports are sent compressed to browsers that allow it.

An attacker who may choose part of a page and sees its compressed size could guess a secret on it (BREACH). The only
secret on a page is the CSRF token, which Django masks differently in every answer; Django also adds up to 100 random
bytes to each compressed answer. What lives on small pieces that must arrive at once, the stream of changes, is never
compressed, nor are the answers of the API, whose clients have not asked for it.
"""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from kcoord.http.hooks import OnLoop

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
