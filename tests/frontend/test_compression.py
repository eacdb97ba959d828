"""Pages are compressed; what must arrive at once, and what nobody asked to be compressed, is not."""

from __future__ import annotations

import gzip

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.test import Client

from frontend.middleware import Compression
from tests.frontend.seed import Seed, working_group

GZIP = {"HTTP_ACCEPT_ENCODING": "gzip, deflate, br"}


def test_a_page_is_compressed_for_browsers_that_allow_it(person: Client, seed: Seed) -> None:
    working_group(seed)
    plain = person.get("/groups/billing")
    assert "Content-Encoding" not in plain.headers
    small = person.get("/groups/billing", **GZIP)
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert len(small.content) * 3 < len(plain.content)
    assert b"<title>billing" in gzip.decompress(small.content)


def test_the_size_of_a_page_with_a_secret_varies(person: Client, seed: Seed) -> None:
    """BREACH: the token is masked differently each time, and each answer has up to 100 random bytes more."""
    working_group(seed)
    sizes = {len(person.get("/groups/billing/delete", **GZIP).content) for _ in range(12)}
    sizes |= {len(person.get("/password", **GZIP).content) for _ in range(12)}
    assert len(sizes) > 4


def test_exports_and_files_are_compressed(person: Client, seed: Seed) -> None:
    working_group(seed)
    export = person.get("/groups.csv", **GZIP)
    content = b"".join(export.streaming_content) if export.streaming else export.content  # type: ignore[attr-defined]
    assert export.headers["Content-Encoding"] == "gzip"
    assert b"billing" in gzip.decompress(content)
    assert person.get("/static/frontend/theme.js", **GZIP).headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "answer",
    [
        StreamingHttpResponse([b"event: beat\ndata: {}\n\n" * 100], content_type="text/event-stream"),
        HttpResponse(b'{"groups": []}' * 100, content_type="application/json"),
        HttpResponse(b"# HELP x\n" * 100, content_type="text/plain; version=0.0.4"),
    ],
    ids=["stream of changes", "API", "metrics"],
)
def test_what_is_not_a_page_is_left_alone(answer: HttpResponseBase) -> None:
    request = HttpRequest()
    request.META["HTTP_ACCEPT_ENCODING"] = "gzip"
    passed = Compression(lambda _: answer).process_response(request, answer)
    assert "Content-Encoding" not in passed.headers
